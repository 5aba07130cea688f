"""Backups of all metadata in the bucket, so that a node that lost its disks can be restored.

The coordinators' logs are copied first and the cluster's metadata last, so that no coordinator in
the backup has a partition that metadata does not know. A log is copied up to its high watermark, as
the latest snapshot and what follows it; each backup adds what is new since the previous one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from skylog.diskless.files.manifest import (
    LogBackup,
    Manifest,
    Part,
    digest_of,
    manifest_key,
    manifest_prefix,
    node_prefix,
    part_key,
)
from skylog.kernel.clock import Clock
from skylog.kernel.errors import ErrorCode, KafkaError, StorageError
from skylog.kernel.executor import Executor
from skylog.kernel.ids import Uuid
from skylog.kernel.limits import DISKLESS_BACKUP_MANIFEST_BYTES_MAX, DISKLESS_BACKUP_PIECE_BYTES
from skylog.kernel.rng import Random
from skylog.objects.claim import BucketClaim
from skylog.objects.store import NotFound, ObjectInfo, ObjectStore
from skylog.quorum.snapshots import SUFFIX, SnapshotId, parse_name
from skylog.replicated.topic_log import StoredLog
from skylog.wire.batch import split_batches

# Number of backups kept; older ones are pruned after each new one.
KEPT: Final = 3
# A log in more pieces than this is rewritten as one, so that a restore need not read thousands of
# objects.
PIECES_MAX: Final = 60


@dataclass(frozen=True, slots=True)
class LogToBackup:
    """``directory`` contains the log's snapshots."""

    topic: str
    partition: int
    topic_id: Uuid
    directory: Path
    log: StoredLog


@dataclass(frozen=True, slots=True)
class StateToBackup:
    """What a node has made of a partition's records, as one snapshot: there is no log to copy after
    it. ``role`` is kept with it for the restore."""

    topic: str
    partition: int
    topic_id: Uuid
    # The records below this offset are in it.
    offset: int
    role: str
    # Called on a thread.
    encode: Callable[[], bytes]


@dataclass(frozen=True, slots=True)
class NodeIdentity:
    """What identifies a node."""

    cluster_id: str
    node_id: int
    directory_ids: Sequence[str]


@dataclass(slots=True)
class BackupStats:
    backups: int = 0
    bytes: int = 0
    last_backup_ms: int = 0
    # The end of the last backup, by log.
    end_offsets: dict[str, int] = field(default_factory=dict)


class MetadataBackup:
    """Writes backups of one node. What it wrote is remembered only in memory: after a restart it
    writes everything again."""

    def __init__(
        self,
        identity: NodeIdentity,
        sources: Callable[[], Sequence[LogToBackup]],
        election: Callable[[], str],
        store: ObjectStore,
        *,
        clock: Clock,
        rng: Random,
        executor: Executor,
    ) -> None:
        """``sources`` in the order in which they are copied; ``election`` blocks."""
        self._identity = identity
        self._sources = sources
        self._states: Callable[[], Sequence[StateToBackup]] = tuple
        self._election = election
        self._store = store
        self._claim = BucketClaim(store, identity.cluster_id)
        self._clock = clock
        self._rng = rng
        self._executor = executor
        self._last: dict[tuple[str, int], LogBackup] = {}
        self.stats = BackupStats()

    def include(self, states: Callable[[], Sequence[StateToBackup]]) -> None:
        """Copy these too, before all others."""
        self._states = states

    async def run_once(self) -> None:
        """One backup; nothing is written if nothing has changed."""
        await self._claim.require()
        created_ms = self._clock.now_ms()
        copies = [await self._copy_state(state) for state in self._states()]
        copies += [await self._copy(source) for source in self._sources()]
        now = {(copy.topic, copy.partition): copy for copy in copies}
        if now == self._last:
            return
        identity = self._identity
        manifest = Manifest(
            identity.cluster_id,
            identity.node_id,
            tuple(identity.directory_ids),
            created_ms,
            await self._executor.run(self._election),
            tuple(copies),
        )
        key = manifest_key(identity.node_id, created_ms, self._rng.randbytes(4))
        await self._store.put(key, manifest.to_bytes())
        self._last = now
        self.stats.backups += 1
        self.stats.last_backup_ms = created_ms
        self.stats.end_offsets = {f"{one.topic}-{one.partition}": one.end_offset for one in copies}
        await self._prune()

    async def _copy_state(self, source: StateToBackup) -> LogBackup:
        last = self._last.get((source.topic, source.partition))
        data = await self._executor.run(source.encode)
        known = last.snapshot if last else None
        if known is None or known.digest != digest_of(data):
            known = await self._put(source, data, 0, source.offset)
        topic_id = str(source.topic_id)
        return LogBackup(source.topic, source.partition, topic_id, known, source.role, ())

    async def _copy(self, source: LogToBackup) -> LogBackup:
        last = self._last.get((source.topic, source.partition))
        if last is not None and last.topic_id != str(source.topic_id):
            last = None
        snapshot_id = await self._executor.run(lambda: latest_snapshot(source.directory))
        name = snapshot_id.file_name if snapshot_id else ""
        if last is not None and last.snapshot_name == name:
            snapshot = last.snapshot
        else:
            snapshot = await self._copy_snapshot(source, snapshot_id)
        start = snapshot_id.offset if snapshot_id else 0
        high_watermark = source.log.high_watermark
        pieces = [piece for piece in last.pieces if piece.end_offset > start] if last else []
        broken = pieces and not pieces[0].start_offset <= start <= high_watermark
        if broken or len(pieces) >= PIECES_MAX:
            pieces = []
        offset = pieces[-1].end_offset if pieces else start
        while offset < high_watermark:
            piece = await self._copy_piece(source, offset, high_watermark)
            pieces.append(piece)
            offset = piece.end_offset
        topic_id = str(source.topic_id)
        return LogBackup(source.topic, source.partition, topic_id, snapshot, name, tuple(pieces))

    async def _copy_snapshot(
        self, source: LogToBackup, snapshot_id: SnapshotId | None
    ) -> Part | None:
        if snapshot_id is None:
            return None
        path = source.directory / snapshot_id.file_name

        def read() -> bytes:
            try:
                return path.read_bytes()
            except OSError as error:  # the next pass finds its successor
                raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, f"{path}: {error}") from error

        return await self._put(source, await self._executor.run(read), 0, snapshot_id.offset)

    async def _copy_piece(self, source: LogToBackup, offset: int, high_watermark: int) -> Part:
        read = await self._executor.run(lambda: read_piece(source.log, offset, high_watermark))
        data, end_offset = read
        return await self._put(source, data, offset, end_offset)

    async def _put(
        self, source: LogToBackup | StateToBackup, data: bytes, start: int, end: int
    ) -> Part:
        digest = digest_of(data)
        key = part_key(self._identity.node_id, source.topic, source.partition, digest)
        await self._store.put(key, data)
        self.stats.bytes += len(data)
        return Part(key.text, len(data), digest, start, end)

    async def _prune(self) -> None:
        """Remove old manifests first, then everything that no manifest names."""
        node_id = self._identity.node_id
        manifests = [info async for info in self._store.list(manifest_prefix(node_id))]
        await self._store.delete_many([info.key for info in manifests[:-KEPT]])
        needed: set[str] = set()
        for info in manifests[-KEPT:]:
            needed.add(info.key.text)
            manifest = await read_manifest(self._store, info)
            needed.update(part.key for log in manifest.logs for part in log.parts)
        old = [
            info.key
            async for info in self._store.list(node_prefix(node_id))
            if info.key.text not in needed
        ]
        await self._store.delete_many(old)


async def read_manifest(store: ObjectStore, info: ObjectInfo) -> Manifest:
    """StorageError if it is damaged or far too large."""
    if info.size > DISKLESS_BACKUP_MANIFEST_BYTES_MAX:
        raise StorageError(f"{info.key} has {info.size} bytes, too many for a manifest")
    try:
        return Manifest.from_bytes(await store.get(info.key))
    except NotFound as error:
        raise StorageError(f"{info.key} is gone") from error


def latest_snapshot(directory: Path) -> SnapshotId | None:
    """Blocks."""
    try:
        parsed = [parse_name(path.name) for path in directory.iterdir()]
    except FileNotFoundError:
        return None
    return max((found[0] for found in parsed if found and found[1] == SUFFIX), default=None)


def read_piece(log: StoredLog, offset: int, high_watermark: int) -> tuple[bytes, int]:
    """Whole batches from ``offset``, about one piece's worth, and their end."""
    parts: list[bytes] = []
    size, end = 0, offset
    while end < high_watermark and size < DISKLESS_BACKUP_PIECE_BYTES:
        left = DISKLESS_BACKUP_PIECE_BYTES - size
        data = bytes(log.reader.read(end, left, high_watermark, min_one=True, block=True).buffer)
        batches = list(split_batches(data))
        if not batches:
            break
        parts.append(data)
        size += len(data)
        end = batches[-1].next_offset
    if end == offset:
        raise KafkaError(
            ErrorCode.KAFKA_STORAGE_ERROR, f"no batch between {offset} and {high_watermark}"
        )
    return b"".join(parts), end
