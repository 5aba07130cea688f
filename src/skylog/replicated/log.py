"""The log interface of the runtime: the metadata quorum's log, or a partition of an internal
topic."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from skylog.log.producers import TransactionEnd
from skylog.replicated.machine import InTransaction

KeyValue = tuple[bytes | None, bytes | None]
Unsubscribe = Callable[[], None]


@dataclass(frozen=True, slots=True)
class LoadedBatch:
    """Records read back. Those of a snapshot all have the offset before the snapshot's end."""

    base_offset: int
    records: Sequence[KeyValue]
    from_snapshot: bool = False
    transaction: InTransaction | TransactionEnd | None = None

    def offset_of(self, index: int) -> int:
        return self.base_offset if self.from_snapshot else self.base_offset + index


class RecordCodec(Protocol):
    """Encodes a machine's records as Kafka records, and decodes them."""

    def encode(self, record: Any) -> KeyValue: ...

    def decode(self, key: bytes | None, value: bytes | None) -> Any | None:
        """None for a record of an unknown kind, which is skipped."""
        ...


class RuntimeLog(Protocol):
    """The log of one machine on its leader. All but ``read_all`` and snapshots are synchronous."""

    @property
    def end_offset(self) -> int: ...

    @property
    def high_watermark(self) -> int: ...

    def append(self, records: Sequence[KeyValue]) -> int:
        """Append one atomic batch and return the log end offset after it.

        Appends of one event-loop iteration may share a sync. After a KafkaError that is not
        ambiguous nothing was appended; after any other exception the outcome is unknown.
        """
        ...

    def on_high_watermark(self, listener: Callable[[int], None]) -> Unsubscribe:
        """Call ``listener`` on the event loop whenever the high watermark has advanced."""
        ...

    def read_all(self) -> AsyncIterator[LoadedBatch]:
        """The latest snapshot, then every record after it up to the log's end."""
        ...

    def snapshot_due(self, now_ms: int) -> bool: ...

    async def write_snapshot(self, end_offset: int, records: Sequence[KeyValue]) -> None:
        """Store the state as of ``end_offset``, which the high watermark has reached."""
        ...


class TransactionalLog(RuntimeLog, Protocol):
    """A log whose machine can produce results with a transaction."""

    def append_in_transaction(
        self, records: Sequence[KeyValue], transaction: InTransaction
    ) -> int: ...

    def end_transaction(self, end: TransactionEnd) -> int: ...
