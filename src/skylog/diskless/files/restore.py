"""Rebuilds a node on empty disks from its latest backup in the bucket, and of coordinators from the
newest backup that any node has made.

``meta.properties`` is written last: no node starts on the directories of an interrupted restore.
Objects newer than the backup are put under a hold first, so that the restored cluster does not take
them for orphans.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final, Protocol

from skylog.diskless.batch import BatchCoordinate
from skylog.diskless.coordinator.loading import load_snapshot, replay
from skylog.diskless.coordinator.machine import CoordinatorMachine
from skylog.diskless.coordinator.memory import MemoryState
from skylog.diskless.coordinator.snapshots import Snapshots
from skylog.diskless.files.backup_reader import (
    batches_of,
    diskless_partitions,
    get_part,
    identity,
    latest_backup,
    latest_of_all,
    newest_logs,
)
from skylog.diskless.files.manifest import LogBackup, Manifest
from skylog.diskless.files.orphans import PREFIX, STAGED_PREFIX
from skylog.diskless.plane import TopicPartition
from skylog.diskless.rules.times import PlaneRules
from skylog.kernel.clock import Clock
from skylog.kernel.errors import StorageError
from skylog.kernel.ids import Uuid
from skylog.kernel.limits import EPOCHS_PER_RESTORE
from skylog.kernel.settings.tiered import METADATA_TOPIC as REMOTE_LOG_METADATA
from skylog.kernel.topics import CLUSTER_METADATA, DISKLESS_METADATA
from skylog.log.config import LogConfig
from skylog.log.directory import LogDirectory
from skylog.log.files import Files
from skylog.log.host import LogHost
from skylog.log.log import Log
from skylog.log.names import directory_name
from skylog.objects.holds import Hold, put_hold
from skylog.objects.store import ObjectStore
from skylog.quorum.election_file import FILE_NAME as ELECTION_NAME
from skylog.quorum.meta_properties import MetaProperties, write_meta_properties
from skylog.quorum.snapshots import SUFFIX, parse_name
from skylog.wire.batch import Batch, split_batches
from skylog.wire.messages.partition_record import PartitionRecord
from skylog.wire.messages.topic_record import TopicRecord
from skylog.wire.metadata_records import decode_metadata
from skylog.wire.records import decode_records

# The file that says how far leader epochs are lifted, beside the cluster's metadata.
EPOCH_FLOOR: Final = "restored-leader-epoch-floor"
# What a backup says of a partition of the metadata topic of which the node has a replica.
REPLICA: Final = "replica"
_ABOVE_ALL: Final = 2**63 - 1
LOST_FOUND: Final = "lost+found"  # every new file system has it


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeDirectories:
    """The node's directories: ``metadata_dir`` may be one of ``log_dirs``."""

    node_id: int
    metadata_dir: Path
    log_dirs: Sequence[Path]
    coordinators: Path

    @property
    def all(self) -> list[Path]:
        """In the order of a backup's ids: metadata first, each once."""
        return list(dict.fromkeys([self.metadata_dir, *self.log_dirs]))


@dataclass(frozen=True, slots=True)
class RestoredPartition:
    """``high_watermark`` is the first missing offset."""

    topic: str
    partition: int
    log_start_offset: int
    high_watermark: int


@dataclass(slots=True)
class RestoreReport:
    cluster_id: str
    backup_ms: int
    partitions: list[RestoredPartition] = field(default_factory=list)
    # Missing objects with batches in the backup that are not in remote segments either.
    missing: list[str] = field(default_factory=list)
    # Unknown objects: uploaded after the backup, held until the operator decides.
    newer: list[str] = field(default_factory=list)


class RemoteMetadata(Protocol):
    """What ``__remote_log_metadata`` is to say after the restore."""

    async def batches(self, wal: Mapping[TopicPartition, tuple[int, int]]) -> Mapping[int, bytes]:
        """Batches by partition of that topic; ``wal`` has the restored WAL start and the end of
        partitions that have other records than their remote segments. The same on every node."""
        ...

    def has(self, partition: TopicPartition, first: int, last: int) -> bool:
        """Whether remote segments have these offsets; known after ``batches``."""
        ...


class LeaderEpochs:
    """How far leader epochs have to be lifted.

    The cluster went on after the backup, so that epochs that the restored one would hand out have
    been used: by fences of remote segments, by boundaries, and by clients, which ignore metadata of
    a lower epoch than they have seen.
    """

    def __init__(self) -> None:
        self._highest = 0
        self._topic_ids: dict[Uuid, None] = {}

    def note(self, batches: Iterable[Batch]) -> None:
        """Batches of the cluster's metadata."""
        for batch in batches:
            for record in () if batch.is_control else decode_records(batch):
                found = decode_metadata(record.value)
                if isinstance(found, PartitionRecord):
                    self._highest = max(self._highest, found.leader_epoch)
                elif isinstance(found, TopicRecord):
                    self._topic_ids[found.topic_id] = None

    @property
    def floor(self) -> int:
        """Behind all epochs of the backup, and those used since."""
        return (self._highest // EPOCHS_PER_RESTORE + 1) * EPOCHS_PER_RESTORE

    @property
    def text(self) -> str:
        """What ``read_epoch_floor`` reads."""
        return "\n".join([str(self.floor), *map(str, self._topic_ids), ""])


def read_epoch_floor(metadata_log: Path) -> tuple[int, frozenset[Uuid]] | None:
    """How far leader epochs are to be lifted, and of which topics; None for a node that was not
    restored. Blocks."""
    try:
        floor, *ids = (metadata_log / EPOCH_FLOOR).read_text().split()
        return int(floor), frozenset(map(Uuid.parse, ids))
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise StorageError(f"{metadata_log / EPOCH_FLOOR}: {error}") from error


class Restore:
    """One restore. Blocks on files: nothing else runs concurrently."""

    def __init__(
        self,
        store: ObjectStore,
        directories: NodeDirectories,
        files: Files,
        clock: Clock,
        rules: PlaneRules,
        remote: RemoteMetadata | None = None,
    ) -> None:
        """``remote`` is None if the node has no tiered storage."""
        self._store = store
        self._remote = remote
        self._directories = directories
        self._files = files
        self._clock = clock
        self._rules = rules
        self._machines: list[CoordinatorMachine] = []
        self._epochs = LeaderEpochs()

    async def run(self) -> RestoreReport:
        manifest = await latest_backup(self._store, self._directories.node_id)
        self._check(manifest)
        for directory in self._directories.all:
            directory.mkdir(parents=True, exist_ok=True)
        manifests = await self._manifests(manifest)
        # Of all coordinators of the cluster: all nodes restore the same of each, so that it does
        # not matter who leads it then.
        coordinators = dict(await newest_logs(self._store, manifests, DISKLESS_METADATA))
        restored = [
            await self._restore_log(coordinators.pop(identity(log)))
            for log in manifest.logs
            if log.topic == DISKLESS_METADATA
        ]
        if self._remote is not None:
            restored += await self._restore_remote(self._remote, manifests, coordinators.values())
        self._write_checkpoints(restored)
        for log in manifest.logs:
            if log.topic == CLUSTER_METADATA:
                await self._restore_log(log)
        metadata = self._log_directory(CLUSTER_METADATA, 0)
        self._files.replace(str(metadata / EPOCH_FLOOR), self._epochs.text.encode())
        if manifest.election:
            self._files.replace(str(metadata / ELECTION_NAME), manifest.election.encode())
        report = await self._report(manifest)
        await put_hold(self._store, self._hold(manifest))
        self._write_identity(manifest)
        return report

    def _check(self, manifest: Manifest) -> None:
        """The directories must be empty, and as many as before."""
        for directory in (*self._directories.all, self._directories.coordinators):
            if directory.exists() and any(p.name != LOST_FOUND for p in directory.iterdir()):
                raise StorageError(f"{directory} is not empty; a restore needs empty directories")
        count = len(manifest.directory_ids)
        if count != len(self._directories.all):
            raise StorageError(
                f"the backup is of a node with {count} log directories,"
                f" this one has {len(self._directories.all)}"
            )
        if not any(log.topic == CLUSTER_METADATA for log in manifest.logs):
            raise StorageError("the backup has no cluster metadata")

    def _log_directory(self, topic: str, partition: int) -> Path:
        where = self._directories
        home = where.metadata_dir if topic == CLUSTER_METADATA else where.log_dirs[0]
        return home / directory_name(topic, partition)

    async def _manifests(self, manifest: Manifest) -> list[Manifest]:
        """The newest backup of each node of the cluster; ``manifest`` is this node's."""
        others = [
            one
            for one in await latest_of_all(self._store)
            if one.cluster_id == manifest.cluster_id and one.node_id != manifest.node_id
        ]
        return [manifest, *others]

    async def _restore_remote(
        self, remote: RemoteMetadata, manifests: Sequence[Manifest], elsewhere: Iterable[LogBackup]
    ) -> list[Log]:
        """Logs of the metadata topic of remote segments: not copied, but written anew."""
        hosted = [
            backup
            for backup in manifests[0].logs
            if backup.topic == REMOTE_LOG_METADATA and backup.snapshot_name == REPLICA
        ]
        if not hosted and not self._machines:  # a controller need not read the store
            return []
        others = [await self._replayed(log) for log in elsewhere]
        # A database, which is not restored, may have anything of them.
        wal = dict.fromkeys(await diskless_partitions(self._store, manifests), (0, _ABOVE_ALL))
        wal |= {
            partition: (state.wal_start_offset, state.high_watermark)
            for machine in (*self._machines, *others)
            for partition, _, state in machine.state.all_partitions()
        }
        batches = await remote.batches(wal)
        return [self._new_log(backup, batches.get(backup.partition, b"")) for backup in hosted]

    def _new_log(self, backup: LogBackup, batches: bytes) -> Log:
        key, host = (backup.topic, backup.partition), LogHost(self._files)
        directory = str(self._log_directory(backup.topic, backup.partition))
        log = Log.open(key, directory, host, LogConfig(), self._clock.now_ms())
        log.companions.assign_topic_id(Uuid.parse(backup.topic_id))
        if batches:
            log.appender.append_as_follower(list(split_batches(batches)))
        log.high_watermark = log.log_end_offset
        log.close()
        return log

    # -- logs ----------------------------------------------------------------------------------

    async def _restore_log(self, backup: LogBackup) -> Log:
        topic_id = Uuid.parse(backup.topic_id)
        directory = self._log_directory(backup.topic, backup.partition)
        coordinates = backup.topic == DISKLESS_METADATA
        snapshots = (
            self._directories.coordinators / f"{topic_id}-{backup.partition}"
            if coordinates
            else directory
        )
        await self._restore_snapshot(backup, snapshots)
        key, host = (backup.topic, backup.partition), LogHost(self._files)
        log = Log.open(key, str(directory), host, LogConfig(), self._clock.now_ms())
        if backup.start_offset:
            log.truncate_fully_and_start_at(backup.start_offset)
        log.companions.assign_topic_id(topic_id)
        machine = self._machine_of(backup, snapshots) if coordinates else None
        if machine is not None:
            self._machines.append(machine)
        async for batches in batches_of(self._store, backup):
            log.appender.append_as_follower(batches)
            if backup.topic == CLUSTER_METADATA:
                self._epochs.note(batches)
            if machine is not None:
                replay(machine, batches)
        if log.log_end_offset != backup.end_offset:
            raise StorageError(
                f"{directory} ends at {log.log_end_offset}, the backup at {backup.end_offset}"
            )
        log.high_watermark = log.log_end_offset
        log.close()
        return log

    async def _restore_snapshot(self, backup: LogBackup, directory: Path) -> None:
        if backup.snapshot is None:
            return
        parsed = parse_name(backup.snapshot_name)
        if parsed is None or parsed[1] != SUFFIX or parsed[0].offset != backup.start_offset:
            raise StorageError(
                f"the backup names {backup.snapshot_name!r}, which is not a snapshot"
            )
        data = await get_part(self._store, backup.snapshot)
        if backup.topic == CLUSTER_METADATA:
            self._epochs.note(split_batches(data))
        self._write(directory, parsed[0].file_name, data)

    def _write(self, directory: Path, name: str, data: bytes) -> None:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._files.replace(str(directory / name), data)

    def _write_checkpoints(self, logs: Sequence[Log]) -> None:
        home = LogDirectory(self._files, str(self._directories.log_dirs[0]))
        home.write_offsets(logs)
        home.write_high_watermarks(logs)

    def _write_identity(self, manifest: Manifest) -> None:
        ids = zip(self._directories.all, manifest.directory_ids, strict=True)
        for directory, directory_id in ids:
            properties = MetaProperties(
                manifest.cluster_id, manifest.node_id, Uuid.parse(directory_id)
            )
            write_meta_properties(self._files, directory, properties)

    # -- what was lost -------------------------------------------------------------------------

    def _machine_of(self, backup: LogBackup, directory: Path) -> CoordinatorMachine:
        """The coordinator as of the snapshot, in memory: only to know its contents."""
        machine = CoordinatorMachine(backup.partition, MemoryState(), self._rules)
        parsed = parse_name(backup.snapshot_name)
        if parsed is not None:
            load = partial(Snapshots(self._files, directory).load, parsed[0])
            load_snapshot(machine, load, parsed[0].offset)
        return machine

    async def _replayed(self, backup: LogBackup) -> CoordinatorMachine:
        """A coordinator that this node does not host."""
        with TemporaryDirectory() as name:
            await self._restore_snapshot(backup, Path(name))
            machine = self._machine_of(backup, Path(name))
        async for batches in batches_of(self._store, backup):
            replay(machine, batches)
        return machine

    def _hold(self, manifest: Manifest) -> Hold:
        """Covers whatever may have been committed since: uploaded before the backup, or after
        it."""
        rules = self._rules
        from_ms = manifest.created_ms - rules.commit_age_ms_max - rules.commit_ahead_ms_max
        return Hold(max(0, from_ms), self._clock.now_ms() + rules.commit_ahead_ms_max)

    def _is_remote(self, partition: TopicPartition, batch: BatchCoordinate) -> bool:
        """Then it is not missed: it may have been pruned since the backup."""
        stamp = batch.stamp
        return self._remote is not None and self._remote.has(
            partition, stamp.base_offset, stamp.last_offset
        )

    async def _report(self, manifest: Manifest) -> RestoreReport:
        report = RestoreReport(manifest.cluster_id, manifest.created_ms)
        known: set[str] = set()
        live: set[str] = set()
        for machine in self._machines:
            for (_, index), name, state in machine.state.all_partitions():
                report.partitions.append(
                    RestoredPartition(name, index, state.log_start_offset, state.high_watermark)
                )
            for file, batches in machine.state.all_files():
                known.add(file.object_key)
                if not all(self._is_remote(*one) for one in batches):
                    live.add(file.object_key)
        if not self._machines:  # a controller knows nothing of objects
            return report
        report.partitions.sort(key=lambda one: (one.topic, one.partition))
        hold = self._hold(manifest)
        for prefix in (PREFIX, STAGED_PREFIX):
            async for info in self._store.list(prefix):
                key = info.key
                live.discard(key.text)
                if key.text not in known and hold.covers(key.created_ms or 0):
                    report.newer.append(key.text)
        report.missing = sorted(live)
        return report
