"""Ranges of tiered segments, read straight from their store.

A broker says which bytes of which segment hold some offsets. Nothing of that is believed: the key
must be of the partition, the range within the segment, and the batches there sound, in order and
without gaps from the first offset to the last.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from skylog.bulk.decode import EncodedBatch
from skylog.bulk.verify import batches_in_segment
from skylog.client.bulk import BatchLocation, Split
from skylog.kernel.errors import ErrorCode, KafkaError
from skylog.kernel.executor import Executor
from skylog.kernel.ids import ZERO_UUID
from skylog.objects.keys import LOCAL_TIERED_ROOT, segment_name
from skylog.objects.store import ObjectStore
from skylog.tiered.layout.aiven import LOG
from skylog.tiered.layout.plan import AivenLayout, Layout, LocalTieredLayout
from skylog.tiered.segments import RemoteSegment, TopicIdPartition
from skylog.tiered.storage import ObjectRemoteStorage
from skylog.wire.batch import HEADER_BYTES
from skylog.wire.buffers import Buffer

# What a broker names is a few megabytes, unless batches are larger.
RANGE_BYTES_MAX: Final = 256 * 1024 * 1024


class TieredReads:
    """All calls come from the event loop."""

    def __init__(self, open_store: Callable[[str], ObjectStore], executor: Executor) -> None:
        """``open_store``: by the address that a broker returned; ConfigError if it is elsewhere."""
        self._open_store = open_store
        self._executor = executor
        self._storages: dict[tuple[str, Layout], ObjectRemoteStorage] = {}

    async def read(
        self, split: Split, location: BatchLocation, url: str | None
    ) -> list[EncodedBatch]:
        """The batches of a location; CORRUPT_MESSAGE, ConfigError, or an error of the store."""
        segment, layout = _segment(split, location)
        storage = self.storage(url or "", layout)
        start, end = location.byte_offset, location.byte_offset + location.byte_size
        data: Buffer | None = storage.fetch_now(segment, start, end)
        if data is None:
            data = await storage.fetch(segment, start, end)
        found = data
        return await self._executor.run(lambda: batches_in_segment(split, location, found))

    async def close(self) -> None:
        for storage in self._storages.values():
            await storage.close()

    def storage(self, url: str, layout: Layout) -> ObjectRemoteStorage:
        """The segments at the address that a broker returned."""
        known = self._storages.get((url, layout))
        if known is None:
            known = ObjectRemoteStorage(self._open_store(url), layout, self._executor)
            self._storages[url, layout] = known
        return known


def _segment(split: Split, location: BatchLocation) -> tuple[RemoteSegment, Layout]:
    """What a location names; CORRUPT_MESSAGE if it cannot be of the split."""
    name = segment_name(location.object_key)
    start, size = location.byte_offset, location.byte_size
    if (
        name is None
        or name.suffix != LOG
        or (name.topic, name.partition) != (split.topic, split.partition)
        or split.topic_id not in (ZERO_UUID, name.topic_id)
    ):
        raise _refused(split, location, "not a segment of the partition")
    if (
        start < 0
        or not HEADER_BYTES <= size <= RANGE_BYTES_MAX
        or start + size > location.segment_size
        or location.base_offset < name.start_offset
    ):
        raise _refused(split, location, f"{size} bytes at {start} of {location.segment_size}")
    segment = RemoteSegment(
        topic=name.topic,
        partition=TopicIdPartition(name.topic_id, name.partition),
        id=name.segment_id,
        start_offset=name.start_offset,
        end_offset=location.last_offset,
        broker_id=-1,
        max_timestamp_ms=location.max_timestamp,
        event_timestamp_ms=-1,
        epochs=((0, name.start_offset),),
        size=location.segment_size,
    )
    return segment, layout_of(location.object_key)


def layout_of(key: str) -> Layout:
    """The layout that has such keys."""
    is_local = key.startswith(f"{LOCAL_TIERED_ROOT}/")
    return LocalTieredLayout() if is_local else AivenLayout()


def _refused(split: Split, location: BatchLocation, why: str) -> KafkaError:
    return KafkaError(
        ErrorCode.CORRUPT_MESSAGE,
        f"topic {split.topic} partition {split.partition} offset {location.base_offset}"
        f" in {location.object_key}: {why}",
    )
