"""Remote segments in an object store, in one of the layouts of ``layout/``.

Copy: log, indexes, then the manifest, so that a segment with a manifest is whole. Delete: the
manifest first. What is stored is not trusted: sizes are checked before memory is taken, and a
chunk is decompressed up to its size and no further.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Final

from skylog.kernel.clock import Clock
from skylog.kernel.errors import KafkaError, SkylogError, StorageError
from skylog.kernel.executor import Executor
from skylog.kernel.ids import Uuid
from skylog.kernel.limits import (
    REMOTE_CHUNK_BYTES_MAX,
    REMOTE_INDEX_BYTES_MAX,
    REMOTE_MANIFEST_BYTES_MAX,
    REMOTE_MANIFESTS_KEPT_MAX,
)
from skylog.kernel.logging import get_logger
from skylog.objects.claim import BucketClaim
from skylog.objects.keys import ObjectKey
from skylog.objects.store import (
    Buffer,
    CheckedFile,
    NotFound,
    ObjectError,
    ObjectStore,
    Outcome,
    Source,
)
from skylog.tiered.layout.chunks import BadManifest, Chunk
from skylog.tiered.layout.manifest import Manifest, decode_manifest
from skylog.tiered.layout.plan import Copy, Layout, Part
from skylog.tiered.ports import SegmentFiles
from skylog.tiered.segments import IndexType, RemoteSegment
from skylog.wire.batch import Compression
from skylog.wire.compression import decompress

_log = get_logger("tiered.storage")
_OWNER_SECONDS_MAX: Final = 5.0
# What zstd adds at most to data that it cannot compress, with room for other encoders.
_ZSTD_GROWTH_SHIFT: Final = 7
_ZSTD_GROWTH_BYTES: Final = 1024


class DamagedSegment(ObjectError):  # noqa: N818
    """The objects of this one segment are not what they should be; asking again does not help."""

    def __init__(self, message: str) -> None:
        super().__init__(message, Outcome.REFUSED)


class CustomMetadataTooLarge(SkylogError):  # noqa: N818
    """Nothing was put. The partition is not copied until the limit or the fields change."""

    def __init__(self, size: int, size_max: int) -> None:
        super().__init__(
            f"custom metadata of {size} bytes is over"
            f" remote.log.metadata.custom.metadata.max.bytes={size_max}"
        )


class UploadRate:
    """Spreads uploads, so that their average stays at ``bytes_per_second``."""

    def __init__(
        self,
        bytes_per_second: int,
        clock: Clock,
        sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
    ) -> None:
        self._rate = bytes_per_second
        self._clock = clock
        self._sleep = sleep
        self._free_at = 0.0

    async def take(self, size: int) -> None:
        """Wait until what was taken before is paid for."""
        now = self._clock.monotonic()
        begin = max(now, self._free_at)
        self._free_at = begin + size / self._rate
        if begin > now:
            await self._sleep(begin - now)


class ObjectRemoteStorage:
    """Implements ``ports.RemoteStorage``. The caller owns store and executor."""

    def __init__(
        self,
        store: ObjectStore,
        layout: Layout,
        executor: Executor,
        *,
        custom_metadata_bytes_max: int = 128,
        rate: UploadRate | None = None,
        claim: BucketClaim | None = None,
    ) -> None:
        """Without a ``claim`` the store may be anybody's: for reading, and for tests."""
        self.store = store
        self._claim = claim
        self.layout = layout
        self._executor = executor
        self._custom_metadata_bytes_max = custom_metadata_bytes_max
        self._rate = rate
        self._manifests = _Manifests(store, layout)
        # Called before the objects of a segment are deleted: what is cached of it goes, too.
        self.on_delete: Callable[[RemoteSegment], None] | None = None

    async def copy(self, segment: RemoteSegment, files: SegmentFiles) -> bytes | None:
        """Put all objects; the same again is harmless. ``CustomMetadataTooLarge``."""
        await self.require_ours()
        sizes = await self._executor.run(lambda: _sizes(files))
        plan = self.layout.copy(segment, sizes)
        custom = plan.custom_metadata
        if custom is not None and len(custom) > self._custom_metadata_bytes_max:
            raise CustomMetadataTooLarge(len(custom), self._custom_metadata_bytes_max)
        if self._rate is not None:
            await self._rate.take(segment.size)
        await self._put_all(segment, plan, files, sizes)
        return custom

    async def require_ours(self) -> None:
        """Refused if the store belongs to another cluster."""
        try:
            if self._claim is not None:
                await self._claim.require()
        except StorageError as error:
            raise ObjectError(str(error), Outcome.REFUSED) from error

    async def check_owner(self) -> None:
        """For a start: StorageError if the store belongs to another cluster. One that does not
        answer is asked again before anything is changed in it."""
        try:
            async with asyncio.timeout(_OWNER_SECONDS_MAX):
                if self._claim is not None:
                    await self._claim.require()
        except (ObjectError, TimeoutError) as error:
            _log.warning("the store of remote segments does not answer", why=str(error))

    async def _put_all(
        self,
        segment: RemoteSegment,
        plan: Copy,
        files: SegmentFiles,
        sizes: Mapping[IndexType, int],
    ) -> None:
        for key, parts in plan.puts:
            expected = sum(_size(part, segment, sizes) for part in parts)
            await self.store.put_file(key, _source(parts, files), expected)
            stored = (await self.store.head(key)).size
            if stored != expected:
                raise DamagedSegment(f"{key}: {stored} bytes are stored instead of {expected}")

    async def fetch(self, segment: RemoteSegment, start: int, end: int) -> Buffer:
        """Bytes of the log; a range that is not in it is refused."""
        manifest = await self._manifests.read(segment)
        with _Damaged(segment):
            key = self.layout.log_key(segment)
            chunks = [] if manifest is None else _transformed(manifest, start, end)
        if not chunks:
            return await self.store.get(key, start, end)
        first, last = chunks[0], chunks[-1]
        stored = await self.store.get(key, first.position, last.position + last.size)
        with _Damaged(segment):
            whole = await self._executor.run(lambda: _decompressed(stored, chunks))
        at = first.original_position
        return memoryview(whole)[start - at : end - at]

    def fetch_now(self, segment: RemoteSegment, start: int, end: int) -> bytearray | None:
        """The same bytes if they can be had without waiting; None only means ``fetch``."""
        at_hand, manifest = self.store.at_hand, self._manifests.kept(segment)
        if at_hand is None:
            return None
        try:
            if manifest is None and self.layout.manifest_key(segment) is not None:
                return None  # it has to be read first
            if manifest is not None and _transformed(manifest, start, end):
                return None
            return at_hand.get_now(self.layout.log_key(segment), start, end)
        except BadManifest:
            return None  # ``fetch`` reports it

    async def fetch_index(self, segment: RemoteSegment, kind: IndexType) -> Buffer:
        """One index, whole; ``NotFound`` if the segment has none of this kind."""
        manifest = await self._manifests.read(segment)
        with _Damaged(segment):
            key = self.layout.index_key(segment, kind)
        if manifest is None:
            size = (await self.store.head(key)).size
            _check_index(segment, kind, size)
            return await self.store.get(key, 0, size)
        place = manifest.indexes.get(kind)
        if place is None:
            raise NotFound(f"segment {segment.id} has no {kind.value} index")
        _check_index(segment, kind, place.size)
        return await self.store.get(key, place.position, place.position + place.size)

    async def delete(self, segment: RemoteSegment) -> None:
        """Manifest first; what is absent counts as deleted."""
        await self.require_ours()
        self._manifests.forget(segment)
        if self.on_delete is not None:
            self.on_delete(segment)
        with _Damaged(segment):
            groups = self.layout.deletions(segment)
        for keys in groups:
            await self.store.delete_many(keys)

    async def read_manifest(self, segment: RemoteSegment) -> Manifest | None:
        """None in a layout without manifests; ``NotFound``, ``DamagedSegment``."""
        return await self._manifests.read(segment)

    async def close(self) -> None:
        await self.store.close()


class _Manifests:
    """The manifests that were read last, each asked for once however many wait for it."""

    def __init__(self, store: ObjectStore, layout: Layout) -> None:
        self._store = store
        self._layout = layout
        self._kept: OrderedDict[Uuid, Manifest] = OrderedDict()
        self._under_way: dict[Uuid, asyncio.Task[Manifest]] = {}

    def kept(self, segment: RemoteSegment) -> Manifest | None:
        return self._kept.get(segment.id)

    async def read(self, segment: RemoteSegment) -> Manifest | None:
        key = self._layout.manifest_key(segment)
        if key is None:
            return None
        kept = self._kept.get(segment.id)
        if kept is not None:
            self._kept.move_to_end(segment.id)
            return kept
        reading = self._under_way.get(segment.id)
        if reading is None:
            reading = asyncio.ensure_future(self._read(segment, key))
            self._under_way[segment.id] = reading
            reading.add_done_callback(lambda done: self._end(segment.id, done))
        # Shielded: one that gives up waiting must not fail the others.
        return await asyncio.shield(reading)

    def _end(self, segment_id: Uuid, reading: asyncio.Task[Manifest]) -> None:
        self._under_way.pop(segment_id, None)
        if not reading.cancelled():
            reading.exception()  # those that waited may be gone

    def forget(self, segment: RemoteSegment) -> None:
        self._kept.pop(segment.id, None)

    async def _read(self, segment: RemoteSegment, key: ObjectKey) -> Manifest:
        manifest = await read_manifest(self._store, key)
        if manifest.chunks.original_file_size != segment.size:
            raise DamagedSegment(
                f"{key} is of a log of {manifest.chunks.original_file_size} bytes,"
                f" the segment has {segment.size}"
            )
        self._kept[segment.id] = manifest
        if len(self._kept) > REMOTE_MANIFESTS_KEPT_MAX:
            self._kept.popitem(last=False)
        return manifest


async def read_manifest(store: ObjectStore, key: ObjectKey) -> Manifest:
    """Read and parse a manifest; ``DamagedSegment`` if it is none."""
    size = (await store.head(key)).size
    if size > REMOTE_MANIFEST_BYTES_MAX:
        raise DamagedSegment(f"{key}: a manifest of {size} bytes")
    data = await store.get(key, 0, size)
    try:
        return decode_manifest(data)
    except BadManifest as error:
        raise DamagedSegment(f"{key}: {error}") from error


class _Damaged:
    """Turns what is wrong with a segment's description into the store's kind of error."""

    def __init__(self, segment: RemoteSegment) -> None:
        self._segment = segment

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, BadManifest):
            raise DamagedSegment(f"segment {self._segment.id}: {error}") from error


def _transformed(manifest: Manifest, start: int, end: int) -> list[Chunk]:
    """The chunks to decompress; none if the log is stored as it is."""
    if not manifest.compression:
        if not manifest.chunks.is_plain:
            raise BadManifest("chunks of other sizes than the log's, though not compressed")
        return []
    chunks = list(manifest.chunks.covering(start, end))
    for chunk in chunks:
        size_max = chunk.original_size + (chunk.original_size >> _ZSTD_GROWTH_SHIFT)
        if chunk.original_size > REMOTE_CHUNK_BYTES_MAX:
            raise BadManifest(f"a compressed chunk of {chunk.original_size} bytes")
        if chunk.size > size_max + _ZSTD_GROWTH_BYTES:
            raise BadManifest(f"{chunk.size} bytes for a chunk of {chunk.original_size}")
    return chunks


def plain_log(manifest: Manifest, stored: bytes) -> bytes:
    """The log in a whole object; BadManifest."""
    chunks = _transformed(manifest, 0, manifest.chunks.original_file_size)
    return _decompressed(stored, chunks) if chunks else stored


def _decompressed(stored: bytes, chunks: Sequence[Chunk]) -> bytes:
    view, begin = memoryview(stored), chunks[0].position
    parts = []
    for chunk in chunks:
        at = chunk.position - begin
        try:
            part = decompress(Compression.ZSTD, view[at : at + chunk.size], chunk.original_size)
        except KafkaError as error:
            raise BadManifest(f"chunk at {chunk.position}: {error}") from error
        if len(part) != chunk.original_size:
            raise BadManifest(
                f"chunk at {chunk.position}: {len(part)} bytes instead of {chunk.original_size}"
            )
        parts.append(part)
    return b"".join(parts)


def _check_index(segment: RemoteSegment, kind: IndexType, size: int) -> None:
    if size > REMOTE_INDEX_BYTES_MAX:
        raise DamagedSegment(f"segment {segment.id}: {kind.value} index of {size} bytes")


def _sizes(files: SegmentFiles) -> dict[IndexType, int]:
    """Blocks: looks at the files."""
    sizes = {IndexType.LEADER_EPOCH: len(files.leader_epochs)}
    for kind, path in _paths(files).items():
        try:
            sizes[kind] = path.stat().st_size
        except OSError as error:
            raise ObjectError(f"cannot read {path}: {error.strerror}", Outcome.REFUSED) from error
    return sizes


def _paths(files: SegmentFiles) -> dict[IndexType, Path]:
    paths = {
        IndexType.OFFSET: Path(files.offset_index),
        IndexType.TIMESTAMP: Path(files.time_index),
        IndexType.PRODUCER_SNAPSHOT: Path(files.producer_snapshot),
    }
    if files.transaction_index is not None:
        paths[IndexType.TRANSACTION] = Path(files.transaction_index)
    return paths


def _size(part: Part, segment: RemoteSegment, sizes: Mapping[IndexType, int]) -> int:
    if part is None:
        return segment.size
    return sizes[part] if isinstance(part, IndexType) else len(part)


def _source(parts: Sequence[Part], files: SegmentFiles) -> Source:
    paths = _paths(files)
    source: list[Path | CheckedFile | Buffer] = []
    for part in parts:
        if part is None:
            log = Path(files.log)
            source.append(log if files.check is None else CheckedFile(log, files.check))
        elif part is IndexType.LEADER_EPOCH:
            source.append(files.leader_epochs)
        elif isinstance(part, IndexType):
            source.append(paths[part])
        else:
            source.append(part)
    return source
