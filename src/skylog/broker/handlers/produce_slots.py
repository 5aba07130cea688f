"""One partition of a Produce request on its way to its answer."""

from __future__ import annotations

from dataclasses import dataclass

from skylog.broker.net.context import RequestContext
from skylog.diskless.partitions import DisklessPartition
from skylog.kernel.errors import ErrorCode, KafkaError
from skylog.log.verification import CLIENT, Origin
from skylog.replication.partition import Partition
from skylog.wire.messages.produce_request import PartitionProduceData
from skylog.wire.messages.produce_response import (
    BatchIndexAndErrorMessage,
    LeaderIdAndEpoch,
    PartitionProduceResponse,
)
from skylog.wire.topic_rules import TopicRules
from skylog.wire.validation import UnreadableError, ValidationError

# Older clients could not read who leads instead.
TELL_LEADER_FROM = 10


@dataclass(slots=True)
class Slot:
    """``partition`` and ``rules`` are None once it has failed."""

    data: PartitionProduceData
    answer: PartitionProduceResponse
    partition: Partition | DisklessPartition | None = None
    rules: TopicRules | None = None
    origin: Origin = CLIENT


def fail(context: RequestContext, slot: Slot, error: KafkaError, topic: str) -> None:
    """Answer with an error; the slot goes no further."""
    answer = slot.answer
    answer.error_code = error.code
    slot.partition = slot.rules = None
    if context.services.image.topic(topic) is not None:  # the name is what a client says
        context.services.traffic.rejected(topic)
    if isinstance(error, UnreadableError) and error.code is ErrorCode.CORRUPT_MESSAGE:
        answer.error_message = error.message
    if isinstance(error, ValidationError):
        # Kafka explains only what single records did wrong.
        answer.error_message = error.message
        answer.record_errors = [
            BatchIndexAndErrorMessage(index, message) for index, message in error.record_errors
        ]
    if error.code is ErrorCode.NOT_LEADER_OR_FOLLOWER and context.version >= TELL_LEADER_FROM:
        state = context.services.image.partition(topic, answer.index)
        if state is not None:
            answer.current_leader = LeaderIdAndEpoch(state.leader, state.leader_epoch)


def gone(slot: Slot) -> KafkaError | None:
    """Why a partition cannot be written to any more, after something else was waited for."""
    partition = slot.partition
    if partition is None:
        return None
    if partition.deleted:
        return KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    if isinstance(partition, Partition) and not partition.is_leader:
        return KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER)
    return None
