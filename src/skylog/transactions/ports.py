"""What the transaction coordinator offers to partitions, and what it needs from them."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Protocol

from skylog.kernel.errors import ErrorCode
from skylog.wire.messages.write_txn_markers_request import WriteTxnMarkersRequest
from skylog.wire.messages.write_txn_markers_response import WriteTxnMarkersResponse

TopicPartition = tuple[str, int]
Errors = Mapping[TopicPartition, ErrorCode]


class TransactionVerifier(Protocol):
    """Whether a batch may be part of a transaction (KIP-890); returns the coordinator's codes.

    The caller translates them for the producer's API version.
    """

    async def verify(
        self,
        transactional_id: str,
        producer_id: int,
        producer_epoch: int,
        partitions: Collection[TopicPartition],
    ) -> Errors:
        """Whether each partition is in the transaction: TRANSACTION_ABORTABLE if not."""
        ...

    async def add(
        self,
        transactional_id: str,
        producer_id: int,
        producer_epoch: int,
        partitions: Collection[TopicPartition],
    ) -> Errors:
        """Add the partitions to the transaction, as version 2 producers leave it to the broker."""
        ...


class MarkerSender(Protocol):
    """Sends markers to the leaders of partitions."""

    async def send(self, node_id: int, request: WriteTxnMarkersRequest) -> WriteTxnMarkersResponse:
        """The node's response; after any exception it is unknown whether markers were written."""
        ...
