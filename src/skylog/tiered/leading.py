"""What a new leader takes from the remote log before it copies or deletes anything.

- Its log start is at least the one that the metadata topic knows: the leader before it may have
  deleted what this one still counts as part of the log.
- A log start that it lost (a checkpoint without its entry) is that of the first remote segment:
  what is there must not expire because nobody knows that it is part of the log.
- Epochs that it lost (a checkpoint is rebuilt from local segments only) come from the LEADER_EPOCH
  index of the newest remote segment of its lineage.
- A log without any record, though older epochs were copied, is set up behind the newest remote
  segment, with the epochs and producers of that. Kafka would begin at 0 and then delete what was
  copied.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from skylog.kernel.errors import ErrorCode, KafkaError
from skylog.kernel.limits import LOG_CHECKPOINT_BYTES_MAX
from skylog.kernel.logging import get_logger
from skylog.log.checkpoints import EpochStart, Malformed, decode_epochs, decode_snapshot
from skylog.tiered.lineage import Lineage
from skylog.tiered.segments import IndexType, RemoteSegment, SegmentState

if TYPE_CHECKING:
    from skylog.tiered.hosted import Hosted
    from skylog.tiered.metadata.machine import RemoteLog
    from skylog.tiered.ports import RemoteStorage

_log = get_logger("tiered.leading")


class Preparation:
    """Prepares the partitions that this broker has come to lead."""

    def __init__(self, storage: RemoteStorage) -> None:
        self._storage = storage

    async def run(self, hosted: Hosted, remote: RemoteLog) -> None:
        """Raises ``KafkaError`` or a store's error; then it is tried again."""
        epoch, source = hosted.leader_epoch, hosted.source
        await source.refresh()
        lost = lost_end(hosted, remote)
        if lost is not None:
            await self._rebuild(hosted, remote, lost)
        if not source.knows_start:
            await self._learn_start(hosted, remote)
        # First the epochs: segments of those that are lost would not count for the start.
        if lacks_epochs(hosted):
            await self._restore_epochs(hosted, remote)
        start = hosted.lineage.log_start_from(remote, source.local_log_start_offset)
        if start > source.log_start_offset:
            _log.info("log start taken from the remote log", topic=hosted.topic, offset=start)
            await source.start_at(min(start, source.log_end_offset))
        if hosted.leader_epoch == epoch:  # otherwise the next one is prepared for itself
            hosted.prepared()

    @staticmethod
    async def _learn_start(hosted: Hosted, remote: RemoteLog) -> None:
        finished = (one for one in remote.all() if one.state is SegmentState.COPY_FINISHED)
        first = next((one.start_offset for one in finished), hosted.log_start_offset)
        start = min(max(first, remote.log_start), hosted.log_start_offset)
        _log.warning(
            "lost log start taken from the remote log",
            topic=hosted.topic,
            partition=hosted.partition.partition_index,
            offset=start,
        )
        await hosted.source.learn_start(start)

    async def _rebuild(self, hosted: Hosted, remote: RemoteLog, segment: RemoteSegment) -> None:
        epochs = await self._epochs_of(segment)
        raw = bytes(await self._storage.fetch_index(segment, IndexType.PRODUCER_SNAPSHOT))
        try:
            producers = decode_snapshot(_bounded(raw))
        except Malformed as fault:
            raise _corrupt(segment, fault) from fault
        end = segment.end_offset + 1
        start = Lineage(epochs, end).log_start_from(remote, end)
        _log.warning(
            "empty log is set up behind its remote segments",
            topic=hosted.topic,
            partition=hosted.partition.partition_index,
            log_start_offset=start,
            next_offset=end,
        )
        await hosted.source.rebuild(end, start, epochs, producers)

    async def _restore_epochs(self, hosted: Hosted, remote: RemoteLog) -> None:
        segment = newest_segment(hosted.lineage, remote, hosted.source.local_log_start_offset)
        if segment is None:
            return
        epochs = merged(await self._epochs_of(segment), hosted.source.epochs)
        _log.warning(
            "leader epochs taken from a remote segment",
            topic=hosted.topic,
            partition=hosted.partition.partition_index,
            segment=str(segment.id),
        )
        await hosted.source.restore_epochs(epochs)

    async def _epochs_of(self, segment: RemoteSegment) -> list[EpochStart]:
        raw = bytes(await self._storage.fetch_index(segment, IndexType.LEADER_EPOCH))
        try:
            return decode_epochs(_bounded(raw).decode())
        except (Malformed, UnicodeDecodeError) as fault:
            raise _corrupt(segment, fault) from fault


def _bounded(raw: bytes) -> bytes:
    if len(raw) > LOG_CHECKPOINT_BYTES_MAX:
        raise Malformed(f"{len(raw)} bytes")
    return raw


def _corrupt(segment: RemoteSegment, fault: Exception) -> KafkaError:
    return KafkaError(ErrorCode.CORRUPT_MESSAGE, f"index of segment {segment.id}: {fault}")


def needs_preparation(hosted: Hosted, remote: RemoteLog) -> bool:
    """Whether anything of the remote log is missing here."""
    source = hosted.source
    start = hosted.lineage.log_start_from(remote, source.local_log_start_offset)
    return (
        not source.knows_start
        or start > source.log_start_offset
        or lacks_epochs(hosted)
        or lost_end(hosted, remote) is not None
    )


def start_is_behind(hosted: Hosted, remote: RemoteLog) -> bool:
    """Whether segments are deleted below a log start that this leader has not taken over.

    An older leader may write so after this one was prepared, until this one writes a record.
    """
    return hosted.lineage.told_start(remote) > hosted.log_start_offset


def lacks_epochs(hosted: Hosted) -> bool:
    """Whether records from the log start on are of epochs that the leader does not know."""
    source = hosted.source
    first = source.epochs.earliest
    return source.log_start_offset < source.local_log_start_offset and (
        first is None or first[1] > source.log_start_offset
    )


def lost_end(hosted: Hosted, remote: RemoteLog) -> RemoteSegment | None:
    """The newest remote segment of older leaders, if this log has no record and ends before it."""
    source = hosted.source
    if source.has_records or any(epoch < hosted.leader_epoch for epoch, _ in source.epochs):
        return None
    for epoch in reversed(remote.epochs()):
        if epoch >= hosted.leader_epoch:
            continue
        finished = [
            segment
            for segment in remote.segments(epoch)
            if segment.state is SegmentState.COPY_FINISHED
        ]
        newest = max(finished, key=lambda one: one.end_offset, default=None)
        if newest is not None:
            return newest if newest.end_offset >= source.log_end_offset else None
    return None


def newest_segment(
    lineage: Lineage, remote: RemoteLog, local_log_start_offset: int
) -> RemoteSegment | None:
    """The newest finished segment of the lineage, or else the one right before the local log."""
    for run in lineage:
        found = remote.segment_for(run.epoch, remote.highest_offset(run.epoch) or 0)
        if found is not None and lineage.epoch_of(found.end_offset) == run.epoch:
            return found
    before = [
        segment
        for segment in remote.all()
        if segment.state is SegmentState.COPY_FINISHED
        and segment.end_offset + 1 == local_log_start_offset
    ]
    return max(before, key=lambda one: one.epochs[-1][0], default=None)


def merged(remote: Iterable[EpochStart], local: Iterable[EpochStart]) -> list[EpochStart]:
    """What the local log knows, and before it what the remote one does."""
    known = list(local)
    if not known:
        return list(remote)
    first_epoch, first_start = known[0]
    older = [entry for entry in remote if entry[0] <= first_epoch and entry[1] < first_start]
    if older and older[-1][0] == first_epoch:
        known[0] = older.pop()
    return older + known
