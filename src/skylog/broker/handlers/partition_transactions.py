"""WriteTxnMarkers and TxnOffsetCommit: the effects of transactions on this broker's partitions."""

from __future__ import annotations

from typing import Final

from skylog.broker.handlers.txn_markers import write_markers
from skylog.broker.handlers.verification import (
    Knows,
    Writer,
    finish_verification,
    start_verification,
)
from skylog.broker.net.context import RequestContext
from skylog.groups.responses import client_code
from skylog.kernel.acl import AclOperation, ResourceType
from skylog.kernel.errors import ErrorCode, KafkaError
from skylog.kernel.topics import CONSUMER_OFFSETS
from skylog.replicated.machine import InTransaction
from skylog.wire.messages.offset_commit_request import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from skylog.wire.messages.txn_offset_commit_request import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestTopic,
)
from skylog.wire.messages.txn_offset_commit_response import (
    TxnOffsetCommitResponse,
    TxnOffsetCommitResponsePartition,
    TxnOffsetCommitResponseTopic,
)
from skylog.wire.messages.write_txn_markers_request import WriteTxnMarkersRequest
from skylog.wire.messages.write_txn_markers_response import (
    WritableTxnMarkerPartitionResult,
    WritableTxnMarkerResult,
    WritableTxnMarkerTopicResult,
    WriteTxnMarkersResponse,
)

# TxnOffsetCommit: the first versions that support more than verification.
_ABORTABLE_FROM: Final = 4
_ADDING_FROM: Final = 5
# Older clients do not expect COORDINATOR_LOAD_IN_PROGRESS.
_LOADING_FROM: Final = 2
_NO_SEQUENCE: Final = -1


async def write_txn_markers(
    context: RequestContext, request: WriteTxnMarkersRequest
) -> WriteTxnMarkersResponse:
    """Handle WriteTxnMarkers, from a coordinator or from an administrator who ends a hanging
    transaction."""
    allowed = context.authorize_cluster(
        AclOperation.ALTER, audit=False
    ) or context.authorize_cluster(AclOperation.CLUSTER_ACTION)
    if not allowed:
        raise KafkaError(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    return await write_markers(context.services, request)


def write_txn_markers_failed(
    request: WriteTxnMarkersRequest, error: KafkaError
) -> WriteTxnMarkersResponse:
    results = []
    for marker in request.markers:
        topics = [
            WritableTxnMarkerTopicResult(
                topic.name,
                [WritableTxnMarkerPartitionResult(i, error.code) for i in topic.partition_indexes],
            )
            for topic in marker.topics
        ]
        results.append(WritableTxnMarkerResult(marker.producer_id, topics))
    return WriteTxnMarkersResponse(results)


async def txn_offset_commit(
    context: RequestContext, request: TxnOffsetCommitRequest
) -> TxnOffsetCommitResponse:
    """Handle TxnOffsetCommit: offsets that count once the producer's transaction has committed."""
    if not context.authorize(
        AclOperation.WRITE, ResourceType.TRANSACTIONAL_ID, request.transactional_id
    ):
        raise KafkaError(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
    if not context.allowed(request.group_id):
        raise KafkaError(ErrorCode.GROUP_AUTHORIZATION_FAILED)
    answers: dict[str, TxnOffsetCommitResponseTopic] = {}
    accepted: list[OffsetCommitRequestTopic] = []
    for topic in request.topics:
        known = _known_topic(context, topic, answers)
        if known is not None:
            accepted.append(known)
    if accepted:
        for name, index, code in await _commit(context, request, accepted):
            _answer(answers, name, index, code)
    return TxnOffsetCommitResponse(topics=list(answers.values()))


def txn_offset_commit_failed(
    request: TxnOffsetCommitRequest, error: KafkaError
) -> TxnOffsetCommitResponse:
    answers: dict[str, TxnOffsetCommitResponseTopic] = {}
    for topic in request.topics:
        for partition in topic.partitions:
            _answer(answers, topic.name, partition.partition_index, error.code)
    return TxnOffsetCommitResponse(topics=list(answers.values()))


def _answer(
    answers: dict[str, TxnOffsetCommitResponseTopic], topic: str, index: int, code: int
) -> None:
    found = answers.setdefault(topic, TxnOffsetCommitResponseTopic(topic))
    found.partitions.append(TxnOffsetCommitResponsePartition(index, code))


def _known_topic(
    context: RequestContext,
    topic: TxnOffsetCommitRequestTopic,
    answers: dict[str, TxnOffsetCommitResponseTopic],
) -> OffsetCommitRequestTopic | None:
    """The partitions that exist and may be read; for the others the error is returned."""
    known = context.services.image.topic(topic.name)
    code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    if not context.authorize(AclOperation.READ, ResourceType.TOPIC, topic.name):
        known, code = None, ErrorCode.TOPIC_AUTHORIZATION_FAILED
    valid = []
    for partition in topic.partitions:
        if known is None or partition.partition_index not in known.partitions:
            _answer(answers, topic.name, partition.partition_index, code)
            continue
        valid.append(
            OffsetCommitRequestPartition(
                partition.partition_index,
                partition.committed_offset,
                partition.committed_leader_epoch,
                committed_metadata=partition.committed_metadata,
            )
        )
    if known is None or not valid:
        return None
    return OffsetCommitRequestTopic(topic.name, known.topic_id, valid)


async def _commit(
    context: RequestContext,
    request: TxnOffsetCommitRequest,
    topics: list[OffsetCommitRequestTopic],
) -> list[tuple[str, int, int]]:
    commit = OffsetCommitRequest(
        request.group_id,
        request.generation_id,
        request.member_id,
        request.group_instance_id,
        topics=topics,
    )
    try:
        if not request.group_id:
            raise KafkaError(ErrorCode.INVALID_GROUP_ID)
        transaction = await _verified(context, request)
    except KafkaError as error:
        code = _fit(context, client_code(error))
        return [(t.name, p.partition_index, code) for t in topics for p in t.partitions]
    found = await context.services.groups.offset_commit(commit, context.group_client(), transaction)
    return [
        (topic.name, p.partition_index, _fit(context, p.error_code))
        for topic in found.topics
        for p in topic.partitions
    ]


def _fit(context: RequestContext, code: int) -> int:
    if code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS and context.version < _LOADING_FROM:
        return ErrorCode.COORDINATOR_NOT_AVAILABLE
    return code


async def _verified(context: RequestContext, request: TxnOffsetCommitRequest) -> InTransaction:
    """Have the offsets partition added to the transaction, or check that it is part of it."""
    services, knows = context.services, Knows.VERIFICATION
    if context.version >= _ADDING_FROM:
        knows = Knows.ADDING
    elif context.version >= _ABORTABLE_FROM:
        knows = Knows.ABORTABLE
    writer = Writer(request.transactional_id, request.producer_id, request.producer_epoch, knows)
    index = services.groups.partition_for(request.group_id)
    partition = services.partitions.leader(CONSUMER_OFFSETS, index)
    verification = start_verification(services, writer, [(partition, _NO_SEQUENCE)])
    if verification.guards:
        await finish_verification(services, verification)
    place = CONSUMER_OFFSETS, index
    if place in verification.errors:
        raise KafkaError(verification.errors[place])
    return InTransaction(
        request.producer_id,
        request.producer_epoch,
        verification.guards.get(place),
        verification.is_required,
    )
