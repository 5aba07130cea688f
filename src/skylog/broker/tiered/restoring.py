"""``__remote_log_metadata`` for a restored node: from all brokers' backups, and from manifests.

Every node of a cluster restores the same: it takes the newest snapshot of each remote log, whoever
has made it, and what the store of remote segments has.
"""

from __future__ import annotations

from bisect import bisect_right
from typing import TYPE_CHECKING, Final

from skylog.diskless.files.backup_reader import get_part, latest_of_all
from skylog.kernel.errors import ProtocolError, StorageError
from skylog.kernel.ids import Uuid
from skylog.kernel.settings.tiered import METADATA_TOPIC
from skylog.objects.holds import Hold, put_hold, read_holds
from skylog.tiered.metadata.snapshots import decode_snapshot
from skylog.tiered.rebuild import RebuiltLogs, RestoredLog, rebuild_logs
from skylog.tiered.segments import TopicIdPartition
from skylog.wire.records import encode_batch

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from skylog.diskless.files.manifest import Manifest
    from skylog.diskless.plane import TopicPartition
    from skylog.kernel.clock import Clock
    from skylog.objects.store import ObjectStore
    from skylog.tiered.metadata.machine import RemoteLog
    from skylog.tiered.segments import RemoteSegment

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
        # First and last offsets of what they have without a gap.
        self._spans: dict[TopicPartition, list[tuple[int, int]]] = {}

    async def batches(self, wal: Mapping[TopicPartition, tuple[int, int]]) -> Mapping[int, bytes]:
        manifests = sorted(await latest_of_all(self._backups), key=lambda one: one.created_ms)
        # The newest backup counts, not the one that has read furthest: a restore writes the
        # metadata anew, and a node that has not come back still has a backup from before it.
        logs: dict[TopicIdPartition, RemoteLog] = {}
        used: dict[TopicIdPartition, int] = {}
        for manifest in manifests:
            for log in await self._logs(manifest):
                logs[log.partition], used[log.partition] = log, manifest.created_ms

        def restored(partition: TopicIdPartition) -> RestoredLog | None:
            found = wal.get(partition)
            return None if found is None else RestoredLog(*found)

        oldest = min((one.created_ms for one in manifests), default=0)
        # Not those of this restore, which other nodes may have begun.
        read_ms = min(used.values(), default=0)
        earlier = [hold for hold in await read_holds(self._segments) if hold.until_ms < read_ms]
        self.rebuilt = rebuilt = await rebuild_logs(
            self._segments, logs.values(), restored, earlier
        )
        if rebuilt.held or rebuilt.unreadable:
            # They are not in the metadata, and are no orphans until an operator says so. A backup
            # takes a while, so that they may be older than it says it is.
            first = min([oldest, *(one.modified_ms for one in rebuilt.held)])
            await put_hold(self._segments, Hold(first, self._clock.now_ms()))
        newest_ms = max(
            (one.event_timestamp_ms for page in rebuilt.segments.values() for one in page),
            default=0,
        )
        return {
            partition: _encoded(values, newest_ms)
            for partition, values in rebuilt.values(self._partitions).items()
        }

    def has(self, partition: TopicPartition, first: int, last: int) -> bool:
        spans = self._spans.get(partition)
        if spans is None:
            key = TopicIdPartition(*partition)
            segments = self.rebuilt.segments.get(key, ()) if self.rebuilt is not None else ()
            spans = self._spans[partition] = merged_spans(segments)
        at = bisect_right(spans, first, key=lambda span: span[0]) - 1
        return at >= 0 and last <= spans[at][1]

    async def _logs(self, manifest: Manifest) -> Sequence[RemoteLog]:
        found: list[RemoteLog] = []
        for log in manifest.logs:
            if log.topic == METADATA_TOPIC and log.snapshot is not None:
                data = await get_part(self._backups, log.snapshot)
                try:
                    topic_id = Uuid.parse(log.topic_id)
                    found += decode_snapshot(data, topic_id, log.partition).logs
                except (ValueError, ProtocolError) as error:
                    raise StorageError(f"{log.snapshot.key} is damaged: {error}") from error
        return found


def merged_spans(segments: Iterable[RemoteSegment]) -> list[tuple[int, int]]:
    """Pure: the offsets of segments that are in order of their starts, first and last of each run
    without a gap."""
    spans: list[tuple[int, int]] = []
    for segment in segments:
        if spans and segment.start_offset <= spans[-1][1] + 1:
            spans[-1] = (spans[-1][0], max(spans[-1][1], segment.end_offset))
        else:
            spans.append((segment.start_offset, segment.end_offset))
    return spans


def _encoded(values: Sequence[bytes], timestamp: int) -> bytes:
    parts = []
    for first in range(0, len(values), _VALUES_PER_BATCH):
        page = [(None, value) for value in values[first : first + _VALUES_PER_BATCH]]
        parts.append(encode_batch(page, timestamp=timestamp, base_offset=first, leader_epoch=0))
    return b"".join(parts)
