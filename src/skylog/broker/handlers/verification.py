"""Before the first batch of a transaction is written, its coordinator verifies it (KIP-890).

Old clients add partitions to their transaction themselves, and the coordinator is asked whether
they did. Newer clients leave this to the broker that writes.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import IntEnum
from typing import TYPE_CHECKING

from skylog.broker.handlers.remote_verifier import RemoteVerifier
from skylog.kernel.errors import ErrorCode, KafkaError
from skylog.kernel.topics import TRANSACTION_STATE

if TYPE_CHECKING:
    from skylog.broker.partitions.port import ServedPartition
    from skylog.broker.services import Services
    from skylog.log.verification import Guard
    from skylog.transactions.ports import TransactionVerifier

TopicPartition = tuple[str, int]


class Knows(IntEnum):
    """What a request's version supports of transactions."""

    VERIFICATION = 0
    # TRANSACTION_ABORTABLE: the producer must abort the transaction.
    ABORTABLE = 1
    # The broker adds partitions when they are written; the epoch grows with each transaction.
    ADDING = 2


@dataclass(frozen=True, slots=True)
class Writer:
    """The transactional producer of a request."""

    transactional_id: str
    producer_id: int
    producer_epoch: int
    knows: Knows


@dataclass(slots=True)
class Verification:
    """The verification of one request: partitions to verify, and refusals."""

    writer: Writer
    # False if the broker's settings disable verification.
    is_required: bool = True
    guards: dict[TopicPartition, Guard] = field(default_factory=dict)
    errors: dict[TopicPartition, ErrorCode] = field(default_factory=dict)


def start_verification(
    services: Services, writer: Writer, batches: Iterable[tuple[ServedPartition, int]]
) -> Verification:
    """Find the partitions in which the transaction is not open; each has its base sequence."""
    required = services.configs.current.transactions.verification_enable
    found = Verification(writer, required)
    if not required and writer.knows < Knows.ADDING:
        return found
    now_ms = services.clock.now_ms()
    for partition, sequence in batches:
        place = partition.topic, partition.index
        try:
            guard = partition.start_verification(
                writer.producer_id,
                sequence,
                writer.producer_epoch,
                epoch_grows=writer.knows >= Knows.ADDING,
                now_ms=now_ms,
            )
        except KafkaError as error:
            found.errors[place] = error.code
            continue
        if guard is not None:
            found.guards[place] = guard
    return found


async def finish_verification(services: Services, verification: Verification) -> None:
    """Ask the coordinator; its refusals are added to the errors."""
    writer = verification.writer
    verifier = _verifier(services, writer.transactional_id)
    if verifier is None:
        missing = ErrorCode.COORDINATOR_NOT_AVAILABLE
        verification.errors.update(dict.fromkeys(verification.guards, missing))
        return
    ask = verifier.add if writer.knows >= Knows.ADDING else verifier.verify
    codes = await ask(
        writer.transactional_id,
        writer.producer_id,
        writer.producer_epoch,
        tuple(verification.guards),
    )
    for place, code in codes.items():
        if code is not ErrorCode.NONE:
            verification.errors[place] = _understood(code, writer.knows)


def _verifier(services: Services, transactional_id: str) -> TransactionVerifier | None:
    """The coordinator of an id, wherever it is; None if there is none."""
    coordinator = services.transactions
    state = services.image.partition(TRANSACTION_STATE, coordinator.partition_for(transactional_id))
    if state is None or state.leader < 0:
        return None
    if state.leader == services.settings.node.node_id:
        return coordinator
    wait_ms = services.settings.transactions.add_wait_ms_max
    return RemoteVerifier(state.leader, services.peers, wait_ms)


def _understood(code: ErrorCode, knows: Knows) -> ErrorCode:
    if code is ErrorCode.PRODUCER_FENCED:
        return ErrorCode.INVALID_PRODUCER_EPOCH
    if code is ErrorCode.TRANSACTION_ABORTABLE and knows < Knows.ABORTABLE:
        return ErrorCode.INVALID_TXN_STATE
    return code
