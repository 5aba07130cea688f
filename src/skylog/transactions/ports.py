"""What the transaction coordinator gives to partitions, and what it asks of them."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Protocol

from skylog.kernel.errors import ErrorCode
from skylog.wire.messages.write_txn_markers_request import WriteTxnMarkersRequest
from skylog.wire.messages.write_txn_markers_response import WriteTxnMarkersResponse

TopicPartition = tuple[str, int]
Errors = Mapping[TopicPartition, ErrorCode]


class TransactionVerifier(Protocol):
    """Whether a batch may be part of a transaction (KIP-890); the coordinator's codes as they are.

    What a producer is told for them depends on the version that it speaks: the caller knows it.
    """

    async def verify(
        self,
        transactional_id: str,
        producer_id: int,
        producer_epoch: int,
        partitions: Collection[TopicPartition],
    ) -> Errors:
        """Whether each partition is in the transaction: TRANSACTION_ABORTABLE where it is not."""
        ...

    async def add(
        self,
        transactional_id: str,
        producer_id: int,
        producer_epoch: int,
        partitions: Collection[TopicPartition],
    ) -> Errors:
        """Put the partitions into the transaction, as producers of version 2 leave it to us."""
        ...


class MarkerSender(Protocol):
    """Brings markers to the leaders of partitions."""

    async def send(self, node_id: int, request: WriteTxnMarkersRequest) -> WriteTxnMarkersResponse:
        """The node's answer; any exception leaves open whether markers were written."""
        ...
