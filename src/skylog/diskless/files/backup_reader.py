"""Reads backups: of one node, or of all nodes of a cluster.

Replicas of a log back up what is committed of it, each at its own time, so that one backup
continues another. The newest is that of the latest leader epoch, and the longest of these: a backup
from before a restore does not count against one that was made after it.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Mapping
from typing import Final, TypeAlias

from skylog.diskless.files.backup import read_manifest
from skylog.diskless.files.manifest import LogBackup, Manifest, Part, manifest_prefix
from skylog.diskless.plane import TopicPartition
from skylog.kernel.errors import StorageError
from skylog.kernel.topics import CLUSTER_METADATA
from skylog.objects.store import NotFound, ObjectInfo, ObjectStore
from skylog.quorum.snapshots import parse_name
from skylog.wire.batch import Batch, split_batches
from skylog.wire.messages.partition_record import PartitionRecord
from skylog.wire.metadata_records import decode_metadata
from skylog.wire.records import decode_records

_BACKUPS: Final = "backup/"
_MANIFESTS: Final = "manifests"
# A log's topic id and partition.
LogIdentity: TypeAlias = tuple[str, int]


async def latest_backup(store: ObjectStore, node_id: int) -> Manifest:
    """The newest backup; StorageError if there is none or it cannot be read."""
    newest = None
    async for info in store.list(manifest_prefix(node_id)):
        newest = info
    if newest is None:
        raise StorageError(f"the bucket has no backup of node {node_id}")
    manifest = await read_manifest(store, newest)
    if manifest.node_id != node_id:
        raise StorageError(f"{newest.key} is a backup of node {manifest.node_id}")
    return manifest


async def latest_of_all(store: ObjectStore) -> list[Manifest]:
    """The newest backup of each node, in the order of their names."""
    newest: dict[str, ObjectInfo] = {}
    async for info in store.list(_BACKUPS):
        node, _, rest = info.key.text.removeprefix(_BACKUPS).partition("/")
        if rest.partition("/")[0] == _MANIFESTS:
            newest[node] = info
    return [await read_manifest(store, newest[node]) for node in sorted(newest)]


def identity(log: LogBackup) -> LogIdentity:
    return log.topic_id, log.partition


async def newest_logs(
    store: ObjectStore, manifests: Iterable[Manifest], topic: str
) -> Mapping[LogIdentity, LogBackup]:
    """The newest backup of each log of ``topic``, whoever has made it."""
    candidates: dict[LogIdentity, list[LogBackup]] = {}
    for manifest in manifests:
        for log in manifest.logs:
            if log.topic == topic:
                candidates.setdefault(identity(log), []).append(log)
    found = {}
    for one, logs in candidates.items():
        ends = {log: (await _last_epoch(store, log), log.end_offset) for log in logs}
        found[one] = max(logs, key=ends.__getitem__)
    return found


async def _last_epoch(store: ObjectStore, log: LogBackup) -> int:
    if log.pieces:
        *_, last = split_batches(await get_part(store, log.pieces[-1]))
        return int(last.leader_epoch)
    parsed = parse_name(log.snapshot_name)
    return parsed[0].epoch if parsed is not None else -1


async def diskless_partitions(
    store: ObjectStore, manifests: Iterable[Manifest]
) -> set[TopicPartition]:
    """Those that there were, by the newest backup of the cluster's metadata."""
    found: set[TopicPartition] = set()
    for log in (await newest_logs(store, manifests, CLUSTER_METADATA)).values():
        if log.snapshot is not None:
            found |= _diskless(split_batches(await get_part(store, log.snapshot)))
        async for batches in batches_of(store, log):
            found |= _diskless(batches)
    return found


def _diskless(batches: Iterable[Batch]) -> set[TopicPartition]:
    records = (
        decode_metadata(record.value)
        for batch in batches
        for record in (() if batch.is_control else decode_records(batch))
    )
    return {
        (one.topic_id, one.partition_id)
        for one in records
        if isinstance(one, PartitionRecord) and one.diskless_coordinator_id >= 0
    }


async def get_part(store: ObjectStore, part: Part) -> bytes:
    try:
        data = await store.get(part.object_key)
    except NotFound as error:
        raise StorageError(f"{part.key} of the backup is gone") from error
    part.check(data)
    return data


async def batches_of(store: ObjectStore, log: LogBackup) -> AsyncIterator[list[Batch]]:
    """Everything after the snapshot, piece by piece; the first may begin before it."""
    for piece in log.pieces:
        data = await get_part(store, piece)
        batches = [batch for batch in split_batches(data) if batch.base_offset >= log.start_offset]
        if batches:
            yield batches
