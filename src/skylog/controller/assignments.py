"""The replicas of new partitions: placed by the controller, or assigned manually."""

from __future__ import annotations

from collections.abc import Sequence

from skylog.controller.draws import Draws
from skylog.controller.image.topics import Partition
from skylog.controller.placement import place
from skylog.controller.state import ControllerState
from skylog.kernel.errors import ErrorCode, KafkaError


def placed_partitions(
    state: ControllerState, count: int, replication_factor: int, draws: Draws
) -> list[Partition]:
    prefix = f"Unable to replicate the partition {replication_factor} time(s): "
    try:
        placed = place(state.usable_brokers(), count, replication_factor, draws)
    except KafkaError as error:
        raise KafkaError(error.code, f"{prefix}{error.message}") from error
    partitions = []
    for replicas in placed:
        isr = [replica for replica in replicas if state.image.brokers.is_active(replica)]
        if not isr:
            raise KafkaError(
                ErrorCode.INVALID_REPLICATION_FACTOR,
                f"{prefix}All brokers are currently fenced or in controlled shutdown.",
            )
        partitions.append(new_partition(state, replicas, isr))
    return partitions


def assigned_partition(
    state: ControllerState, index: int, replicas: Sequence[int], replication_factor: int | None
) -> Partition:
    check_assignment(state, replicas, replication_factor)
    isr = [replica for replica in replicas if state.image.brokers.is_active(replica)]
    if not isr:
        raise bad_assignment(
            f"All brokers of the assignment of partition {index} are fenced or in controlled "
            "shutdown."
        )
    return new_partition(state, replicas, isr)


def check_assignment(
    state: ControllerState, replicas: Sequence[int], replication_factor: int | None = None
) -> None:
    """Kafka's rules for a manual assignment; INVALID_REPLICA_ASSIGNMENT says which failed."""
    if not replicas:
        raise bad_assignment("The manual partition assignment includes an empty replica list.")
    seen: set[int] = set()
    for replica in sorted(replicas):
        if state.image.broker(replica) is None:
            raise bad_assignment(
                f"The manual partition assignment includes broker {replica}, but no such broker "
                "is registered."
            )
        if replica in seen:
            raise bad_assignment(
                f"The manual partition assignment includes broker {replica} more than once."
            )
        seen.add(replica)
    if replication_factor is not None and len(replicas) != replication_factor:
        raise bad_assignment(
            f"The manual partition assignment includes a partition with {len(replicas)} "
            f"replica(s), but previous partitions have {replication_factor} replica(s)."
        )


def bad_assignment(why: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_REPLICA_ASSIGNMENT, why)


def new_partition(state: ControllerState, replicas: Sequence[int], isr: Sequence[int]) -> Partition:
    """One that has never had another leader than the first in sync."""
    return Partition(
        replicas=tuple(replicas),
        directories=tuple(state.default_directory(replica) for replica in replicas),
        isr=tuple(isr),
        leader=isr[0],
        leader_epoch=0,
        partition_epoch=0,
    )
