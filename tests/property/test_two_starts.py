"""Random histories of a log whose first part is in the object store only, against a list.

The object store is a copy of records by offset. At every moment each record from the log start on
is on disk or there; a crash keeps what was synced, and the log start that was checkpointed.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from random import Random

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
)

from skylog.kernel.errors import ErrorCode, KafkaError
from skylog.log import recovery, retention, trimming
from skylog.log.config import LogConfig
from skylog.log.host import LogHost
from skylog.log.log import Log
from skylog.log.producers import ProducerEntry, RememberedBatch
from skylog.log.reader import MovedToRemote
from skylog.log.recovery import Checkpointed
from skylog.log.restoring import restore
from tests.property.test_log_histories import DurableFiles
from tests.unit.log.support import NOW, batch, read_values

SETTLED = settings(max_examples=80, stateful_step_count=40, deadline=None)
SIZE = batch(b"0000").size
PRODUCER = 7


class Host(LogHost):
    """The checkpoint of log starts and recovery points, which outlives the process."""

    def __init__(self, files: DurableFiles) -> None:
        super().__init__(files)
        self.start: int | None = None
        self.point = 0

    def write(self, log: Log) -> None:
        self.point = log.durability.recovery_point
        listed = log.config.remote or log.log_start_offset != log.segments[0].base_offset
        self.start = log.log_start_offset if listed else None

    def pin_start(self, log: Log) -> None:
        if self.start != log.log_start_offset and (log.config.remote or self.start is not None):
            self.write(log)

    def known(self, *, clean: bool) -> Checkpointed:
        return Checkpointed(clean, self.point, self.start or 0, self.start is not None)


class TwoStarts(RuleBasedStateMachine):
    @initialize(per_segment=st.integers(1, 4), local=st.sampled_from([-1, 0, SIZE, 3 * SIZE]))
    def begin(self, per_segment: int, local: int) -> None:
        self.root = Path(tempfile.mkdtemp())
        self.directory = self.root / "topic-0"
        self.config = LogConfig(
            segment_bytes=per_segment * SIZE,
            index_interval_bytes=0,
            retention_ms=-1,
            local_retention_bytes=local,
            remote=True,
        )
        self.files = DurableFiles()
        self.host = Host(self.files)
        # What was written, with the leader epoch of each, and what the object store has of it.
        self.values: list[bytes] = []
        self.epochs: list[int] = []
        self.sequences: list[int] = []
        self.store: dict[int, bytes] = {}
        self.epoch = 0
        self.number = 0
        self.synced_end = 0
        self.epochs_from = 0
        self.log = self._open(clean=False)

    def teardown(self) -> None:
        if hasattr(self, "root"):
            shutil.rmtree(self.root)

    def _open(self, *, clean: bool) -> Log:
        known = self.host.known(clean=clean)
        directory = str(self.directory)
        log = Log.open(("topic", 0), directory, self.host, self.config, NOW, known)
        log.high_watermark = log.log_end_offset
        return log

    def _cut(self, end: int) -> None:
        del self.values[end:], self.epochs[end:], self.sequences[end:]
        self.synced_end = min(self.synced_end, end)

    # -- the object store ----------------------------------------------------------------------

    def _is_remote(self, offset: int) -> bool:
        """Of this log: an older leader's records at the same offset are others."""
        return offset < len(self.values) and self.store.get(offset) == self.values[offset]

    @rule()
    def learn(self) -> None:
        """What the metadata of the object store says."""
        if not self.config.remote:
            return
        highest = max(filter(self._is_remote, self.store), default=-1)
        end = self.log.local_log_start_offset
        while self._is_remote(end):
            end += 1
        self.log.remote_moved(highest, end)

    @rule(which=st.integers(0, 5), told=st.booleans())
    def copy(self, which: int, told: bool) -> None:
        """Mostly the oldest, but a leader before may have left a gap."""
        if not self.config.copies:
            return
        found = self.log.closed_segments(self.log.log_start_offset, self.log.last_stable_offset)
        if found:
            closed = found[which % len(found)]
            for offset in range(closed.base_offset, closed.next_offset):
                self.store[offset] = self.values[offset]
        if told:
            self.learn()

    @rule(share=st.floats(0, 1))
    def expire(self, share: float) -> None:
        """The log start is durable before anything is deleted."""
        self.delete_records(share)
        self.host.write(self.log)
        self.store = {at: v for at, v in self.store.items() if at >= self.log.log_start_offset}

    # -- the log -------------------------------------------------------------------------------

    @rule(count=st.integers(1, 4))
    def append(self, count: int) -> None:
        for _ in range(count):
            self.number += 1
            value = b"%04d" % self.number
            sequence = self.sequences[-1] + 1 if self.sequences else 0
            placed = batch(value, producer=(PRODUCER, 0, sequence))
            self.log.appender.append([placed], self.epoch, NOW)
            self.values.append(value)
            self.sequences.append(sequence)
            self.epochs.append(self.epoch)
        self.log.high_watermark = self.log.log_end_offset

    @rule()
    def lead_again(self) -> None:
        self.epoch += 1

    @rule()
    def retain(self) -> None:
        log = self.log
        before, log_start = log.local_log_start_offset, log.log_start_offset
        log.trimming.delete_old_segments(NOW)
        assert log.local_log_start_offset >= before
        if self.config.copies:
            assert log.log_start_offset == log_start

    @rule(share=st.floats(0, 1))
    def delete_records(self, share: float) -> None:
        start = self.log.log_start_offset
        target = start + int((self.log.log_end_offset - start) * share)
        assert self.log.trimming.delete_records_before(target) == target

    @rule(share=st.floats(0, 1))
    def truncate(self, share: float) -> None:
        start = self.log.log_start_offset
        target = start + int((self.log.log_end_offset - start) * share)
        self.log.truncate_to(target)
        self._cut(target)
        self.epoch += 1
        if start < target and self.log.latest_epoch < 0:
            self._take_history()

    @rule()
    def go_on_behind_the_store(self) -> None:
        """As a replica does whose leader has these records there only."""
        if not self.config.remote:
            return
        start = end = self.log.log_start_offset
        while self._is_remote(end):
            end += 1
        if end > start:
            self.log.truncate_fully_and_start_at(end, start)
            self._cut(end)
            self._take_history()

    def _take_history(self) -> None:
        """From the object store; nothing is fetched before that."""
        epochs = sorted({e: at for at, e in reversed([*enumerate(self.epochs)])}.items())
        end = len(self.values)
        last = RememberedBatch(self.sequences[-1], end - 1, 0, NOW)
        restore(self.log, epochs, [ProducerEntry(PRODUCER, 0, last_timestamp=NOW, batches=(last,))])
        self.epochs_from = 0

    @rule(disabled=st.booleans(), keep=st.integers(0, 8))
    def copy_or_not(self, disabled: bool, keep: int) -> None:
        self.config = replace(
            self.config, remote_log_copy_disable=disabled, retention_bytes=keep * SIZE
        )
        self.log.configure(self.config)

    @rule()
    def switch(self) -> None:
        """Switched off, everything remote is deleted."""
        self.config = replace(self.config, remote=not self.config.remote)
        self.log.configure(self.config)
        if not self.config.remote:
            assert self.log.log_start_offset == self.log.local_log_start_offset
            self.host.write(self.log)
            self.store = {}

    # -- the disk ------------------------------------------------------------------------------

    @rule(all_of_it=st.booleans())
    def sync(self, all_of_it: bool) -> None:
        durability = self.log.durability
        (durability.sync if all_of_it else durability.sync_rolled)()
        end = self.log.log_end_offset if all_of_it else self.log.segments[-1].base_offset
        self.synced_end = max(self.synced_end, end)

    @rule()
    def checkpoint(self) -> None:
        self.host.write(self.log)

    @rule()
    def restart(self) -> None:
        before = self.log.log_start_offset, self.log.local_log_start_offset
        self.log.close()
        self.host.write(self.log)
        self.log = self._open(clean=True)
        assert (self.log.log_start_offset, self.log.local_log_start_offset) == before
        self.synced_end = len(self.values)

    @rule(draw=st.data())
    def lose_power(self, draw: st.DataObject) -> None:
        self.files.crash(self.directory, draw)
        self.kill()

    @rule()
    def kill(self) -> None:
        log_start = self.log.log_start_offset
        log = self.log = self._open(clean=False)
        log.configure(self.config)
        end = log.log_end_offset
        assert max(self.synced_end, self.host.start or 0) <= end <= len(self.values)
        self._cut(end)
        log.high_watermark = end
        # Of what is not here, or was deleted, the epochs may be lost: the object store has them.
        self.epochs_from = max(self.epochs_from, log_start, log.local_log_start_offset)
        log.durability.sync()
        self.synced_end = end
        self.host.point = min(self.host.point, end)

    @property
    def may_settle(self) -> bool:
        return self.config.copies and self.config.local_retention_bytes == 0

    @precondition(lambda self: self.may_settle)
    @rule()
    def settle(self) -> None:
        """Once all is copied nothing is left here."""
        for _ in range(2):
            for which in range(len(self.log.segments)):
                self.copy(which, told=True)
            self.sync(all_of_it=True)
            self.log.trimming.delete_old_segments(NOW)
        self.learn()
        self.sync(all_of_it=True)
        self.log.trimming.delete_old_segments(NOW)
        assert (self.log.local_log_start_offset, self.log.size) == (len(self.values), 0)

    # -- what holds ----------------------------------------------------------------------------

    @invariant()
    def has_every_record(self) -> None:
        if not hasattr(self, "log"):
            return
        log, values = self.log, self.values
        start, local = log.log_start_offset, log.local_log_start_offset
        assert start <= local <= log.high_watermark <= log.log_end_offset == len(values)
        assert read_values(log, local) == [*enumerate(values)][local:]
        assert all(map(self._is_remote, range(start, local)))
        for offset in {start, local - 1} & {*range(start, local)}:
            with pytest.raises(MovedToRemote):
                self._read(offset)
        if start:
            with pytest.raises(KafkaError) as gone:
                self._read(start - 1)
            assert gone.value.code is ErrorCode.OFFSET_OUT_OF_RANGE

    def _read(self, offset: int) -> None:
        self.log.reader.read(offset, 1, self.log.log_end_offset, min_one=True, block=True)

    @invariant()
    def knows_the_producer(self) -> None:
        if not hasattr(self, "log") or self.log.log_start_offset == len(self.values):
            return
        known = self.log.producers.get(PRODUCER)
        assert known is not None
        assert known.last_sequence == self.sequences[-1]

    @invariant()
    def knows_every_epoch(self) -> None:
        if not hasattr(self, "log"):
            return
        first = max(self.log.log_start_offset, self.epochs_from)
        for offset in range(first, len(self.values)):
            assert self.log.epoch_of(offset) == self.epochs[offset]


TestTwoStarts = TwoStarts.TestCase
TestTwoStarts.settings = SETTLED


def play(rng: Random) -> None:
    """A history without lost bytes, many times as fast."""
    machine = TwoStarts()
    machine.begin(rng.randint(1, 3), rng.choice([0, 0, SIZE]))
    steps: list[Callable[[], object]] = [
        machine.learn,
        lambda: machine.copy(rng.randint(0, 5), told=rng.random() < 0.8),
        lambda: [machine.copy(number, told=True) for number in range(6)],
        lambda: machine.expire(rng.random()),
        lambda: machine.append(rng.randint(1, 4)),
        machine.lead_again,
        machine.retain,
        machine.retain,
        lambda: machine.delete_records(rng.random()),
        lambda: machine.truncate(1 - rng.random() / 2),
        # A leader that had not all of it, and goes on with other records.
        lambda: [machine.truncate(rng.random()), machine.append(4), machine.sync(all_of_it=True)],
        machine.go_on_behind_the_store,
        lambda: machine.sync(all_of_it=rng.random() < 0.7),
        machine.kill,
        machine.switch,
        lambda: machine.copy_or_not(rng.random() < 0.2, rng.randint(0, 8)),
        machine.settle,
    ]
    try:
        for _ in range(40):
            step = rng.choice(steps)
            if step != machine.settle or machine.may_settle:
                step()
            machine.has_every_record()
            machine.knows_every_epoch()
            machine.knows_the_producer()
    finally:
        machine.teardown()


def test_quick_histories() -> None:
    for number in range(60):
        play(Random(number))


# -- planted bugs ----------------------------------------------------------------------------------


def _no_entry_means_0(patch: pytest.MonkeyPatch) -> None:
    load = recovery.load

    def believing(*args: object) -> recovery.Loaded:
        *first, known = args
        return load(*first, replace(known, has_start=True))  # type: ignore[arg-type,type-var]

    patch.setattr("skylog.log.log.load", believing)


def _moved(change: Callable[[int, int], int], patch: pytest.MonkeyPatch) -> None:
    right = Log.remote_moved

    def wrong(self: Log, highest: int, remote_end: int) -> None:
        right(self, highest, change(highest, remote_end))

    patch.setattr(Log, "remote_moved", wrong)


def _local_retention_moves_the_log_start(patch: pytest.MonkeyPatch) -> None:
    right = trimming.Trimming._move_local_start

    def wrong(self: trimming.Trimming, offset: int) -> None:
        right(self, offset)
        self._log.log_start_offset = max(self._log.log_start_offset, offset)

    patch.setattr(trimming.Trimming, "_move_local_start", wrong)


def _no_roll(patch: pytest.MonkeyPatch) -> None:
    right = retention.deletable_segments

    def wrong(log: Log, now_ms: int) -> retention.Verdict:
        return right(log, now_ms)._replace(rolls=False)

    patch.setattr(trimming, "deletable_segments", wrong)


def _log_start_not_pinned(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Host, "pin_start", lambda self, log: None)


def _epochs_cut_at_the_local_start(patch: pytest.MonkeyPatch) -> None:
    right = trimming.Trimming._move_local_start

    def wrong(self: trimming.Trimming, offset: int) -> None:
        right(self, offset)
        self._log.companions.truncate_start(offset)

    patch.setattr(trimming.Trimming, "_move_local_start", wrong)


def _truncation_keeps_the_remote_end(patch: pytest.MonkeyPatch) -> None:
    right = Log._reload

    def wrong(self: Log, end: int, start: int) -> None:
        before = self.remote_end
        right(self, end, start)
        self.remote_end = before

    patch.setattr(Log, "_reload", wrong)


@pytest.mark.parametrize(
    "plant",
    [
        _no_entry_means_0,
        partial(_moved, lambda highest, end: highest + 1),
        partial(_moved, lambda highest, end: end + 1),
        _local_retention_moves_the_log_start,
        _no_roll,
        _log_start_not_pinned,
        _epochs_cut_at_the_local_start,
        _truncation_keeps_the_remote_end,
    ],
    ids=[
        "no entry means 0",
        "highest instead of gapless",
        "off by one",
        "local retention moves the log start",
        "no roll on breach",
        "log start not pinned",
        "epochs cut at the local start",
        "truncation keeps the remote end",
    ],
)
def test_planted_bugs_are_found(
    plant: Callable[[pytest.MonkeyPatch], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    plant(monkeypatch)
    with pytest.raises((AssertionError, KafkaError)):
        for number in range(2_000):
            play(Random(number))
