"""The simulation of replication finds each of these planted bugs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import sim.replication.broker as simulated
from sim.replication.world import World
from skylog.controller.partition_change import PartitionChange
from skylog.kernel.errors import KafkaError
from skylog.replication.follower import FetchState
from skylog.replication.leader import Leader
from skylog.replication.partition import Partition
from tests.property.kept_seeds import kept

SEEDS_MAX = 200
# Seeds that show a rare bug; others are tried after them.
FIRST = {each.why: each.seed for each in kept("sim.replication")}
Patch = Callable[[pytest.MonkeyPatch], None]
BUGS: dict[str, Patch] = {}


def bug(plant: Patch) -> Patch:
    BUGS[plant.__name__.replace("_", " ")] = plant
    return plant


@bug
def commits_what_the_leader_alone_has(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Leader, "high_watermark", lambda self, current, end_offset, now_ms: end_offset)


@bug
def waits_for_the_fastest_replica_only(patch: pytest.MonkeyPatch) -> None:
    def high_watermark(self: Leader, current: int, end_offset: int, now_ms: int) -> int:
        ends = [f.end_offset for f in self.followers.values() if f.broker_id in self.maximal_isr]
        return max(current, min(end_offset, max(ends, default=end_offset)))

    patch.setattr(Leader, "high_watermark", high_watermark)


@bug
def takes_a_removal_for_granted(patch: pytest.MonkeyPatch) -> None:
    """Until the controller has agreed, the replica being removed may still be elected."""
    real = Leader._propose

    def propose(self: Leader, isr: frozenset[int], *args: Any, **more: Any) -> Any:
        change = real(self, isr, *args, **more)
        self.maximal_isr = isr
        return change

    patch.setattr(Leader, "_propose", propose)


@bug
def does_not_count_a_replica_being_added(patch: pytest.MonkeyPatch) -> None:
    real = Leader._propose

    def propose(self: Leader, isr: frozenset[int], *args: Any, **more: Any) -> Any:
        change = real(self, isr, *args, **more)
        self.maximal_isr = self.isr
        return change

    def high_watermark(self: Leader, current: int, end_offset: int, now_ms: int) -> int:
        ends = [f.end_offset for f in self.followers.values() if f.broker_id in self.maximal_isr]
        return max(current, min([end_offset, *ends]))

    patch.setattr(Leader, "_propose", propose)
    patch.setattr(Leader, "high_watermark", high_watermark)


@bug
def adds_a_replica_that_lacks_committed_records(patch: pytest.MonkeyPatch) -> None:
    real = Leader.expansion

    def expansion(self: Leader, replica: int, high_watermark: int, broker_epoch: int) -> Any:
        self.epoch_start_offset = 0
        return real(self, replica, 0, broker_epoch)

    patch.setattr(Leader, "expansion", expansion)


@bug
def forgets_a_change_when_the_previous_one_arrives(patch: pytest.MonkeyPatch) -> None:
    """The response to the previous one was faster than metadata, and the next is in flight."""
    real = Leader.lead

    def lead(self: Leader, epochs: Any, replicas: Any, isr: Any, *rest: Any) -> None:
        self._commit_isr(isr)
        real(self, epochs, replicas, isr, *rest)

    patch.setattr(Leader, "lead", lead)


@bug
def never_truncates_a_diverging_log(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(simulated, "find_divergence", lambda log, offset, last_epoch: None)


@bug
def compares_ends_instead_of_epochs(patch: pytest.MonkeyPatch) -> None:
    def find(log: Any, offset: int, last_epoch: int) -> Any:
        return (log.latest_epoch, log.log_end_offset) if offset > log.log_end_offset else None

    patch.setattr(simulated, "find_divergence", find)


@bug
def truncates_to_its_own_high_watermark(patch: pytest.MonkeyPatch) -> None:
    """A record may be committed before the follower knows it."""
    real = simulated.SimBroker._follow

    def follow(self: Any, version: Any) -> None:
        before = None if self.partition is None else self.partition.leader_epoch
        real(self, version)
        if self.partition is not None and self.partition.leader_epoch != before:
            log = self.log
            if not self.partition.is_leader and self._state is not None:
                self.partition.truncate_to(log.high_watermark)
                self._state.restart(log)

    patch.setattr(simulated.SimBroker, "_follow", follow)


@bug
def truncates_too_little_if_it_lacks_the_epoch(patch: pytest.MonkeyPatch) -> None:
    def offset(log: Any, leader: Any) -> int:
        return min(leader.end_offset, log.log_end_offset)

    patch.setattr(simulated, "truncation_offset", offset)


@bug
def does_not_record_the_start_of_an_epoch(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(simulated.SimLog, "assign_epoch", lambda self, epoch: None)


@bug
def writes_although_too_few_are_in_sync(patch: pytest.MonkeyPatch) -> None:
    real = simulated.SimBroker.produce

    def produce(self: Any, values: list[int], *, acks_all: bool) -> None:
        """A refused batch is written all the same."""
        real(self, values, acks_all=acks_all)
        if self.partition is not None and values[0] in self.world.checks.refused:
            batches: Any = [simulated.SimBatch(values)]
            self.partition.append(batches, 0, acks_all=False)

    patch.setattr(simulated.SimBroker, "produce", produce)


@bug
def acknowledges_below_min_isr(patch: pytest.MonkeyPatch) -> None:
    def weigh(self: Partition) -> None:
        self.enough_in_sync = True

    patch.setattr(Partition, "_weigh_in_sync", weigh)


@bug
def follows_the_leaders_watermark_beyond_its_own_end(patch: pytest.MonkeyPatch) -> None:
    real = Partition.follow

    def follow(self: Partition, high_watermark: int, log_start_offset: int) -> None:
        real(self, high_watermark, log_start_offset)
        if high_watermark > self.log.high_watermark:
            self.log.high_watermark = high_watermark
            self._tell_committed(high_watermark)

    patch.setattr(Partition, "follow", follow)


@bug
def never_expands_the_isr(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Leader, "expansion", lambda self, *args: None)


@bug
def fetches_from_the_old_offset_after_a_truncation(patch: pytest.MonkeyPatch) -> None:
    def restart(self: FetchState, log: Any) -> None:
        self.last_epoch = log.latest_epoch

    patch.setattr(FetchState, "restart", restart)


@bug
def counts_a_former_replica_as_eligible(patch: pytest.MonkeyPatch) -> None:
    """It has deleted its log, and may come back empty (found by the simulation)."""
    real = PartitionChange._work_out_elr

    def work_out_elr(self: PartitionChange) -> None:
        replicas, self.replicas = self.replicas, [*self.replicas, *self.elr, *self.partition.isr]
        real(self)
        self.replicas = replicas

    patch.setattr(PartitionChange, "_work_out_elr", work_out_elr)


TIERED: dict[str, Patch] = {}


def tiered_bug(plant: Patch) -> Patch:
    TIERED[plant.__name__.replace("_", " ")] = plant
    return plant


@tiered_bug
def fetches_into_a_log_without_history(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(simulated, "lacks_history", lambda log: False)


@tiered_bug
def takes_the_local_start_for_the_log_start(patch: pytest.MonkeyPatch) -> None:
    real = simulated.SimLog.truncate_fully_and_start_at

    def truncate(self: Any, offset: int, log_start: int | None = None) -> None:
        real(self, offset)

    patch.setattr(simulated.SimLog, "truncate_fully_and_start_at", truncate)


@tiered_bug
def looks_for_the_segment_in_the_epoch_before(patch: pytest.MonkeyPatch) -> None:
    def target(boundary: Any, earlier: Any) -> int:
        found: int = boundary.epoch if earlier is None else earlier.epoch
        return found

    patch.setattr(simulated, "target_epoch", target)


def caught_at(name: str, seeds: int, *, tiered: bool = False) -> int | None:
    """A seed that shows the bug."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SKYLOG_INVARIANT_RAISES", "1")
        (TIERED if tiered else BUGS)[name](patch)
        for seed in (FIRST.get(name, 0), *range(seeds)):
            try:
                World(seed, tiered=tiered).play()
            except (AssertionError, KafkaError):
                return seed
    return None


@pytest.mark.parametrize("name", list(BUGS))
def test_a_planted_bug_is_caught(name: str) -> None:
    assert caught_at(name, SEEDS_MAX) is not None


@pytest.mark.parametrize("name", list(TIERED))
def test_a_planted_bug_of_a_tiered_topic_is_caught(name: str) -> None:
    assert caught_at(name, SEEDS_MAX, tiered=True) is not None
