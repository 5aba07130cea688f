"""The WAL of diskless topics, as assembly reads it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from skylog.diskless.plane import FindRequest, FindResult
from skylog.kernel.errors import ErrorCode
from skylog.objects.keys import ObjectKey
from skylog.tiered.consolidation.wal import Found, Records, WalBatch

if TYPE_CHECKING:
    from skylog.diskless.batch import BatchCoordinate
    from skylog.diskless.plane import ControlPlane
    from skylog.diskless.reader import DisklessReader
    from skylog.kernel.clock import Clock
    from skylog.tiered.consolidation.wal import Wanted

# Only the number of batches is limited: bytes are when they are read.
_ALL_BYTES: Final = 2**31 - 1
# Assembly reads an object once, whatever lies between its partitions: requests cost more.
GAP_BYTES_MAX: Final = 16 * 1024 * 1024


class DisklessWal:
    """Fills ``tiered.consolidation.wal.Wal``."""

    def __init__(self, plane: ControlPlane, reader: DisklessReader, clock: Clock) -> None:
        self._plane = plane
        self._reader = reader
        self._clock = clock

    async def find(self, wanted: Sequence[Wanted], batches_max: int) -> list[Found]:
        requests = [FindRequest(*one.partition, one.offset, _ALL_BYTES) for one in wanted]
        found = await self._plane.find_batches(requests, _ALL_BYTES, batches_max)
        created = _Created(self._clock.now_ms())
        return [
            Found(
                one.error,
                [_batch(batch, created[batch.extent.object_key]) for batch in one.batches],
                one.log_start_offset,
                one.high_watermark,
            )
            for one in found
        ]

    async def read(self, batches: Sequence[Sequence[WalBatch]]) -> list[Records]:
        found = [FindResult(ErrorCode.NONE, [one.where for one in run]) for run in batches]
        read = await self._reader.read_found(found, gap_bytes_max=GAP_BYTES_MAX)
        return [Records(one.error, one.parts) for one in read]


class _Created(dict[str, int]):
    """When each object was made; many batches have the same."""

    def __init__(self, now_ms: int) -> None:
        super().__init__()
        self._now_ms = now_ms

    def __missing__(self, key: str) -> int:
        # A clock that is ahead must not keep a segment open.
        made_ms = ObjectKey.parse(key).created_ms
        self[key] = created = self._now_ms if made_ms is None else min(made_ms, self._now_ms)
        return created


def _batch(batch: BatchCoordinate, created_ms: int) -> WalBatch:
    key, _, size = batch.extent
    base_offset, last_offset = batch.stamp[:2]
    return WalBatch(key, created_ms, base_offset, last_offset + 1, size, batch)
