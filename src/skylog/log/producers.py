"""What a partition remembers of its idempotent and transactional producers.

Pure: the log calls ``check`` before it writes and ``apply`` once the bytes are in the file, so a
refused or failed append leaves no trace. The same ``apply`` rebuilds the state at recovery.

A client's batch must, in this order: repeat one of the last five batches exactly (then it is a
duplicate, answered with the first outcome), carry no older epoch than seen, begin at sequence 0
when its epoch is new, and otherwise follow the last sequence (2³¹−1 is followed by 0). A producer
that is not known may begin anywhere.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from skylog.kernel.errors import ErrorCode, KafkaError
from skylog.wire.batch import NO_TIMESTAMP, SEQUENCE_MAX, Batch

REMEMBERED_BATCHES: Final = 5
NO_EPOCH: Final = -1
NO_SEQUENCE: Final = -1
NO_OFFSET: Final = -1


class RememberedBatch(NamedTuple):
    """Enough of a batch to know it again and to repeat its answer."""

    last_sequence: int
    last_offset: int
    offset_delta: int
    timestamp: int

    @property
    def first_sequence(self) -> int:
        return (self.last_sequence - self.offset_delta) & SEQUENCE_MAX

    @property
    def first_offset(self) -> int:
        return self.last_offset - self.offset_delta


class Marker(NamedTuple):
    """The end of a transaction, as its control record says."""

    coordinator_epoch: int
    commits: bool


class CompletedTransaction(NamedTuple):
    producer_id: int
    first_offset: int
    last_offset: int
    aborted: bool


@dataclass(slots=True)
class ProducerEntry:
    """One producer's latest state."""

    producer_id: int
    epoch: int = NO_EPOCH
    coordinator_epoch: int = NO_EPOCH
    last_timestamp: int = NO_TIMESTAMP
    txn_first_offset: int = NO_OFFSET
    batches: tuple[RememberedBatch, ...] = ()

    @property
    def last_sequence(self) -> int:
        return self.batches[-1].last_sequence if self.batches else NO_SEQUENCE

    @property
    def last_offset(self) -> int:
        return self.batches[-1].last_offset if self.batches else NO_OFFSET

    @property
    def offset_delta(self) -> int:
        return self.batches[-1].offset_delta if self.batches else 0

    def find_duplicate(self, batch: Batch) -> RememberedBatch | None:
        if batch.producer_epoch != self.epoch:
            return None
        last = batch.last_sequence
        for known in self.batches:
            if known.last_sequence == last and known.first_sequence == batch.base_sequence:
                return known
        return None

    def is_expired(self, now_ms: int, expiration_ms: int) -> bool:
        """An open transaction keeps its producer."""
        return self.txn_first_offset == NO_OFFSET and now_ms - self.last_timestamp >= expiration_ms


class Producers:
    """All producers of one partition, and its open transactions."""

    __slots__ = ("_entries", "_open")

    def __init__(self, entries: Iterable[ProducerEntry] = ()) -> None:
        self._entries = {entry.producer_id: entry for entry in entries}
        # First offset → producer, in the order of offsets.
        open_now = [e for e in self._entries.values() if e.txn_first_offset != NO_OFFSET]
        open_now.sort(key=lambda entry: entry.txn_first_offset)
        self._open = {entry.txn_first_offset: entry.producer_id for entry in open_now}

    def __len__(self) -> int:
        return len(self._entries)

    def __iter__(self) -> Iterator[ProducerEntry]:
        return iter(self._entries.values())

    def get(self, producer_id: int) -> ProducerEntry | None:
        return self._entries.get(producer_id)

    @property
    def first_unstable_offset(self) -> int | None:
        """Where the oldest open transaction begins."""
        return next(iter(self._open), None)

    def check(self, batches: Sequence[Batch]) -> RememberedBatch | None:
        """Judge a client's append: a duplicate's first outcome, None to go on, or KafkaError."""
        if len(batches) == 1:
            batch = batches[0]
            if batch.producer_id < 0:
                return None
            entry = self._entries.get(batch.producer_id)
            return _check(batch, entry) if entry is not None else None
        # Later batches of one append see what the earlier ones will leave.
        trial: Producers | None = None
        for batch in batches:
            if batch.producer_id < 0:
                continue
            trial = trial or self._copy()
            entry = trial.get(batch.producer_id)
            duplicate = _check(batch, entry) if entry is not None else None
            if duplicate is not None:
                return duplicate
            trial.apply(batch, None)
        return None

    def apply(self, batch: Batch, marker: Marker | None) -> CompletedTransaction | None:
        """Take in a batch that is in the log; ``marker`` is given for a control batch."""
        entry = self._entries.get(batch.producer_id)
        if entry is None:
            entry = self._entries[batch.producer_id] = ProducerEntry(batch.producer_id)
        if entry.epoch != batch.producer_epoch:
            entry.epoch = batch.producer_epoch
            entry.batches = ()
        if batch.is_control:
            return self._end_transaction(entry, batch, marker)
        last = batch.last_offset
        known = RememberedBatch(
            batch.last_sequence, last, batch.last_offset_delta, batch.max_timestamp
        )
        entry.batches = (*entry.batches[1 - REMEMBERED_BATCHES :], known)
        entry.last_timestamp = batch.max_timestamp
        if batch.is_transactional and entry.txn_first_offset == NO_OFFSET:
            entry.txn_first_offset = batch.base_offset
            self._open[batch.base_offset] = batch.producer_id
        return None

    def _end_transaction(
        self, entry: ProducerEntry, batch: Batch, marker: Marker | None
    ) -> CompletedTransaction | None:
        if marker is None:
            return None
        entry.coordinator_epoch = marker.coordinator_epoch
        entry.last_timestamp = batch.max_timestamp
        if entry.txn_first_offset == NO_OFFSET:
            return None
        done = CompletedTransaction(
            entry.producer_id, entry.txn_first_offset, batch.base_offset, not marker.commits
        )
        entry.txn_first_offset = NO_OFFSET
        self._open.pop(done.first_offset, None)
        return done

    def _copy(self) -> Producers:
        return Producers(
            ProducerEntry(
                entry.producer_id,
                entry.epoch,
                entry.coordinator_epoch,
                entry.last_timestamp,
                entry.txn_first_offset,
                entry.batches,
            )
            for entry in self
        )

    def expire(self, now_ms: int, expiration_ms: int) -> int:
        """Forget who has been silent for long; returns how many."""
        gone = [e.producer_id for e in self if e.is_expired(now_ms, expiration_ms)]
        for producer_id in gone:
            del self._entries[producer_id]
        return len(gone)


def _check(batch: Batch, entry: ProducerEntry) -> RememberedBatch | None:
    duplicate = entry.find_duplicate(batch)
    if duplicate is not None:
        return duplicate
    if batch.producer_epoch < entry.epoch:
        raise KafkaError(
            ErrorCode.INVALID_PRODUCER_EPOCH,
            f"Epoch of producer {batch.producer_id} is {batch.producer_epoch}, "
            f"which is smaller than the last seen epoch {entry.epoch}",
        )
    if batch.is_control:
        return None
    expected = 0
    if batch.producer_epoch == entry.epoch:
        last = entry.last_sequence
        expected = 0 if last == SEQUENCE_MAX else last + 1
    if batch.base_sequence != expected:
        raise KafkaError(
            ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
            f"Out of order sequence number for producer {batch.producer_id}: "
            f"{batch.base_sequence} (incoming seq. number), "
            f"{entry.last_sequence} (current end sequence number)",
        )
    if entry.txn_first_offset != NO_OFFSET and not batch.is_transactional:
        raise KafkaError(
            ErrorCode.INVALID_TXN_STATE,
            f"Expected transactional write from producer {batch.producer_id}",
        )
    return None
