"""InitProducerId and transactions: permissions and versions here, decisions in the coordinator.

Clients of old versions do not know PRODUCER_FENCED: they get INVALID_PRODUCER_EPOCH.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Final

from skylog.broker.net.context import RequestContext
from skylog.controller.image.topics import Partition
from skylog.groups.consumer.re2 import compile_regex
from skylog.kernel import limits
from skylog.kernel.acl import AclOperation, ResourceType
from skylog.kernel.errors import ErrorCode, KafkaError
from skylog.kernel.topics import CONSUMER_OFFSETS, is_internal
from skylog.transactions.ports import Errors
from skylog.transactions.requests import ListFilter
from skylog.transactions.state import EPOCH_BUMP, NO_EPOCH, NO_PRODUCER_ID
from skylog.transactions.views import STATE_NAMES
from skylog.wire.messages.add_offsets_to_txn_request import AddOffsetsToTxnRequest
from skylog.wire.messages.add_offsets_to_txn_response import AddOffsetsToTxnResponse
from skylog.wire.messages.add_partitions_to_txn_request import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTransaction,
)
from skylog.wire.messages.add_partitions_to_txn_response import (
    AddPartitionsToTxnPartitionResult,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnResult,
    AddPartitionsToTxnTopicResult,
)
from skylog.wire.messages.describe_transactions_request import DescribeTransactionsRequest
from skylog.wire.messages.describe_transactions_response import (
    DescribeTransactionsResponse,
    TransactionState,
)
from skylog.wire.messages.end_txn_request import EndTxnRequest
from skylog.wire.messages.end_txn_response import EndTxnResponse
from skylog.wire.messages.init_producer_id_request import InitProducerIdRequest
from skylog.wire.messages.init_producer_id_response import InitProducerIdResponse
from skylog.wire.messages.list_transactions_request import ListTransactionsRequest
from skylog.wire.messages.list_transactions_response import ListTransactionsResponse

# The first versions that know PRODUCER_FENCED.
_INIT_FENCED_FROM: Final = 4
_FENCED_FROM: Final = 2
# Versions used by brokers: many transactions in one request.
_BATCHES_FROM: Final = 4
# From here on the client takes part in transactions of version 2.
_END_BUMPS_FROM: Final = 5


def _fit(code: ErrorCode, version: int, fenced_from: int) -> ErrorCode:
    if code is ErrorCode.PRODUCER_FENCED and version < fenced_from:
        return ErrorCode.INVALID_PRODUCER_EPOCH
    return code


# Producer ids


async def init_producer_id(
    context: RequestContext, request: InitProducerIdRequest
) -> InitProducerIdResponse:
    """Handle InitProducerId, for idempotent and for transactional producers."""
    _check_init(context, request)
    given = (request.producer_id, request.producer_epoch)
    if (given[0] == NO_PRODUCER_ID) != (given[1] == NO_EPOCH):
        raise KafkaError(ErrorCode.INVALID_REQUEST)
    if request.transactional_id is None:
        # Kafka assigns a new id, whatever the producer had before.
        producer_id = await context.services.producer_ids.next()
        return InitProducerIdResponse(producer_id=producer_id, producer_epoch=0)
    outcome = await context.services.transactions.init_producer_id(
        request.transactional_id,
        request.transaction_timeout_ms,
        None if given[0] == NO_PRODUCER_ID else given,
    )
    return InitProducerIdResponse(
        error_code=_fit(outcome.error, context.version, _INIT_FENCED_FROM),
        producer_id=outcome.producer_id,
        producer_epoch=outcome.producer_epoch,
    )


def _check_init(context: RequestContext, request: InitProducerIdRequest) -> None:
    if request.transactional_id is not None:
        if not context.allowed(request.transactional_id):
            raise KafkaError(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
        return
    may_write = context.authorize_cluster(AclOperation.IDEMPOTENT_WRITE, audit=False)
    if not may_write and not context.authorize_any(AclOperation.WRITE, ResourceType.TOPIC):
        raise KafkaError(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)


def init_producer_id_failed(_: InitProducerIdRequest, error: KafkaError) -> InitProducerIdResponse:
    return InitProducerIdResponse(error_code=error.code, producer_id=-1, producer_epoch=-1)


# Partitions and offsets


async def add_partitions_to_txn(
    context: RequestContext, request: AddPartitionsToTxnRequest
) -> AddPartitionsToTxnResponse:
    """Handle AddPartitionsToTxn: one transaction from a client, many from a broker."""
    if context.version < _BATCHES_FROM:
        one = AddPartitionsToTxnTransaction(
            request.v3_and_below_transactional_id,
            request.v3_and_below_producer_id,
            request.v3_and_below_producer_epoch,
            topics=request.v3_and_below_topics,
        )
        result = await _add(context, one)
        return AddPartitionsToTxnResponse(results_by_topic_v3_and_below=result.topic_results)
    if not context.authorize_cluster(AclOperation.CLUSTER_ACTION):
        raise KafkaError(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    results = await asyncio.gather(*(_add(context, each) for each in request.transactions))
    return AddPartitionsToTxnResponse(results_by_transaction=list(results))


async def _add(
    context: RequestContext, transaction: AddPartitionsToTxnTransaction
) -> AddPartitionsToTxnResult:
    transactional_id = transaction.transactional_id
    from_client = context.version < _BATCHES_FROM
    if from_client and not context.allowed(transactional_id):
        denied = ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
        return _result(transaction, dict.fromkeys(_partitions(transaction), denied))
    refused = _refused(context, transaction, from_client)
    if refused:
        return _result(transaction, refused)
    coordinator = context.services.transactions
    asked = (transactional_id, transaction.producer_id, transaction.producer_epoch)
    partitions = _partitions(transaction)
    if transaction.verify_only:
        return _result(transaction, await coordinator.verify(*asked, partitions))
    version = 0 if from_client else EPOCH_BUMP
    code = await coordinator.add_partitions(*asked, partitions, version)
    code = _fit(code, context.version, _FENCED_FROM)
    return _result(transaction, dict.fromkeys(partitions, code))


def _partitions(transaction: AddPartitionsToTxnTransaction) -> list[tuple[str, int]]:
    return [(topic.name, index) for topic in transaction.topics for index in topic.partitions]


def _refused(
    context: RequestContext, transaction: AddPartitionsToTxnTransaction, from_client: bool
) -> Errors:
    """All or nothing: if one partition cannot be added, none is."""
    image = context.services.image
    errors: dict[tuple[str, int], ErrorCode] = {}
    for topic in transaction.topics:
        known = image.topic(topic.name)
        code = ErrorCode.NONE
        if from_client and not _may_write(context, topic.name):
            code = ErrorCode.TOPIC_AUTHORIZATION_FAILED
        for index in topic.partitions:
            state = None if known is None else known.partitions.get(index)
            errors[topic.name, index] = code or _unfit(state)
    if not any(errors.values()):
        return {}
    return {
        partition: code or ErrorCode.OPERATION_NOT_ATTEMPTED for partition, code in errors.items()
    }


def _unfit(partition: Partition | None) -> ErrorCode:
    """Why a partition cannot take part, if so; without a log, markers cannot be written."""
    if partition is None:
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    return ErrorCode.NONE if partition.takes_transactions else ErrorCode.INVALID_REQUEST


def _may_write(context: RequestContext, topic: str) -> bool:
    return not is_internal(topic) and context.authorize(
        AclOperation.WRITE, ResourceType.TOPIC, topic
    )


def _result(transaction: AddPartitionsToTxnTransaction, errors: Errors) -> AddPartitionsToTxnResult:
    topics: Mapping[str, dict[int, None]] = {topic.name: {} for topic in transaction.topics}
    for topic in transaction.topics:
        topics[topic.name].update(dict.fromkeys(topic.partitions))
    return AddPartitionsToTxnResult(
        transaction.transactional_id,
        [
            AddPartitionsToTxnTopicResult(
                name,
                [AddPartitionsToTxnPartitionResult(index, errors[name, index]) for index in found],
            )
            for name, found in topics.items()
        ],
    )


def add_partitions_to_txn_failed(
    request: AddPartitionsToTxnRequest, error: KafkaError
) -> AddPartitionsToTxnResponse:
    one = AddPartitionsToTxnTransaction(topics=request.v3_and_below_topics)
    codes = dict.fromkeys(_partitions(one), error.code)
    return AddPartitionsToTxnResponse(
        error_code=error.code, results_by_topic_v3_and_below=_result(one, codes).topic_results
    )


async def add_offsets_to_txn(
    context: RequestContext, request: AddOffsetsToTxnRequest
) -> AddOffsetsToTxnResponse:
    """Handle AddOffsetsToTxn: the group's offsets partition becomes part of the transaction."""
    if not context.allowed(request.transactional_id):
        raise KafkaError(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
    if not context.authorize(AclOperation.READ, ResourceType.GROUP, request.group_id):
        raise KafkaError(ErrorCode.GROUP_AUTHORIZATION_FAILED)
    services = context.services
    offsets = (CONSUMER_OFFSETS, services.groups.partition_for(request.group_id))
    code = await services.transactions.add_partitions(
        request.transactional_id, request.producer_id, request.producer_epoch, [offsets], 0
    )
    return AddOffsetsToTxnResponse(error_code=_fit(code, context.version, _FENCED_FROM))


# The end


async def end_txn(context: RequestContext, request: EndTxnRequest) -> EndTxnResponse:
    if not context.allowed(request.transactional_id):
        raise KafkaError(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
    outcome = await context.services.transactions.end_txn(
        request.transactional_id,
        request.producer_id,
        request.producer_epoch,
        commit=request.committed,
        client_version=EPOCH_BUMP if context.version >= _END_BUMPS_FROM else 0,
    )
    return EndTxnResponse(
        error_code=_fit(outcome.error, context.version, _FENCED_FROM),
        producer_id=outcome.producer_id,
        producer_epoch=outcome.producer_epoch,
    )


# Administration


async def describe_transactions(
    context: RequestContext, request: DescribeTransactionsRequest
) -> DescribeTransactionsResponse:
    """Handle DescribeTransactions; topics that the client may not describe are omitted.

    Each id once, since its answer may be much longer than its name.
    """
    response = DescribeTransactionsResponse()
    for number, transactional_id in enumerate(dict.fromkeys(request.transactional_ids), 1):
        if number % limits.ANSWERS_PER_TURN == 0:
            await asyncio.sleep(0)  # yield to other tasks
        if not context.allowed(transactional_id):
            denied = ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
            response.transaction_states.append(TransactionState(denied, transactional_id))
            continue
        found = await context.services.transactions.describe(transactional_id)
        found.topics = [
            topic
            for topic in found.topics
            if context.authorize(AclOperation.DESCRIBE, ResourceType.TOPIC, topic.topic)
        ]
        response.transaction_states.append(found)
    return response


def describe_transactions_failed(
    request: DescribeTransactionsRequest, error: KafkaError
) -> DescribeTransactionsResponse:
    failed = [TransactionState(error.code, asked) for asked in request.transactional_ids]
    return DescribeTransactionsResponse(transaction_states=failed)


async def list_transactions(
    context: RequestContext, request: ListTransactionsRequest
) -> ListTransactionsResponse:
    """Handle ListTransactions; a pattern has the syntax of RE2 and matches whole ids."""
    pattern = request.transactional_id_pattern
    wanted = ListFilter(
        frozenset(request.producer_id_filters),
        frozenset(request.state_filters),
        request.duration_filter,
        compile_regex(pattern) if pattern else None,
    )
    found = await context.services.transactions.list_transactions(wanted)
    return ListTransactionsResponse(
        unknown_state_filters=sorted(wanted.states - STATE_NAMES),
        transaction_states=[one for one in found if context.allowed(one.transactional_id)],
    )
