"""What assembly needs of the WAL of diskless topics; ``broker/`` fills it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

if TYPE_CHECKING:
    from skylog.kernel.errors import ErrorCode
    from skylog.tiered.segments import TopicIdPartition
    from skylog.wire.buffers import Buffer


class WalBatch(NamedTuple):
    """A committed batch, and the object that has it."""

    object_key: str
    # When the object was made, so about when the batch was produced; no client has a say in it.
    created_ms: int
    base_offset: int
    next_offset: int
    size: int
    # What ``read`` needs to find it.
    where: Any


class Wanted(NamedTuple):
    """The batches of a partition, starting with the one that contains ``offset``."""

    partition: TopicIdPartition
    offset: int


class Found(NamedTuple):
    """Offsets are −1 after an error that says nothing of them."""

    error: ErrorCode
    batches: Sequence[WalBatch] = ()
    log_start_offset: int = -1
    high_watermark: int = -1


class Records(NamedTuple):
    """Batches as consumers get them: verified, with their offsets; perhaps fewer than asked for.

    ``error`` says why there are none.
    """

    error: ErrorCode
    parts: Sequence[Buffer] = ()


class Wal(Protocol):
    """Errors of a whole call are ``KafkaError``."""

    async def find(self, wanted: Sequence[Wanted], batches_max: int) -> list[Found]:
        """Committed batches, at most ``batches_max`` of each partition."""
        ...

    async def read(self, batches: Sequence[Sequence[WalBatch]]) -> list[Records]:
        """The records of each run of batches; what several have of one object is read once."""
        ...
