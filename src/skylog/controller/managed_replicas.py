"""Replicas of diskless partitions: the controller decides their number and placement.

Nothing is copied to a new replica, so a reassignment is a single metadata change, complete at once.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from skylog.controller.assignments import bad_assignment, new_partition
from skylog.controller.image.topics import Partition, Topic
from skylog.controller.racks import RackPlacer, rack_aware
from skylog.controller.requests import WarnOfPlacement
from skylog.controller.state import ControllerState
from skylog.kernel.errors import ErrorCode, KafkaError
from skylog.kernel.limits import CONTROLLER_NOTES_MAX
from skylog.replicated.machine import Effect, Note, Result, StartTimer
from skylog.wire.messages.partition_change_record import PartitionChangeRecord

_ALLOWED_FACTORS: Final = (-1, 1)
_FACTOR_IS_MANAGED: Final = (
    "replication factor is system-managed for diskless topics; "
    "use replicationFactor=-1 or replicationFactor=1"
)
_PLACEMENT_IS_MANAGED: Final = (
    "replica assignments cannot be specified for diskless topics; "
    "placement is system-managed at creation time"
)


def check_managed(*, assigned: bool, replication_factor: int = -1) -> None:
    """Refuse placement by clients; tools that must give a factor may use 1."""
    if assigned:
        raise KafkaError(ErrorCode.INVALID_REQUEST, _PLACEMENT_IS_MANAGED)
    if replication_factor not in _ALLOWED_FACTORS:
        raise KafkaError(ErrorCode.INVALID_REQUEST, _FACTOR_IS_MANAGED)


def managed_partitions(state: ControllerState, count: int, placer: RackPlacer) -> list[Partition]:
    """New partitions with a replica in each current rack."""
    if not placer.has_active:
        raise KafkaError(
            ErrorCode.INVALID_REPLICATION_FACTOR,
            f"Unable to replicate the partition {placer.rack_count} time(s): "
            "All brokers are currently fenced or in controlled shutdown.",
        )
    partitions = []
    for _ in range(count):
        replicas = placer.one_per_rack()
        isr = [replica for replica in replicas if state.image.brokers.is_active(replica)]
        partitions.append(new_partition(state, replicas, isr))
    return partitions


def move_replicas(
    state: ControllerState, topic: Topic, index: int, target: Sequence[int]
) -> PartitionChangeRecord | None:
    """Replace a partition's replicas in one step; at least one must be alive."""
    if not any(state.image.brokers.is_active(replica) for replica in target):
        raise bad_assignment(
            f"All brokers of the assignment of {topic.name}-{index} are fenced or in controlled "
            "shutdown."
        )
    change = state.change(topic, index)
    change.replicas = list(target)
    change.removing, change.adding = [], []
    change.follow_liveness()
    return change.build()


def placement_notes(
    state: ControllerState, topic: Topic, index: int, replicas: Sequence[int]
) -> Iterator[Note]:
    """Placements to warn about: several replicas in one rack, or a single one."""
    racks = [state.rack_of(replica) for replica in replicas]
    if not rack_aware(racks):
        yield Note(
            f"[Controller] Diskless topic '{topic.name}' partition {index} has non-rack-aware "
            f"placement: replicas {_listed(replicas)} map to racks {_listed(racks)}. "
            "Expected one replica per rack.",
            warning=True,
        )
    if len(replicas) == 1 and state.rack_count() > 1:
        yield _single_replica(topic)


def _single_replica(topic: Topic) -> Note:
    return Note(
        f"Diskless topic '{topic.name}' has RF=1; consider expanding to rack-aware placement",
        warning=True,
    )


def _listed(items: Sequence[object]) -> str:
    return f"[{','.join(map(str, items))}]"


def has_single_replica(topic: Topic) -> bool:
    return any(len(partition.replicas) == 1 for partition in tuple(topic.partitions.values()))


def warning_timer(delay_ms: int) -> StartTimer:
    return StartTimer("diskless-placement-warning", delay_ms, WarnOfPlacement())


def warn_of_placement(state: ControllerState) -> Result[None]:
    """Repeat warnings that still apply; if there are very many, only the first and the number of
    others."""
    notes: list[Effect] = []
    left = 0
    for note in _all_notes(state):
        if len(notes) < CONTROLLER_NOTES_MAX:
            notes.append(note)
        else:
            left += 1
    if left:
        notes.append(Note(f"{left} more diskless placements are like these", warning=True))
    next_warning = warning_timer(state.replica_pacing().warning_interval_ms)
    return Result(None, effects=[*notes, next_warning])


def _all_notes(state: ControllerState) -> Iterator[Note]:
    several_racks = state.rack_count() > 1
    for topic in state.image.topics.by_id.values():
        if not topic.diskless_enabled:
            continue
        if several_racks and has_single_replica(topic):
            yield _single_replica(topic)
        for index, partition in topic.partitions.items():
            if partition.is_pure and len(partition.replicas) > 1:
                yield from placement_notes(state, topic, index, partition.replicas)
