"""On the driver: indexes and manifests of segments whose logs are put.

They are small, and the producers at the end of a segment depend on those of all before it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Final, TypeAlias

from skylog.client.metadata import TopicPartition
from skylog.diskless.reader.patch import SERVED_EPOCH
from skylog.kernel.errors import StorageError
from skylog.log.producers import ProducerEntry
from skylog.objects.store import Buffer, ObjectError, ObjectStore
from skylog.tiered.assembly import Segment, snapshots
from skylog.tiered.copying import epoch_checkpoint
from skylog.tiered.layout.plan import AivenLayout, Put
from skylog.tiered.segments import IndexType, RemoteSegment

Made: TypeAlias = tuple[RemoteSegment, Segment]
_AT_ONCE: Final = 16


async def put_indexes(
    store: ObjectStore,
    chunk_size: int,
    made: Mapping[TopicPartition, Sequence[Made]],
    producers: Mapping[TopicPartition, Sequence[ProducerEntry]],
) -> None:
    """``made``: in the order of offsets; ``producers``: those before. StorageError."""
    layout, slots = AivenLayout(chunk_size), asyncio.Semaphore(_AT_ONCE)

    async def put(one: Made, snapshot: bytes) -> None:
        async with slots:
            await _put(store, layout, one, snapshot)

    work = []
    for key, found in made.items():
        made_snapshots = snapshots([segment for _, segment in found], producers[key])
        work += [put(*pair) for pair in zip(found, made_snapshots, strict=True)]
    try:
        await asyncio.gather(*work)
    except ObjectError as error:
        raise StorageError(f"cannot put the indexes of segments: {error}") from error


async def _put(store: ObjectStore, layout: AivenLayout, one: Made, snapshot: bytes) -> None:
    """The manifest last: a segment that has one is whole."""
    remote, segment = one
    indexes = {
        IndexType.OFFSET: segment.offset_index,
        IndexType.TIMESTAMP: segment.time_index,
        IndexType.PRODUCER_SNAPSHOT: snapshot,
        IndexType.LEADER_EPOCH: epoch_checkpoint(((SERVED_EPOCH, 0),), remote.end_offset + 1),
    }
    plan = layout.copy(remote, {kind: len(data) for kind, data in indexes.items()})
    for object_ in plan.puts[1:]:
        parts = _bytes(object_, indexes)
        await store.put_file(object_.key, parts, sum(map(len, parts)))


def _bytes(put: Put, indexes: Mapping[IndexType, bytes]) -> list[Buffer]:
    return [indexes[part] if isinstance(part, IndexType) else part or b"" for part in put.parts]
