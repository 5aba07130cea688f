"""Transactional batches in a Produce request: who may send them."""

from __future__ import annotations

from skylog.broker.context import RequestContext
from skylog.kernel.acl import AclOperation, ResourceType
from skylog.kernel.errors import ErrorCode, KafkaError
from skylog.wire.batch import ATTRIBUTES_AT, HEADER_BYTES, TRANSACTIONAL_BIT
from skylog.wire.messages.produce_request import ProduceRequest, TopicProduceData


def transactional_denied(context: RequestContext, request: ProduceRequest) -> KafkaError | None:
    """Transactional batches need a transactional id that the client may write with.

    The batch's own attributes decide, not what the client says of itself.
    """
    if not any(map(_has_transactional, request.topic_data)):
        return None
    allowed = request.transactional_id is not None and context.authorize(
        AclOperation.WRITE, ResourceType.TRANSACTIONAL_ID, request.transactional_id
    )
    if not allowed:
        return KafkaError(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
    return KafkaError(ErrorCode.INVALID_TXN_STATE, "Transactions are not supported yet.")


def _has_transactional(topic: TopicProduceData) -> bool:
    for data in topic.partition_data:
        records = data.records
        if (
            records is not None
            and len(records) >= HEADER_BYTES
            and records[ATTRIBUTES_AT] & TRANSACTIONAL_BIT
        ):
            return True
    return False
