"""One partition with a replica on this broker: what its remote log means for the local one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from skylog.kernel.limits import REMOTE_SEGMENTS_GIVEN_UP_MAX
from skylog.log.epochs import NO_EPOCH
from skylog.tiered.candidates import CopyLag
from skylog.tiered.lineage import Lineage
from skylog.tiered.retention import LocalPart

if TYPE_CHECKING:
    from skylog.tiered.consolidation.grants import Grants
    from skylog.tiered.metadata.machine import RemoteLog
    from skylog.tiered.ports import CopySource
    from skylog.tiered.segments import TopicIdPartition

NOT_LEADING: Final = -1
# diskless.tiering.assembler, which classic topics have too.
BY_LEADER: Final = "broker"


class Hosted:
    """``leader_epoch`` is −1 while another broker leads."""

    __slots__ = (
        "_covered",
        "_covered_epoch",
        "_covered_of",
        "expired_at",
        "failed",
        "grants",
        "is_copying",
        "is_prepared",
        "is_refused",
        "leader_epoch",
        "partition",
        "source",
        "topic",
    )

    def __init__(self, partition: TopicIdPartition, topic: str, source: CopySource) -> None:
        self.partition = partition
        self.topic = topic
        self.source = source
        self.leader_epoch = NOT_LEADING
        # Whether a new leader has what it needs of the remote log.
        self.is_prepared = False
        # Its custom metadata is too large: it is not copied until the broker starts again.
        self.is_refused = False
        # Segments whose sagas this process has given up, or has brought to the end of a deletion.
        self.failed: dict[bytes, None] = {}
        # What jobs assemble in this leader epoch, and whether this broker copies a segment of its
        # own: never both, so that only one of them counts.
        self.grants: Grants[Any] | None = None
        self.is_copying = False
        # When it was last looked at for segments to expire.
        self.expired_at = float("-inf")
        self._covered = -1
        self._covered_epoch = NO_EPOCH
        self._covered_of: RemoteLog | None = None

    # For records that are written in its name (``Author``).

    @property
    def leads(self) -> bool:
        return self.leader_epoch >= 0

    @property
    def log_start_offset(self) -> int:
        return self.source.log_start_offset

    def led(self, leader_epoch: int) -> None:
        """A saga of this process goes on in a new epoch of the same leader."""
        if leader_epoch != self.leader_epoch:
            self.leader_epoch = leader_epoch
            self.is_prepared = False
            self.grants = None

    def prepared(self) -> None:
        self.is_prepared = True
        self.source.prepared()

    def deposed(self) -> None:
        self.leader_epoch = NOT_LEADING
        self.is_prepared = False
        self.failed.clear()
        self.grants = None

    def give_up(self, segment_id: bytes) -> None:
        """Should it be listed as being copied, it is to be cleaned: a copy that nobody goes on
        with, or a record that was held up until after the deletion. The last ones are enough."""
        self.failed[segment_id] = None
        if len(self.failed) > REMOTE_SEGMENTS_GIVEN_UP_MAX:
            del self.failed[next(iter(self.failed))]

    @property
    def is_granted(self) -> bool:
        return self.grants is not None and len(self.grants) > 0

    @property
    def has_returned(self) -> bool:
        """Whether jobs have segments of a partition that is assembled by its leader again."""
        return self.is_granted and self.source.config.tiering_assembler == BY_LEADER

    def take_back(self) -> None:
        """End the work of jobs; what is being finished may still be."""
        if self.grants is not None:
            for grant in self.grants.take_all():
                self.give_up(grant.segment.id)

    @property
    def lineage(self) -> Lineage:
        return Lineage(self.source.epochs, self.source.log_end_offset)

    def follow(self, remote: RemoteLog) -> None:
        """Tell the log how far it is remote."""
        source, lineage = self.source, self.lineage
        highest = lineage.highest_remote_offset(remote).offset
        start, latest = source.local_log_start_offset, lineage.latest_epoch
        is_same = self._covered_of is remote and self._covered_epoch == latest
        if not is_same or self._covered < start:
            # What was covered stays so while the epochs are the same: segments go only below the
            # log start.
            self._covered, self._covered_epoch, self._covered_of = start, latest, remote
        self._covered = remote.covered_end(self._covered, lineage)
        source.remote_moved(highest, self._covered)

    @property
    def covered_end(self) -> int:
        """The end of the gapless run of remote segments from the local start on."""
        return max(self._covered, self.source.log_start_offset)

    @property
    def copy_lag(self) -> CopyLag:
        config = self.source.config
        ms, size = config.remote_copy_lag_ms, config.remote_copy_lag_bytes
        return CopyLag(
            config.kept_ms if ms < 0 else ms,
            config.kept_bytes if size < 0 else size,
        )

    def local_part(self, remote: RemoteLog) -> LocalPart:
        source = self.source
        return LocalPart(
            source.log_start_offset,
            source.local_log_start_offset,
            source.log_end_offset,
            source.only_local_bytes(remote),
        )
