"""What a store of remote segments holds, segment by segment, in key order.

The objects of a segment are next to each other in a listing, in both layouts, so that memory does
not grow with the store.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from skylog.kernel.ids import Uuid
from skylog.objects.keys import LOCAL_TIERED_ROOT, SegmentName
from skylog.objects.store import ObjectInfo, ObjectStore
from skylog.tiered.layout.aiven import LOG, MANIFEST
from skylog.tiered.segments import TopicIdPartition

_FIRST: Final = (MANIFEST,)


@dataclass(slots=True)
class StoredSegment:
    """The objects of one segment, by suffix."""

    topic: str
    partition: TopicIdPartition
    start_offset: int
    id: Uuid
    objects: dict[str, ObjectInfo] = field(default_factory=dict)

    @property
    def manifest(self) -> ObjectInfo | None:
        """In the layout with manifests, a segment that has none is not whole."""
        return self.objects.get(MANIFEST)

    @property
    def has_log(self) -> bool:
        return LOG in self.objects

    @property
    def has_layout_with_manifest(self) -> bool:
        key = next(iter(self.objects.values())).key
        return not key.text.startswith(f"{LOCAL_TIERED_ROOT}/")

    @property
    def size(self) -> int:
        return sum(info.size for info in self.objects.values())

    @property
    def modified_ms(self) -> int:
        """When the last of its objects was put."""
        return max(info.modified_ms for info in self.objects.values())

    @property
    def in_deletion_order(self) -> list[ObjectInfo]:
        """The manifest first: what is left of an interrupted deletion is no segment."""
        by_suffix: Mapping[str, ObjectInfo] = self.objects
        order = sorted(by_suffix, key=lambda suffix: suffix not in _FIRST)
        return [by_suffix[suffix] for suffix in order]


async def stored_segments(store: ObjectStore, prefix: str = "") -> AsyncIterator[StoredSegment]:
    """All segments of which an object is left; other objects are skipped."""
    current: StoredSegment | None = None
    async for info in store.list(prefix):
        name = info.key.segment
        if name is None:
            continue
        if current is None or not _belongs(current, name):
            if current is not None:
                yield current
            partition = TopicIdPartition(name.topic_id, name.partition)
            current = StoredSegment(name.topic, partition, name.start_offset, name.segment_id)
        current.objects[name.suffix] = info
    if current is not None:
        yield current


def _belongs(segment: StoredSegment, name: SegmentName) -> bool:
    where = TopicIdPartition(name.topic_id, name.partition)
    return segment.id == name.segment_id and segment.partition == where
