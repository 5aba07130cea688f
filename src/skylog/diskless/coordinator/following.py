"""Keeps the tail of a coordinator at the high watermark, ahead of its cache."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from skylog.diskless.coordinator.queries import find_batches
from skylog.diskless.coordinator.requests import FindBatches, ListOffsets
from skylog.diskless.coordinator.tail import Changed, NotInTail, Tail
from skylog.diskless.coordinator.turn import PendingBatch, Turn
from skylog.diskless.plane import FindResult, ListOffsetsResult, TopicPartition
from skylog.diskless.rules.offsets import named_offset
from skylog.kernel.ids import Uuid
from skylog.kernel.limits import DISKLESS_TAIL_BATCHES_MAX


class Following:
    """The effects of file commits are known once they are committed, those of other records once
    they are applied.

    ``moved`` is called with new high watermarks.
    """

    def __init__(self, moved: Callable[[TopicPartition, int], None]) -> None:
        self._moved = moved
        self.begin(0)

    def begin(self, end_offset: int) -> None:
        """Start with an empty tail at the end of the cache."""
        self.end_offset = end_offset
        self._tail = Tail(DISKLESS_TAIL_BATCHES_MAX)

    def find(self, request: FindBatches) -> list[FindResult]:
        """Raises NotInTail."""
        return find_batches(self._tail, request)

    def list_offsets(self, request: ListOffsets) -> list[ListOffsetsResult]:
        """Offsets such as the latest or earliest; raises NotInTail for all others, too."""
        found = []
        for topic_id, index, timestamp in request.requests:
            named = named_offset(timestamp, self._tail.log((topic_id, index)))
            if named is None:
                raise NotInTail
            found.append(named)
        return found

    def commits(self, batches: Iterable[PendingBatch], high_watermark: int) -> None:
        """Follow the batches committed now, up to the first that must be applied before."""
        for batch in batches:
            if batch.end_offset > high_watermark:
                return
            if batch.end_offset > self.end_offset:
                if batch.changed is None:
                    return
                self.end_offset = batch.end_offset
                self._follow(batch.changed)

    def turn(self, turn: Turn) -> None:
        """Follow what the turn has applied and was not known before."""
        self._follow(turn.changed, turn.topics_deleted)
        if turn.committed:
            self.end_offset = max(self.end_offset, turn.committed[-1].end_offset)

    def _follow(
        self, changed: Mapping[TopicPartition, Changed], deleted: Sequence[Uuid] = ()
    ) -> None:
        self._tail.follow(changed, deleted)
        for partition, one in changed.items():
            if one.added and one.log is not None:
                self._moved(partition, one.log.high_watermark)
