"""Tests of the suite: planes with one bug each, and the check that must find it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest

from skylog.diskless import listeners
from skylog.diskless.batch import LOG_APPEND_TIME, Stamp
from skylog.diskless.coordinator import apply, commit, machine, queries
from skylog.diskless.coordinator.memory import MemoryState
from skylog.diskless.coordinator.overlay import Overlay
from skylog.diskless.coordinator.state import FileState
from skylog.diskless.plane import CommitResult, FileToCommit
from skylog.diskless.planes import memory
from skylog.diskless.planes.memory import MemoryPlane
from skylog.diskless.rules import commits, offsets
from skylog.kernel.errors import ErrorCode, KafkaError
from tests.contract import plane_commits, plane_deletes, plane_duties, plane_reads
from tests.contract.planting import Bugs, Patch, planted_in, require_found, wrap
from tests.contract.support import NONE

PARTS = (plane_commits, plane_deletes, plane_duties, plane_reads)
BUGS: Bugs = {}
caught_by = planted_in(BUGS)


# --- Commit ---------------------------------------------------------------------------------------


@caught_by("offsets_are_dense")
def an_offset_is_skipped(patch: Patch) -> None:
    def gap(original: Any, self: MemoryState, partition: Any, log: Any) -> None:
        moved = log.high_watermark > self._logs[partition][1].high_watermark
        original(self, partition, log._replace(high_watermark=log.high_watermark + moved))

    wrap(patch, MemoryState, "set_log", gap)


@caught_by("offsets_are_dense")
def the_bytes_of_a_log_are_not_counted(patch: Patch) -> None:
    def uncounted(original: Any, self: MemoryState, partition: Any, log: Any) -> None:
        original(self, partition, log._replace(byte_size=0))

    wrap(patch, MemoryState, "set_log", uncounted)


@caught_by("parts_of_lanes_are_committed_one_by_one")
def a_partition_changes_its_coordinator(patch: Patch) -> None:
    turns = iter(range(1 << 20))
    patch.setattr(MemoryPlane, "coordinator_of", lambda _self, _partition: next(turns))


@caught_by("parts_of_lanes_are_committed_one_by_one")
def coordinators_share_one_answer_per_key(patch: Patch) -> None:
    """Each partition has its own coordinator, but the plane keeps one answer per key."""
    patch.setattr(MemoryPlane, "coordinator_of", lambda _self, partition: hash(partition))


@caught_by("the_same_key_gets_the_first_answer")
def a_known_key_gets_new_offsets(patch: Patch) -> None:
    patch.setattr(Overlay, "file", lambda _self, _key: None)


@caught_by("the_same_key_gets_the_first_answer")
def a_repeated_commit_looks_like_the_first(patch: Patch) -> None:
    def fresh(original: Any, *args: Any) -> list[CommitResult]:
        return [result._replace(duplicate=False) for result in original(*args)]

    wrap(patch, machine, "repeat_committed", fresh)


@caught_by("the_same_key_gets_the_first_answer")
def a_known_key_is_an_error(patch: Patch) -> None:
    def refuse(*_: Any) -> Any:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "known")

    patch.setattr(machine, "repeat_committed", refuse)


@caught_by("a_known_key_is_one_file")
def any_file_passes_for_a_known_key(patch: Patch) -> None:
    patch.setattr(commits, "check_repeat", lambda *_: None)


@caught_by("old_keys_are_refused")
def keys_of_any_age_are_committed(patch: Patch) -> None:
    patch.setattr(commits, "check_age", lambda *_: None)


@caught_by("old_keys_are_refused")
def known_keys_are_too_old_as_well(patch: Patch) -> None:
    async def early(original: Any, self: Any, file: FileToCommit) -> Any:
        commits.check_age(file.object_key, self._clock.now_ms(), self._machine._rules)
        return await original(self, file)

    wrap(patch, MemoryPlane, "commit_file", early)


@caught_by("keys_from_the_future_are_refused")
def clocks_ahead_are_trusted(patch: Patch) -> None:
    def lenient(original: Any, key: str, now_ms: int, limits: Any) -> None:
        original(key, now_ms, replace(limits, commit_ahead_ms_max=1 << 60))

    wrap(patch, commits, "check_age", lenient)


@caught_by("malformed_files_are_refused")
def extents_may_overlap(patch: Patch) -> None:
    patch.setattr(machine, "check_file", lambda _file: None)


@caught_by("a_commit_fails_in_part")
def one_bad_batch_fails_all(patch: Patch) -> None:
    async def strict(original: Any, self: Any, file: FileToCommit) -> list[CommitResult]:
        results = await original(self, file)
        worst = max(r.error for r in results)
        return [CommitResult(worst) if worst else r for r in results]

    wrap(patch, MemoryPlane, "commit_file", strict)


@caught_by("a_commit_fails_in_part")
def answers_stand_in_the_order_of_partitions(patch: Patch) -> None:
    async def sorted_by_error(original: Any, self: Any, file: FileToCommit) -> Any:
        return sorted(await original(self, file), key=lambda r: r.error)

    wrap(patch, MemoryPlane, "commit_file", sorted_by_error)


@caught_by("append_time_is_the_commits")
def append_time_is_told_for_create_time(patch: Patch) -> None:
    def told(original: Any, stamp: Any, *args: Any) -> CommitResult:
        return original(stamp._replace(timestamp_type=LOG_APPEND_TIME), *args)

    wrap(patch, commits, "_accepted", told)


@caught_by("a_file_without_accepted_batches_waits_for_deletion")
def files_without_batches_are_kept(patch: Patch) -> None:
    def unmarked(original: Any, self: MemoryState, file: FileState, answers: Any) -> None:
        original(self, replace(file, live_batches=max(file.live_batches, 1)), answers)

    wrap(patch, MemoryState, "add_file", unmarked)


# --- Duties ---------------------------------------------------------------------------------------


@caught_by("one_broker_does_each_piece_of_work")
def no_broker_enforces_retention(patch: Patch) -> None:
    patch.setattr(MemoryPlane, "owns", lambda _self, _partition: False)


@caught_by("one_broker_does_each_piece_of_work")
def no_broker_scans_for_orphans(patch: Patch) -> None:
    patch.setattr(MemoryPlane, "is_caretaker", lambda _self: False)


@caught_by("one_broker_does_each_piece_of_work")
def no_broker_deletes_files(patch: Patch) -> None:
    patch.setattr(MemoryPlane, "owns_files", lambda _self: False)


# --- Idempotent producers -------------------------------------------------------------------------


@caught_by("sequences_wrap")
def sequences_do_not_wrap(patch: Patch) -> None:
    def rigid(original: Any, entries: Any, batch: Any, *args: Any) -> commits.SequenceCheck:
        check = original(entries, batch, *args)
        if check is commits.ACCEPTED and entries and batch.base_sequence == 0:
            return commits.SequenceCheck(ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER)
        return check

    wrap(patch, commits, "check_sequence", rigid)


@caught_by("an_unknown_producer_starts_anywhere")
def unknown_producers_start_at_zero(patch: Patch) -> None:
    def strict(original: Any, entries: Any, batch: Any, *args: Any) -> commits.SequenceCheck:
        if not entries and batch.base_sequence:
            return commits.SequenceCheck(ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER)
        return original(entries, batch, *args)

    wrap(patch, commits, "check_sequence", strict)


@caught_by("a_new_epoch_starts_at_zero")
def epochs_share_their_sequences(patch: Patch) -> None:
    def blind(original: Any, entries: Any, batch: Any, *args: Any) -> commits.SequenceCheck:
        same = [entry._replace(producer_epoch=batch.producer_epoch) for entry in entries]
        return original(same, batch, *args)

    wrap(patch, commits, "check_sequence", blind)


@caught_by("an_old_epoch_is_fenced")
def old_epochs_are_not_fenced(patch: Patch) -> None:
    def lax(original: Any, *args: Any) -> commits.SequenceCheck:
        check = original(*args)
        fenced = check.error == ErrorCode.INVALID_PRODUCER_EPOCH
        return commits.ACCEPTED if fenced else check

    wrap(patch, commits, "check_sequence", lax)


@caught_by("a_repeated_batch_is_a_duplicate")
def duplicates_are_stored_again(patch: Patch) -> None:
    def lax(original: Any, *args: Any) -> commits.SequenceCheck:
        check = original(*args)
        return commits.ACCEPTED if check.duplicate_of else check

    wrap(patch, commits, "check_sequence", lax)


@caught_by("a_repeated_batch_is_a_duplicate")
def duplicates_tell_the_end_of_the_log(patch: Patch) -> None:
    def current(original: Any, check: Any, batch: Any, log: Any) -> CommitResult:
        answer = original(check, batch, log)
        return answer._replace(assigned_base_offset=log.high_watermark) if check[1] else answer

    wrap(patch, commits, "_refused", current)


@caught_by("five_batches_are_remembered")
def one_batch_is_remembered(patch: Patch) -> None:
    patch.setattr(apply, "remember", lambda _entries, entry: (entry,))


@caught_by("five_batches_are_remembered")
def six_batches_are_remembered(patch: Patch) -> None:
    patch.setattr(commits, "REMEMBERED_BATCHES", 6)


@caught_by("a_batch_twice_in_one_file_is_a_duplicate")
def batches_of_one_file_do_not_see_each_other(patch: Patch) -> None:
    def apart(original: Any, file: FileToCommit, log_of: Any, producer_of: Any, *args: Any) -> Any:
        plan = original(file, log_of, producer_of, *args)
        for batch in file.batches[1:]:
            rest = replace(file, batches=[batch])
            for partition, held in original(rest, log_of, producer_of, *args).accepted.items():
                plan.accepted.setdefault(partition, []).extend(held)
        return plan

    wrap(patch, commits, "plan_commit", apart)
    # The answers of the plan have the same mistake.
    wrap(
        patch,
        commits,
        "_refused",
        lambda original, check, batch, log: original(check, batch, log)._replace(duplicate=False),
    )


@caught_by("silent_producers_expire")
def producers_never_expire(patch: Patch) -> None:
    patch.setattr(commits, "unexpired", lambda entries, *_: entries)


@caught_by("silent_producers_expire")
def producers_expire_by_the_time_in_their_records(patch: Patch) -> None:
    class Dated(commits.ProducerEntry):
        def __new__(cls, *fields: Any) -> Any:
            return commits.ProducerEntry.__new__(commits.ProducerEntry, *fields[:4], 1)

    patch.setattr(apply, "ProducerEntry", Dated)


@caught_by("silent_producers_expire")
def expired_producers_are_remembered(patch: Patch) -> None:
    """A producer that comes back continues its sequences."""
    patch.setattr(apply, "unexpired", lambda entries, *_: entries)
    patch.setattr(MemoryState, "expire", lambda *_: None)


@caught_by("a_topic_created_anew_is_empty")
def producers_outlive_their_topic(patch: Patch) -> None:
    def keep(original: Any, self: MemoryState, partition: Any) -> None:
        producers = dict(self._producers)
        original(self, partition)
        self._producers = producers

    wrap(patch, MemoryState, "drop_partition", keep)


@caught_by("producers_outlive_their_records")
def deleted_records_take_their_producers(patch: Patch) -> None:
    def drop(original: Any, self: MemoryState, *args: Any) -> Any:
        self._producers.clear()
        return original(self, *args)

    wrap(patch, MemoryState, "remove_batches", drop)


# --- Find and ListOffsets -------------------------------------------------------------------------


def _budget(patch: Patch, **methods: Callable[..., Any]) -> None:
    patch.setattr(offsets, "FindBudget", type("FindBudget", (offsets.FindBudget,), methods))


@caught_by("the_first_batch_is_always_granted")
def every_partition_gets_a_batch(patch: Patch) -> None:
    original = offsets.FindBudget.partition

    def generous(self: Any, max_bytes: int) -> bool:
        original(self, max_bytes)
        self._used = False
        return True

    _budget(patch, partition=generous)


@caught_by("the_first_batch_is_always_granted")
def nothing_is_granted_beyond_the_budget(patch: Patch) -> None:
    original = offsets.FindBudget.partition

    def strict(self: Any, max_bytes: int) -> bool:
        self._used = True
        return original(self, max_bytes)

    _budget(patch, partition=strict)


@caught_by("a_batch_that_does_not_fit_leaves_the_rest_to_others")
def the_batch_that_crosses_a_limit_is_granted(patch: Patch) -> None:
    original = offsets.FindBudget.grant

    def crossing(self: Any, batches: Any) -> Any:
        known = list(batches)
        granted = original(self, known)
        return known[: len(granted) + 1]

    _budget(patch, grant=crossing)


@caught_by("one_budget_in_request_order")
def each_partition_has_the_whole_budget(patch: Patch) -> None:
    async def apart(original: Any, self: Any, requests: Any, *limits: int) -> Any:
        return [(await original(self, [request], *limits))[0] for request in requests]

    wrap(patch, MemoryPlane, "find_batches", apart)


@caught_by("the_count_limit_cuts")
def the_count_of_batches_is_for_all(patch: Patch) -> None:
    original = offsets.FindBudget.grant

    def running(self: Any, batches: Any) -> Any:
        granted = original(self, batches)
        if self._batches_max:
            left = self._batches_max - getattr(self, "granted", 0)
            granted = granted[: max(left, 0)]
            self.granted = getattr(self, "granted", 0) + len(granted)
        return granted

    _budget(patch, grant=running)


def _find_error(patch: Patch, change: Callable[[int, offsets.LogState], int]) -> None:
    """Check another offset than the requested one."""
    wrap(patch, offsets, "find_error", lambda original, at, log: original(change(at, log), log))


@caught_by("below_the_log_start_is_out_of_range")
def deleted_offsets_skip_ahead(patch: Patch) -> None:
    _find_error(patch, lambda at, log: max(at, log.log_start_offset))


@caught_by("the_high_watermark_is_empty_and_above_it_is_out_of_range")
def above_the_high_watermark_is_empty(patch: Patch) -> None:
    _find_error(patch, lambda at, log: min(at, log.high_watermark))


@caught_by("the_high_watermark_is_empty_and_above_it_is_out_of_range")
def the_high_watermark_is_out_of_range(patch: Patch) -> None:
    _find_error(patch, lambda at, log: at + 1 if at == log.high_watermark else at)


@caught_by("pruned_batches_are_in_tiered_storage")
def pruned_offsets_are_out_of_range(patch: Patch) -> None:
    def lost(original: Any, *args: Any) -> ErrorCode:
        error = original(*args)
        return ErrorCode.OFFSET_OUT_OF_RANGE if error else error

    wrap(patch, offsets, "find_error", lost)


@caught_by("a_find_starts_with_the_batch_that_holds_the_offset")
def a_find_starts_behind_the_offset(patch: Patch) -> None:
    def behind(original: Any, state: Any, request: Any, budget: Any) -> Any:
        found = original(state, request, budget)
        return replace(
            found, batches=[b for b in found.batches if b.stamp.base_offset >= request.offset]
        )

    wrap(patch, queries, "_find", behind)


@caught_by("the_first_batch_at_or_after_a_time")
def the_nearest_time_wins_over_the_first_offset(patch: Patch) -> None:
    def nearest(self: MemoryState, partition: Any, timestamp: int, from_offset: int) -> Any:
        young = [b for b in self.batches(partition, from_offset) if b.stamp.timestamp >= timestamp]
        return min(young, key=lambda b: b.stamp.timestamp, default=None)

    patch.setattr(MemoryState, "batch_at_time", nearest)


@caught_by("the_largest_timestamp")
def the_last_of_the_largest_timestamps(patch: Patch) -> None:
    def last(self: MemoryState, partition: Any, from_offset: int) -> Any:
        backwards = list(self.batches(partition, from_offset))[::-1]
        return max(backwards, key=lambda b: b.stamp.timestamp, default=None)

    patch.setattr(MemoryState, "latest_batch", last)


@caught_by("times_of_log_append_time")
def times_are_always_the_producers(patch: Patch) -> None:
    patch.setattr(Stamp, "timestamp", property(lambda self: self.batch_max_timestamp))


@caught_by("deleted_records_are_not_listed")
def times_point_at_deleted_records(patch: Patch) -> None:
    wrap(patch, offsets, "chosen_offset", lambda f, b, t, log: f(b, t, offsets.LogState()))


# --- Deletion -------------------------------------------------------------------------------------


@caught_by("creating_again_changes_nothing")
def creating_again_empties(patch: Patch) -> None:
    async def anew(original: Any, self: Any, topics: Sequence[Any]) -> None:
        await original(self, topics)
        for topic_id, name, total in topics:
            for partition in range(total):
                self._state.create_partition((topic_id, partition), name)

    wrap(patch, MemoryPlane, "create_partitions", anew)


@caught_by("a_deleted_topic_is_unknown")
def deleted_topics_keep_their_files(patch: Patch) -> None:
    patch.setattr(apply, "_drop", lambda store, partition, _ms: store.drop_partition(partition))


@caught_by("deleting_to_the_middle_of_a_batch")
def the_straddling_batch_goes(patch: Patch) -> None:
    def greedy(original: Any, self: MemoryState, partition: Any, below: int) -> Any:
        whole = [
            b.stamp.last_offset + 1 for b in self._batches[partition] if b.stamp.base_offset < below
        ]
        return original(self, partition, max([below, *whole]))

    wrap(patch, MemoryState, "remove_batches", greedy)


@caught_by("the_log_start_never_moves_back")
def the_log_start_moves_back(patch: Patch) -> None:
    async def back(original: Any, self: Any, requests: Any) -> Any:
        results = await original(self, requests)
        for topic_id, index, offset in requests:
            log = self._state.log((topic_id, index))._replace(log_start_offset=offset)
            self._state.set_log((topic_id, index), log)
        return results

    wrap(patch, MemoryPlane, "delete_records", back)


@caught_by("deleting_everything")
def minus_one_is_out_of_range(patch: Patch) -> None:
    wrap(patch, offsets, "delete_target", lambda f, at, log: None if at < 0 else f(at, log))


@caught_by("deleting_out_of_range")
def deleting_stops_at_the_end(patch: Patch) -> None:
    wrap(patch, offsets, "delete_target", lambda f, at, log: f(min(at, log.high_watermark), log))


@caught_by("pruned_batches_are_in_tiered_storage")
def pruning_moves_the_log_start(patch: Patch) -> None:
    patch.setattr(apply, "_remove_below", apply._start_at)


@caught_by("retention_is_bounded")
def retention_has_no_bound(patch: Patch) -> None:
    wrap(patch, offsets, "retention_start", lambda f, *args: f(*args[:-1], 1 << 60))


@caught_by("retention_is_bounded")
def retention_counts_one_too_few(patch: Patch) -> None:
    wrap(patch, offsets, "retention_start", lambda f, *args: f(*args[:-1], args[-1] - 1))


@caught_by("retention_by_both")
def one_limit_is_enough_to_keep(patch: Patch) -> None:
    def either(original: Any, oldest: Any, log: Any, limits: Any, *args: Any) -> int:
        one = original(oldest, log, limits._replace(ms=-1), *args)
        other = original(oldest, log, limits._replace(bytes=-1), *args)
        return min(one, other)

    wrap(patch, offsets, "retention_start", either)


@caught_by("retention_by_bytes")
def retention_leaves_one_batch_more(patch: Patch) -> None:
    def kafka_like(original: Any, oldest: Any, log: Any, limits: Any, *args: Any) -> int:
        slack = 99 if limits.bytes >= 0 else 0
        return original(oldest, log, limits._replace(bytes=limits.bytes + slack), *args)

    wrap(patch, offsets, "retention_start", kafka_like)


@caught_by("retention_stops_at_the_first_batch_to_keep")
def retention_looks_behind_what_it_keeps(patch: Patch) -> None:
    def all_old(original: Any, oldest: Any, log: Any, limits: Any, now: int, cap: int) -> int:
        old = [b for b in oldest if limits.ms >= 0 and b.stamp.timestamp < now - limits.ms]
        return old[-1].stamp.last_offset + 1 if old else original(oldest, log, limits, now, cap)

    wrap(patch, offsets, "retention_start", all_old)


@caught_by("retention_by_time")
def retention_takes_what_is_just_old_enough(patch: Patch) -> None:
    wrap(patch, offsets, "retention_start", lambda f, o, g, li, now, cap: f(o, g, li, now + 1, cap))


@caught_by("a_prune_drops_many_batches")
def a_prune_ends_with_its_first_step(patch: Patch) -> None:
    patch.setattr(memory, "prune_in_steps", lambda requests, step: step(requests))


@caught_by("retention_leaves_a_tiered_prefix_alone")
def retention_moves_over_a_tiered_prefix(patch: Patch) -> None:
    def blind(original: Any, oldest: Any, log: Any, *args: Any) -> int:
        return original(oldest, log._replace(wal_start_offset=0), *args)

    wrap(patch, offsets, "retention_start", blind)


@caught_by("retention_leaves_a_tiered_prefix_alone")
def retention_never_comes_back_after_a_prune(patch: Patch) -> None:
    def shy(original: Any, oldest: Any, log: Any, *args: Any) -> int:
        return log.log_start_offset if log.wal_start_offset else original(oldest, log, *args)

    wrap(patch, offsets, "retention_start", shy)


# --- Files and watching ---------------------------------------------------------------------------


@caught_by("a_file_lives_while_it_has_a_batch")
def a_file_is_freed_by_its_first_deletion(patch: Patch) -> None:
    def at_once(original: Any, self: MemoryState, log_offset: int, _count: int, now: int) -> None:
        original(self, log_offset, self._files[self._keys[log_offset]].live_batches, now)

    wrap(patch, MemoryState, "release_batches", at_once)


@caught_by("only_marked_files_are_forgotten")
def live_files_are_forgotten(patch: Patch) -> None:
    async def forget(_original: Any, self: Any, keys: Any) -> None:
        for key in keys:
            self._state._files.pop(key, None)

    wrap(patch, MemoryPlane, "confirm_deleted", forget)


@caught_by("deletion_waits_for_its_time")
def files_are_deleted_at_once(patch: Patch) -> None:
    wrap(patch, MemoryPlane, "files_to_delete", lambda f, self, _at, limit: f(self, 1 << 60, limit))


@caught_by("deletion_waits_for_its_time")
def the_limit_of_files_is_ignored(patch: Patch) -> None:
    wrap(patch, MemoryPlane, "files_to_delete", lambda f, self, at, _limit: f(self, at, 0))


@caught_by("described_in_order")
def unknown_files_look_free(patch: Patch) -> None:
    async def mild(original: Any, self: Any, keys: Any) -> Any:
        return [r._replace(error=NONE) for r in await original(self, keys)]

    wrap(patch, MemoryPlane, "describe_files", mild)


@caught_by("listeners_learn_of_commits")
def listeners_are_not_notified(patch: Patch) -> None:
    patch.setattr(listeners.Listeners, "tell", lambda *_: None)


@caught_by("listeners_learn_of_commits")
def watching_never_ends(patch: Patch) -> None:
    def forever(original: Any, self: Any, listener: Any) -> Callable[[], None]:
        original(self, listener)
        return lambda: None

    wrap(patch, listeners.Listeners, "add", forever)


@caught_by("a_failing_listener_disturbs_no_other")
def a_listener_can_fail_a_commit(patch: Patch) -> None:
    def tell(self: Any, partition: Any, high_watermark: int) -> None:
        for listener in self._listeners.values():
            listener(partition, high_watermark)

    patch.setattr(listeners.Listeners, "tell", tell)


@pytest.mark.parametrize("name", BUGS)
async def test_the_suite_finds(name: str, monkeypatch: Patch) -> None:
    monkeypatch.setattr(plane_deletes, "WAIT_SECONDS", 0.02)
    await require_found(BUGS, name, monkeypatch)


def test_bugs_are_planted_in_what_runs() -> None:
    """The machine must look its rules up in their modules, or a patch would not reach it."""
    assert commit.commits is commits
    assert machine.offsets is queries.offsets is offsets
    assert len(BUGS) >= 15
