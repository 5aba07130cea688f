"""Whether the objects of a remote segment are whole, asked of the store itself.

The WAL goes on the word of this: nothing is taken from a cache.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from skylog.tiered.layout.chunks import BadManifest
from skylog.tiered.segments import IndexType, RemoteSegment
from skylog.tiered.storage import DamagedSegment, ObjectRemoteStorage, read_manifest

if TYPE_CHECKING:
    from skylog.tiered.layout.manifest import Manifest


async def read_back(storage: ObjectRemoteStorage, segment: RemoteSegment) -> None:
    """``NotFound`` or ``DamagedSegment`` unless manifest, log and indexes are there, of the sizes
    that they should have. Other errors of the store mean that it did not say."""
    store, layout = storage.store, storage.layout
    try:
        key, log_key = layout.manifest_key(segment), layout.log_key(segment)
        manifest = None if key is None else await read_manifest(store, key)
        if manifest is not None:
            _check_manifest(segment, manifest)
    except BadManifest as error:
        raise DamagedSegment(f"segment {segment.id}: {error}") from error
    log_size = segment.size if manifest is None else manifest.chunks.object_size
    stored = (await store.head(log_key)).size
    if stored != log_size:
        raise DamagedSegment(f"{log_key}: {stored} bytes are stored instead of {log_size}")
    for kind in _needed(segment) if manifest is None else ():
        await store.head(layout.index_key(segment, kind))
    if manifest is not None:
        index_key = layout.index_key(segment, IndexType.OFFSET)
        stored = (await store.head(index_key)).size
        if stored < manifest.indexes_size:
            raise DamagedSegment(f"{index_key}: {stored} of {manifest.indexes_size} bytes")


def _check_manifest(segment: RemoteSegment, manifest: Manifest) -> None:
    size, described = manifest.chunks.original_file_size, manifest.segment
    if size != segment.size:
        raise BadManifest(f"its manifest is of a log of {size} bytes instead of {segment.size}")
    if not manifest.compression and not manifest.chunks.is_plain:
        raise BadManifest("chunks of other sizes than the log's, though not compressed")
    if described is not None and _range(described) != _range(segment):
        raise BadManifest("its manifest describes another segment")
    missing = [kind.value for kind in _needed(segment) if kind not in manifest.indexes]
    if missing:
        raise BadManifest(f"its manifest names no {missing[0]} index")


def _range(segment: RemoteSegment) -> tuple[object, ...]:
    return segment.id, segment.partition, segment.start_offset, segment.end_offset


def _needed(segment: RemoteSegment) -> list[IndexType]:
    return [
        kind
        for kind in IndexType
        if kind is not IndexType.TRANSACTION or not segment.txn_index_empty
    ]
