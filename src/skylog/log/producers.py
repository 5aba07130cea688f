"""What a partition remembers of its idempotent and transactional producers.

Pure: the log calls ``check`` before it writes and ``apply`` once the bytes are in the file, so a
refused or failed append leaves no trace. Recovery rebuilds the state with the same ``apply``.

A client's batch must, in this order: repeat one of the last five batches exactly (then it is a
duplicate, answered with the first outcome), have no older epoch than the last, be verified if it
opens a transaction, begin at sequence 0 if its epoch is new, and otherwise follow the last sequence
(2³¹−1 is followed by 0). An unknown producer may begin anywhere.

A marker must come from a coordinator that is not older than the last, and with an epoch that is not
older than the producer's; from transaction version 2 on the epoch grows with each marker.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from skylog.kernel.errors import ErrorCode, KafkaError
from skylog.log.verification import CLIENT, Guard, Origin, Verifications
from skylog.wire.batch import NO_TIMESTAMP, SEQUENCE_MAX, Batch

REMEMBERED_BATCHES: Final = 5
NO_EPOCH: Final = -1
NO_SEQUENCE: Final = -1
NO_OFFSET: Final = -1
EPOCH_MAX: Final = 2**15 - 1
# From this transaction version on, each marker has a greater epoch than its transaction.
_EPOCH_GROWS_FROM: Final = 2


class RememberedBatch(NamedTuple):
    """Enough of a batch to recognize it and to repeat its result."""

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


class TransactionEnd(NamedTuple):
    """A coordinator's decision that a producer's transaction has ended."""

    producer_id: int
    producer_epoch: int
    marker: Marker
    # The transaction coordinator's.
    transaction_version: int = 0


class CompletedTransaction(NamedTuple):
    """``last_stable_offset`` is the start of the oldest transaction that is still open."""

    producer_id: int
    first_offset: int
    last_offset: int
    last_stable_offset: int
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

    def has_transaction(self, epoch: int) -> bool:
        """Whether a transaction of this epoch is open."""
        return self.txn_first_offset != NO_OFFSET and self.epoch == epoch

    def is_expired(self, now_ms: int, expiration_ms: int) -> bool:
        """A producer with an open transaction does not expire."""
        return self.txn_first_offset == NO_OFFSET and now_ms - self.last_timestamp >= expiration_ms


class Producers:
    """All producers of one partition, and its open transactions."""

    __slots__ = ("_decided_below", "_entries", "_open", "_undecided", "verifications")

    def __init__(self, entries: Iterable[ProducerEntry] = (), *, decided_below: int = 0) -> None:
        """Markers below ``decided_below`` can no longer be lost."""
        self._entries = {entry.producer_id: entry for entry in entries}
        # First offset → producer, in offset order.
        open_now = [e for e in self._entries.values() if e.txn_first_offset != NO_OFFSET]
        open_now.sort(key=lambda entry: entry.txn_first_offset)
        self._open = {entry.txn_first_offset: entry.producer_id for entry in open_now}
        # First offset → last offset of transactions that ended above the high watermark.
        self._undecided: dict[int, int] = {}
        self._decided_below = decided_below
        self.verifications = Verifications()

    def __len__(self) -> int:
        return len(self._entries)

    def __iter__(self) -> Iterator[ProducerEntry]:
        return iter(self._entries.values())

    def get(self, producer_id: int) -> ProducerEntry | None:
        return self._entries.get(producer_id)

    @property
    def first_open_offset(self) -> int | None:
        """The start of the oldest open transaction."""
        return next(iter(self._open), None)

    @property
    def oldest_transaction(self) -> ProducerEntry | None:
        """The producer whose open transaction began first."""
        producer_id = next(iter(self._open.values()), None)
        return None if producer_id is None else self._entries.get(producer_id)

    def first_unstable_offset(self, high_watermark: int) -> int | None:
        """The start of the oldest transaction that is open, or whose marker could still be lost."""
        undecided = self._undecided
        if undecided:
            self.settle(high_watermark)
        oldest = self.first_open_offset
        if not undecided:
            return oldest
        return min(undecided) if oldest is None else min(oldest, *undecided)

    def settle(self, high_watermark: int) -> None:
        """Markers below the high watermark can no longer be lost."""
        self._decided_below = max(self._decided_below, high_watermark)
        for first, last in tuple(self._undecided.items()):
            if last >= high_watermark:
                break  # they are in marker order
            del self._undecided[first]

    # -- before a write ------------------------------------------------------------------------

    def start_verification(
        self, producer_id: int, sequence: int, epoch: int, *, epoch_grows: bool, now_ms: int
    ) -> Guard | None:
        """Begin to verify a batch; None if its transaction is already open."""
        entry = self._entries.get(producer_id)
        if entry is not None:
            _check_epoch(producer_id, epoch, entry)
            if entry.has_transaction(epoch):
                return None
        return self.verifications.start(
            producer_id, sequence, epoch, epoch_grows=epoch_grows, now_ms=now_ms
        )

    def check(self, batches: Sequence[Batch], origin: Origin = CLIENT) -> RememberedBatch | None:
        """Check an append as the leader: returns a duplicate's first result, or None to continue;
        raises KafkaError.

        ``check_end`` is for markers.
        """
        if len(batches) == 1:
            batch = batches[0]
            return self._check(batch, origin) if batch.producer_id >= 0 else None
        # Later batches of an append see the effects of earlier ones.
        trial: Producers | None = None
        for batch in batches:
            if batch.producer_id < 0:
                continue
            trial = trial or self._copy()
            duplicate = trial._check(batch, origin)
            if duplicate is not None:
                return duplicate
            trial.apply(batch, None)
        return None

    def _check(self, batch: Batch, origin: Origin) -> RememberedBatch | None:
        entry = self._entries.get(batch.producer_id)
        if entry is not None and origin.is_client:
            duplicate = entry.find_duplicate(batch)
            if duplicate is not None:
                return duplicate
        if entry is not None:
            _check_epoch(batch.producer_id, batch.producer_epoch, entry)
        if batch.is_control:
            return None
        is_open = entry is not None and entry.has_transaction(batch.producer_epoch)
        if batch.is_transactional and not is_open:
            self.verifications.require(batch, origin)
        if origin.is_client:
            _check_sequence(batch, entry, self.verifications.get(batch.producer_id))
        if entry is not None and entry.txn_first_offset != NO_OFFSET and not batch.is_transactional:
            raise KafkaError(
                ErrorCode.INVALID_TXN_STATE,
                f"Expected transactional write from producer {batch.producer_id}",
            )
        return None

    def check_end(self, end: TransactionEnd) -> None:
        """Raise unless the coordinator may end a transaction of the producer."""
        entry = self._entries.get(end.producer_id)
        if entry is None:
            return
        epoch = end.producer_epoch
        _check_epoch(end.producer_id, epoch, entry)
        if end.transaction_version >= _EPOCH_GROWS_FROM and epoch == entry.epoch:
            # A repeated marker: its transaction has ended, or its epoch could not grow.
            is_repeated = entry.txn_first_offset == NO_OFFSET or epoch == EPOCH_MAX
            if not is_repeated:
                raise KafkaError(
                    ErrorCode.INVALID_PRODUCER_EPOCH,
                    f"Epoch of producer {end.producer_id} is {epoch},"
                    " which does not exceed that of its open transaction",
                )
        if entry.coordinator_epoch > end.marker.coordinator_epoch:
            raise KafkaError(
                ErrorCode.TRANSACTION_COORDINATOR_FENCED,
                f"Invalid coordinator epoch for producer {end.producer_id}: "
                f"{end.marker.coordinator_epoch} (zombie), {entry.coordinator_epoch} (current)",
            )

    # -- after a write -------------------------------------------------------------------------

    def apply(self, batch: Batch, marker: Marker | None) -> CompletedTransaction | None:
        """Apply a batch that is in the log; ``marker`` is given for a control batch."""
        entry = self._entries.get(batch.producer_id)
        if entry is None:
            entry = self._entries[batch.producer_id] = ProducerEntry(batch.producer_id)
        if entry.epoch != batch.producer_epoch:
            entry.epoch = batch.producer_epoch
            entry.batches = ()
        if batch.is_transactional:
            self.verifications.written(batch)
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
        first, last = entry.txn_first_offset, batch.base_offset
        if first == NO_OFFSET:
            return None
        entry.txn_first_offset = NO_OFFSET
        self._open.pop(first, None)
        if last >= self._decided_below:
            self._undecided[first] = last
        stable = next(iter(self._open), last + 1)
        return CompletedTransaction(entry.producer_id, first, last, stable, not marker.commits)

    def _copy(self) -> Producers:
        copy = Producers(
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
        copy.verifications = self.verifications.copy()
        return copy

    def expire(self, now_ms: int, expiration_ms: int) -> int:
        """Drop producers that have been idle for too long; returns how many."""
        gone = [e.producer_id for e in self if e.is_expired(now_ms, expiration_ms)]
        for producer_id in gone:
            del self._entries[producer_id]
        self.verifications.expire(now_ms, expiration_ms)
        return len(gone)


def _check_epoch(producer_id: int, epoch: int, entry: ProducerEntry) -> None:
    if epoch < entry.epoch:
        raise KafkaError(
            ErrorCode.INVALID_PRODUCER_EPOCH,
            f"Epoch of producer {producer_id} is {epoch}, "
            f"which is smaller than the last seen epoch {entry.epoch}",
        )


def _check_sequence(batch: Batch, entry: ProducerEntry | None, guard: Guard | None) -> None:
    if guard is not None:
        # The first batch after the producer's epoch has grown has sequence 0 ...
        lowest = guard.lowest_sequence
        if guard.epoch_grows and (entry is None or not entry.batches):
            lowest = 0
        # ... and nothing may overtake a batch whose verification was refused and may be repeated.
        if batch.base_sequence > lowest:
            raise _out_of_order(batch, f"{lowest} (earliest seen sequence)")
    if entry is None or entry.epoch == NO_EPOCH:
        return
    expected = 0
    if batch.producer_epoch == entry.epoch:
        last = entry.last_sequence
        expected = 0 if last == SEQUENCE_MAX else last + 1
    if batch.base_sequence != expected:
        raise _out_of_order(batch, f"{entry.last_sequence} (current end sequence number)")


def _out_of_order(batch: Batch, what: str) -> KafkaError:
    return KafkaError(
        ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
        f"Out of order sequence number for producer {batch.producer_id}: "
        f"{batch.base_sequence} (incoming seq. number), {what}",
    )
