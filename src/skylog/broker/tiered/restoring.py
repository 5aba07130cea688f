"""``__remote_log_metadata`` for a restored node: from all brokers' backups, and from manifests.

Every node of a cluster restores the same: it takes the newest snapshot of each remote log, whoever
has made it, and what the store of remote segments has.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from skylog.diskless.files.backup import read_manifest
from skylog.kernel.errors import ProtocolError, StorageError
from skylog.kernel.ids import Uuid
from skylog.kernel.settings.tiered import METADATA_TOPIC
from skylog.objects.holds import Hold, put_hold
from skylog.objects.store import NotFound
from skylog.tiered.metadata.snapshots import decode_snapshot
from skylog.tiered.rebuild import RebuiltLogs, rebuild_logs
from skylog.wire.records import encode_batch

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from skylog.diskless.files.manifest import Manifest, Part
    from skylog.diskless.plane import TopicPartition
    from skylog.kernel.clock import Clock
    from skylog.objects.store import ObjectInfo, ObjectStore
    from skylog.tiered.metadata.machine import RemoteLog

_BACKUPS: Final = "backup/"
_MANIFESTS: Final = "manifests"
_VALUES_PER_BATCH: Final = 500


class RemoteLogRestore:
    """Implements ``diskless.files.restore.RemoteMetadata``."""

    def __init__(
        self, backups: ObjectStore, segments: ObjectStore, clock: Clock, *, partitions: int
    ) -> None:
        """``partitions`` of the metadata topic."""
        self._backups = backups
        self._segments = segments
        self._clock = clock
        self._partitions = partitions
        # What was found, for the report.
        self.rebuilt: RebuiltLogs | None = None

    async def batches(self, ends: Mapping[TopicPartition, int]) -> Mapping[int, bytes]:
        manifests = await latest_of_all(self._backups)
        logs = [log for manifest in manifests for log in await self._logs(manifest)]
        self.rebuilt = rebuilt = await rebuild_logs(
            self._segments, logs, lambda one: ends.get((one.topic_id, one.partition_index))
        )
        if rebuilt.held or rebuilt.unreadable:
            # They are not in the metadata, and are no orphans until an operator says so.
            oldest = min((one.created_ms for one in manifests), default=0)
            await put_hold(self._segments, Hold(oldest, self._clock.now_ms()))
        newest_ms = max(
            (one.event_timestamp_ms for page in rebuilt.segments.values() for one in page),
            default=0,
        )
        return {
            partition: _encoded(values, newest_ms)
            for partition, values in rebuilt.values(self._partitions).items()
        }

    async def _logs(self, manifest: Manifest) -> Sequence[RemoteLog]:
        found: list[RemoteLog] = []
        for log in manifest.logs:
            if log.topic == METADATA_TOPIC and log.snapshot is not None:
                data = await self._get(log.snapshot)
                try:
                    topic_id = Uuid.parse(log.topic_id)
                    found += decode_snapshot(data, topic_id, log.partition).logs
                except (ValueError, ProtocolError) as error:
                    raise StorageError(f"{log.snapshot.key} is damaged: {error}") from error
        return found

    async def _get(self, part: Part) -> bytes:
        try:
            data = await self._backups.get(part.object_key)
        except NotFound as error:
            raise StorageError(f"{part.key} of the backup is gone") from error
        part.check(data)
        return data


async def latest_of_all(store: ObjectStore) -> list[Manifest]:
    """The newest backup of each node, in the order of their names."""
    newest: dict[str, ObjectInfo] = {}
    async for info in store.list(_BACKUPS):
        node, _, rest = info.key.text.removeprefix(_BACKUPS).partition("/")
        if rest.partition("/")[0] == _MANIFESTS:
            newest[node] = info
    return [await read_manifest(store, newest[node]) for node in sorted(newest)]


def _encoded(values: Sequence[bytes], timestamp: int) -> bytes:
    parts = []
    for first in range(0, len(values), _VALUES_PER_BATCH):
        page = [(None, value) for value in values[first : first + _VALUES_PER_BATCH]]
        parts.append(encode_batch(page, timestamp=timestamp, base_offset=first, leader_epoch=0))
    return b"".join(parts)
