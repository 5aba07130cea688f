"""Moves replicas of diskless partitions from brokers that are down to live ones.

=============================  ==================================================================
a replica's broker is          then
=============================  ==================================================================
not registered                 the partition is placed anew, one replica per rack, once
                               registrations have settled: it came from another cluster
registered, away for a while   it alone is replaced, in its rack if possible; the number stays
registered, just gone          as above, but only after a grace, lest each restart moves
                               everything; where no other replica is alive, one moves at once if
                               that keeps it in its rack, or is the only one
=============================  ==================================================================

Checked when the controller starts, when brokers join or leave, and periodically; a bounded number
per step. A broker that returns gets nothing back. If no broker can take over a replica, it stays
until one joins.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Final

from skylog.controller.image.topics import Partition, Topic
from skylog.controller.managed_replicas import move_replicas, placement_notes
from skylog.controller.racks import RackPlacer
from skylog.controller.requests import ReplaceOfflineReplicas, ReplicaWatch
from skylog.controller.settings import ReplicaPacing
from skylog.controller.state import ControllerState
from skylog.replicated.machine import Effect, Note, Result, StartTimer
from skylog.wire.schema import Message

_TIMER: Final = "diskless-offline-replicas"


def offline_timer(delay_ms: int = 0) -> StartTimer:
    return StartTimer(_TIMER, delay_ms, ReplaceOfflineReplicas())


def replace_offline_replicas(state: ControllerState, now_ms: int) -> Result[None]:
    """One step; the rest follows after the pacing interval."""
    pacing = state.replica_pacing()
    watch = _looked(state, now_ms)
    early_ms = watch.replaced_ms + pacing.interval_ms - now_ms
    if watch.replaced and early_ms > 0:
        return Result(None, (), [watch], [offline_timer(early_ms)])
    step = _Step(state, watch, pacing, now_ms)
    step.run()
    if step.replaced:
        watch = replace(watch, replaced_ms=now_ms, replaced=watch.replaced + step.replaced)
    effects = [*step.notes, offline_timer(max(1, step.next_ms - now_ms))]
    return Result(None, step.records, [watch], effects)


def _looked(state: ControllerState, now_ms: int) -> ReplicaWatch:
    """Times are counted from when the controller first notices."""
    before, brokers = state.watch, state.image.brokers.by_id
    registered = frozenset(brokers)
    return replace(
        before,
        offline_since={
            broker_id: before.offline_since.get(broker_id, now_ms)
            for broker_id, broker in brokers.items()
            if not broker.active
        },
        registered=registered,
        newcomer_ms=now_ms if registered - before.registered else before.newcomer_ms,
    )


def offline_partitions(state: ControllerState) -> Iterator[tuple[Topic, int, Partition]]:
    """Diskless partitions with a replica on a broker that is down."""
    brokers = state.image.brokers
    counts = state.image.topics.replica_counts
    away = {broker_id for broker_id in counts if not brokers.is_active(broker_id)}
    if not away:
        return
    for topic in state.image.topics.by_id.values():
        if topic.diskless_enabled:
            for index, partition in topic.partitions.items():
                if partition.is_pure and not away.isdisjoint(partition.replicas):
                    yield topic, index, partition


@dataclass(slots=True)
class _Step:
    """One check of all of them."""

    state: ControllerState
    watch: ReplicaWatch
    pacing: ReplicaPacing
    now_ms: int
    records: list[Message] = field(default_factory=list)
    notes: list[Effect] = field(default_factory=list)
    replaced: int = 0
    # When to check again.
    next_ms: int = 0

    def run(self) -> None:
        self.next_ms = self.now_ms + self.pacing.scan_interval_ms
        placer = self.state.rack_placer()
        if not placer.has_active:
            return
        waiting: list[tuple[Topic, int, Partition]] = []
        for topic, index, partition in offline_partitions(self.state):
            if self._alive(partition):
                waiting.append((topic, index, partition))
            else:  # these have no leader: they come first
                self._repair(placer, topic, index, partition)
        for topic, index, partition in waiting:
            self._repair(placer, topic, index, partition)

    def _alive(self, partition: Partition) -> list[int]:
        brokers = self.state.image.brokers
        return [replica for replica in partition.replicas if brokers.is_active(replica)]

    def _repair(self, placer: RackPlacer, topic: Topic, index: int, partition: Partition) -> None:
        if len(self.records) >= self.pacing.batch_size:
            self.next_ms = min(self.next_ms, self.now_ms + self.pacing.interval_ms)
            return
        strangers = [one for one in partition.replicas if one not in self.watch.registered]
        if strangers:
            self._place_anew(placer, topic, index, partition, strangers)
        else:
            self._replace_some(placer, topic, index, partition)

    def _place_anew(
        self,
        placer: RackPlacer,
        topic: Topic,
        index: int,
        partition: Partition,
        strangers: list[int],
    ) -> None:
        if not self._is_due(self.watch.newcomer_ms + self.pacing.settle_ms):
            return
        for broker_id in strangers:
            self._note(
                f"Detected diskless partition '{topic.name}-{index}' with non-existent broker "
                f"(broker {broker_id} not registered)"
            )
        target = placer.one_per_rack(keep=self._alive(partition))
        self._move(topic, index, partition, target)
        listed = ",".join(map(str, target))
        self._note(
            f"Reassigned diskless partition '{topic.name}-{index}' to RF={len(target)}, "
            f"replicas=[{listed}]"
        )

    def _replace_some(
        self, placer: RackPlacer, topic: Topic, index: int, partition: Partition
    ) -> None:
        since = self.watch.offline_since
        offline = [replica for replica in partition.replicas if replica in since]
        due = [one for one in offline if self._is_due(since[one] + self.pacing.grace_ms)]
        # No replica is alive: one moves at once, but leaves its rack only after the grace period.
        # Any broker serves the partition meanwhile, and a cluster that was shut down keeps its
        # racks.
        urgent = not due and len(offline) == len(partition.replicas)
        target = list(partition.replicas)
        moves: list[tuple[int, int]] = []
        for gone in offline if urgent else due:
            in_rack = urgent and len(offline) > 1
            found = placer.replacement(gone, target, in_rack=in_rack)
            if found is not None:
                target[target.index(gone)] = found
                moves.append((gone, found))
                if urgent:
                    break
        if not moves:
            return
        self._move(topic, index, partition, target)
        for gone, found in moves:
            name = f"{topic.name}-{index}"
            self._note(f"Detected diskless partition '{name}' with offline replica (broker {gone})")
            self._note(f"Reassigned diskless partition '{name}' replica: broker {gone} → {found}")
        if any(self.state.rack_of(gone) != self.state.rack_of(found) for gone, found in moves):
            self.notes += placement_notes(self.state, topic, index, target)

    def _move(self, topic: Topic, index: int, partition: Partition, target: list[int]) -> None:
        record = move_replicas(self.state, topic, index, target)
        if record is not None:
            self.records.append(record)
            self.replaced += len(set(target) - set(partition.replicas))

    def _is_due(self, at_ms: int) -> bool:
        if at_ms > self.now_ms:
            self.next_ms = min(self.next_ms, at_ms)
            return False
        return True

    def _note(self, message: str) -> None:
        self.notes.append(Note(message))
