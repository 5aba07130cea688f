"""Transactions whose coordinator is on another broker are verified there (KIP-890)."""

from __future__ import annotations

import asyncio
from collections.abc import Collection
from typing import TYPE_CHECKING, Final

from skylog.kernel.errors import ErrorCode, KafkaError
from skylog.wire.messages.add_partitions_to_txn_request import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)
from skylog.wire.messages.add_partitions_to_txn_response import AddPartitionsToTxnResponse

if TYPE_CHECKING:
    from skylog.broker.net.peers import BrokerPeers
    from skylog.transactions.ports import Errors, TopicPartition

TRANSACTIONS_LANE: Final = "transactions"
# The first version that takes several transactions, as brokers send them.
_BATCHES_VERSION: Final = 5
_RETRY_SECONDS: Final = 0.02


class RemoteVerifier:
    """Implements ``TransactionVerifier`` by a request to the coordinating broker."""

    def __init__(self, node_id: int, peers: BrokerPeers, add_wait_ms_max: int) -> None:
        self._node_id = node_id
        self._peers = peers
        self._add_wait_seconds_max = add_wait_ms_max / 1000

    async def verify(
        self,
        transactional_id: str,
        producer_id: int,
        producer_epoch: int,
        partitions: Collection[TopicPartition],
    ) -> Errors:
        asked = AddPartitionsToTxnTransaction(
            transactional_id, producer_id, producer_epoch, True, _topics(partitions)
        )
        return await self._ask(asked, partitions)

    async def add(
        self,
        transactional_id: str,
        producer_id: int,
        producer_epoch: int,
        partitions: Collection[TopicPartition],
    ) -> Errors:
        asked = AddPartitionsToTxnTransaction(
            transactional_id, producer_id, producer_epoch, False, _topics(partitions)
        )
        loop = asyncio.get_running_loop()
        deadline = loop.time() + self._add_wait_seconds_max
        while True:
            errors = await self._ask(asked, partitions)
            # Only the markers of the previous transaction can be outstanding.
            again = ErrorCode.CONCURRENT_TRANSACTIONS in errors.values()
            if not again or loop.time() >= deadline:
                return errors
            await asyncio.sleep(_RETRY_SECONDS)

    async def _ask(
        self, asked: AddPartitionsToTxnTransaction, partitions: Collection[TopicPartition]
    ) -> Errors:
        request = AddPartitionsToTxnRequest([asked])
        try:
            response: AddPartitionsToTxnResponse = await self._peers.send(
                self._node_id, request, _BATCHES_VERSION, lane=TRANSACTIONS_LANE
            )
        except KafkaError:
            return dict.fromkeys(partitions, ErrorCode.NETWORK_EXCEPTION)
        if response.error_code:
            return dict.fromkeys(partitions, ErrorCode(response.error_code))
        return {
            (topic.name, one.partition_index): ErrorCode(one.partition_error_code)
            for result in response.results_by_transaction
            for topic in result.topic_results
            for one in topic.results_by_partition
        }


def _topics(partitions: Collection[TopicPartition]) -> list[AddPartitionsToTxnTopic]:
    topics: dict[str, list[int]] = {}
    for name, index in partitions:
        topics.setdefault(name, []).append(index)
    return [AddPartitionsToTxnTopic(name, indexes) for name, indexes in topics.items()]
