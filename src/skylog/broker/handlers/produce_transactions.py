"""Transactional batches in Produce: authorization, and verification with the coordinator."""

from __future__ import annotations

from struct import Struct
from typing import TYPE_CHECKING, Final

from skylog.broker.handlers.verification import Knows, Verification, Writer, start_verification
from skylog.broker.net.context import RequestContext
from skylog.kernel.acl import AclOperation, ResourceType
from skylog.kernel.errors import ErrorCode, KafkaError
from skylog.log.verification import Origin
from skylog.wire.batch import ATTRIBUTES_AT, HEADER_BYTES, MAGIC, TRANSACTIONAL_BIT
from skylog.wire.messages.produce_request import PartitionProduceData, ProduceRequest

if TYPE_CHECKING:
    from skylog.broker.handlers.produce import Produce
    from skylog.broker.partitions.port import ServedPartition

_MAGIC_AT: Final = 16
# Where a batch names its producer: id, epoch and base sequence.
_PRODUCER_AT: Final = 43
_PRODUCER: Final = Struct(">qhi")
# The first versions that support more of transactions than verification.
_ABORTABLE_FROM: Final = 11
_ADDING_FROM: Final = 12
# The coordinator cannot decide now: clients treat this code as a reason to retry.
_UNVERIFIED: Final = frozenset(
    {
        ErrorCode.NETWORK_EXCEPTION,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NOT_COORDINATOR,
    }
)


def is_transactional(data: PartitionProduceData) -> bool:
    """The batch's own attributes decide, not the transactional id in the request."""
    records = data.records
    return (
        records is not None
        and len(records) >= HEADER_BYTES
        and records[_MAGIC_AT] == MAGIC
        and bool(records[ATTRIBUTES_AT] & TRANSACTIONAL_BIT)
    )


def has_transactional(request: ProduceRequest) -> bool:
    for topic in request.topic_data:
        for data in topic.partition_data:
            if is_transactional(data):
                return True
    return False


def transactional_denied(context: RequestContext, request: ProduceRequest) -> KafkaError | None:
    """Transactional batches need a transactional id that the client may write with."""
    allowed = request.transactional_id is not None and context.authorize(
        AclOperation.WRITE, ResourceType.TRANSACTIONAL_ID, request.transactional_id
    )
    return None if allowed else KafkaError(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)


def begin_verification(produce: Produce) -> Verification | None:
    """The verifications that the coordinator must do; None if there are none."""
    producers: set[tuple[int, int]] = set()
    batches: list[tuple[ServedPartition, int]] = []
    for slot in produce.slots:
        partition = slot.partition
        if partition is None or not is_transactional(slot.data):
            continue
        if not partition.takes_transactions:
            produce.fail(slot, KafkaError(ErrorCode.INVALID_REQUEST))
            continue
        producer_id, epoch, sequence = _PRODUCER.unpack_from(slot.data.records or b"", _PRODUCER_AT)
        if producer_id >= 0:
            producers.add((producer_id, epoch))
            batches.append((partition, sequence))
    if not producers:
        return None
    if len(producers) > 1:
        raise KafkaError(
            ErrorCode.INVALID_PRODUCER_ID_MAPPING,
            "Transactional records contained more than one producer ID",
        )
    context, transactional_id = produce.context, produce.request.transactional_id or ""
    writer = Writer(transactional_id, *producers.pop(), _knows(context.version))
    found = start_verification(context.services, writer, batches)
    if found.guards:
        return found
    note_verified(produce, found)
    return None


def _knows(version: int) -> Knows:
    if version >= _ADDING_FROM:
        return Knows.ADDING
    return Knows.ABORTABLE if version >= _ABORTABLE_FROM else Knows.VERIFICATION


def note_verified(produce: Produce, found: Verification) -> None:
    """Continue verified batches, and fail the rest."""
    if not found.errors and not found.guards and found.is_required:
        return  # all are in open transactions: their origin is that of any batch
    for slot in produce.slots:
        partition = slot.partition
        if partition is None or not is_transactional(slot.data):
            continue
        place = partition.topic, partition.index
        code = found.errors.get(place)
        if code is None:
            guard = found.guards.get(place)
            slot.origin = Origin(guard=guard, is_verified=found.is_required)
            continue
        error = _refusal(code, found.writer.knows)
        produce.fail(slot, error)
        slot.answer.error_message = error.message or None


def _refusal(code: ErrorCode, knows: Knows) -> KafkaError:
    """The coordinator's error, translated for a producer."""
    if code is ErrorCode.INVALID_TXN_STATE:
        return KafkaError(code, "Partition was not added to the transaction")
    is_early = code is ErrorCode.CONCURRENT_TRANSACTIONS and knows < Knows.ADDING
    if code in _UNVERIFIED or is_early:
        return KafkaError(
            ErrorCode.NOT_ENOUGH_REPLICAS,
            "Unable to verify the partition has been added to the transaction."
            f" Underlying error: {code.name}",
        )
    return KafkaError(code)
