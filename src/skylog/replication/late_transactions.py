"""Transactions that should have ended long ago: their coordinator has lost them, or cannot reach
this broker. Until they end, read-committed consumers wait at their start."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Final

from skylog.kernel.clock import Clock
from skylog.kernel.limits import LATE_TRANSACTION_BUFFER_MS
from skylog.kernel.logging import get_logger
from skylog.replication.partition import Partition

_log = get_logger("replication.transactions")
# The number of partitions checked before other tasks get a turn.
_PER_TURN: Final = 256


class LateTransactions:
    """Checks periodically for led partitions whose oldest transaction is late."""

    def __init__(self, partitions: Iterable[Partition], clock: Clock, timeout_ms_max: int) -> None:
        """``timeout_ms_max`` is the longest transaction timeout that a producer may request."""
        self._partitions = partitions
        self._clock = clock
        self._allowed_ms = timeout_ms_max + LATE_TRANSACTION_BUFFER_MS
        # The start of the late transaction, by partition.
        self._known: dict[Partition, int] = {}

    @property
    def partition_count(self) -> int:
        """Partitions with a late transaction at the last check; may be called from any thread."""
        return len(self._known)

    async def review(self) -> None:
        """Check all partitions, and log each late transaction once."""
        oldest_ms = self._clock.now_ms() - self._allowed_ms
        found: dict[Partition, int] = {}
        for seen, partition in enumerate(self._partitions, 1):
            if seen % _PER_TURN == 0:
                await asyncio.sleep(0)
            # Kafka, too, checks the producer of the oldest one, and its latest batch.
            open_now = partition.log.producers.oldest_transaction if partition.is_leader else None
            if open_now is None or not 0 < open_now.last_timestamp < oldest_ms:
                continue
            found[partition] = open_now.txn_first_offset
            if self._known.get(partition) != open_now.txn_first_offset:
                _log.warning(
                    "transaction is late: read-committed consumers wait for it",
                    partition=str(partition),
                    producer_id=open_now.producer_id,
                    producer_epoch=open_now.epoch,
                    first_offset=open_now.txn_first_offset,
                    last_timestamp=open_now.last_timestamp,
                )
        self._known = found
