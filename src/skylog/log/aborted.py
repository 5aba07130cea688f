"""Aborted transactions as listed in a segment's ``.txnindex``, and how compaction treats them.

The first pass that sees records of an aborted transaction removes them. The marker of a transaction
stays as long as any of its batches; then it gets a delete horizon like a tombstone, so that readers
have time to see it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from heapq import heapify, heappop
from struct import Struct
from typing import Final, NamedTuple

from skylog.log.markers import marker_of
from skylog.wire.batch import Batch

ENTRY: Final = Struct(">hqqqq")
_VERSION: Final = 0


class AbortedTransaction(NamedTuple):
    """Ordered by first offset."""

    first_offset: int
    producer_id: int
    last_offset: int
    last_stable_offset: int


def encode_aborted(transactions: Iterable[AbortedTransaction]) -> bytes:
    """The content of a ``.txnindex``."""
    return b"".join(
        ENTRY.pack(_VERSION, t.producer_id, t.first_offset, t.last_offset, t.last_stable_offset)
        for t in transactions
    )


def decode_aborted(data: bytes) -> list[AbortedTransaction]:
    """ValueError if it is not such an index: without it no transaction may be taken for
    committed."""
    if len(data) % ENTRY.size:
        raise ValueError(f"{len(data)} bytes are not an index of aborted transactions")
    found = []
    for version, producer_id, first, last, stable in ENTRY.iter_unpack(data):
        if version < _VERSION or first > last:
            raise ValueError("a damaged index of aborted transactions")
        found.append(AbortedTransaction(first, producer_id, last, stable))
    return found


class CleanedTransactions:
    """Follows the transactions of a log from batch to batch."""

    def __init__(self, aborted: Sequence[AbortedTransaction]) -> None:
        self._coming = list(aborted)
        heapify(self._coming)
        self._aborted: dict[int, AbortedTransaction] = {}
        # Producers with a batch seen in their open transaction: aborted ones, and all others.
        self._seen_aborted: set[int] = set()
        self._seen: set[int] = set()
        # Transactions with a marker and a batch still in the log: their entries stay.
        self.retained: list[AbortedTransaction] = []

    def _move_to(self, offset: int) -> None:
        while self._coming and self._coming[0].first_offset <= offset:
            found = heappop(self._coming)
            self._aborted[found.producer_id] = found

    def is_aborted(self, batch: Batch) -> bool:
        """Whether a batch of records belongs to an aborted transaction."""
        self._move_to(batch.last_offset)
        if not batch.is_transactional:
            return False
        found = self._aborted.get(batch.producer_id)
        if found is not None and batch.last_offset <= found.last_offset:
            self._seen_aborted.add(batch.producer_id)
            return True
        self._seen.add(batch.producer_id)
        return False

    def is_marker_free(self, batch: Batch) -> bool:
        """Whether nothing is left of the transaction that a control batch ends."""
        self._move_to(batch.last_offset)
        if not batch.record_count:
            return True
        marker = marker_of(batch)
        if marker is None:
            return False
        producer_id = batch.producer_id
        if marker.commits:
            free = producer_id not in self._seen
            self._seen.discard(producer_id)
            return free
        found = self._aborted.pop(producer_id, None)
        if found is None or producer_id not in self._seen_aborted:
            return True
        self._seen_aborted.discard(producer_id)
        self.retained.append(found)
        return False
