"""The partitions that this broker hosts, and what the filler knows of their copies.

Unknown (``unsure``) → catching up → following. At the tail of a following copy, a fetch waits for
its next append; otherwise it is woken by the commit, and answered from objects. Any failure leads
back to catching up, damage back to no copy. All calls come from the event loop.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from skylog.diskless.local.copy import LocalCopy, Place
from skylog.diskless.partitions import DisklessPartitions
from skylog.diskless.plane import TopicPartition
from skylog.diskless.regions import Region
from skylog.kernel.clock import Clock
from skylog.kernel.errors import ErrorCode, KafkaError
from skylog.kernel.ids import Uuid
from skylog.kernel.logging import get_logger
from skylog.kernel.stages import Stage
from skylog.log.names import directory_name

_log = get_logger("diskless.local")

# How long a fetch at the tail waits for the copy before it is answered from objects.
TAIL_WAIT_SECONDS: Final = 1.0
RETRY_SECONDS: Final = 5.0
# After a disk error: long enough not to flood the log.
DISK_RETRY_SECONDS: Final = 30.0
# Errors of a partition that is being created, or whose coordinator moves, are ignored.
_PASSING_RETRY_SECONDS: Final = 0.2
_PASSING: Final = frozenset(
    {
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    }
)


@dataclass(slots=True)
class LocalStats:
    """Totals for /metrics; ``disk_errors`` and ``spoiled`` need an operator's attention."""

    bytes: int = 0
    reads: int = 0
    bytes_read: int = 0
    disk_errors: int = 0
    spoiled: int = 0
    rebuilds: int = 0


class LocalPartition:
    """One partition and its copy."""

    __slots__ = (
        "awaited",
        "copy",
        "following",
        "gone",
        "high_watermark",
        "log_start",
        "next_offset",
        "place",
        "retry_at",
        "round",
        "unsure",
        "waiting_since",
    )

    def __init__(self, place: Place) -> None:
        self.place = place
        # Only set once the copy has been verified.
        self.copy: LocalCopy | None = None
        # Where copying continues while there is no copy; None: not checked yet.
        self.next_offset: int | None = None
        # Whether it may be better to continue at another offset.
        self.unsure = True
        # The partition's offsets as last reported, not the copy's.
        self.log_start = 0
        self.high_watermark = -1
        # The copy has reached the high watermark: fetches at its end wait for it.
        self.following = False
        # The high watermark that the copy should reach soon, and since when (monotonic clock).
        self.awaited = -1
        self.waiting_since: float | None = None
        self.retry_at = 0.0
        # The round that works on the files now.
        self.round: object | None = None
        self.gone = False

    @property
    def key(self) -> TopicPartition:
        return self.place.topic_id, self.place.index

    @property
    def region(self) -> Region | None:
        """What may be served from here: not what is deleted, even if it is still on disk."""
        if self.copy is None or self.gone:
            return None
        start, end = self.copy.region
        return Region(max(start, self.log_start), end)

    @property
    def end(self) -> int:
        """The next offset to copy."""
        if self.copy is not None:
            return self.copy.region.end
        return self.next_offset or 0

    @property
    def behind(self) -> int:
        """The number of committed records that are not here."""
        return max(self.high_watermark - self.end, 0)


class LocalPartitions:
    """The copied partitions, those queued for a round, and the outcomes."""

    def __init__(
        self,
        directory: Path,
        seen: DisklessPartitions,
        clock: Clock,
        on_work: Callable[[], None],
    ) -> None:
        """``seen`` gets the high watermarks that fetches may use; ``on_work``: one was queued."""
        self.directory = directory
        self._seen = seen
        self._clock = clock
        self._on_work = on_work
        self._hosted: dict[TopicPartition, LocalPartition] = {}
        # By directory: a topic may be created again while the old one's files are being deleted.
        self._owners: dict[str, LocalPartition] = {}
        # In the order of their turns.
        self._waiting: dict[LocalPartition, None] = {}
        self.stats = LocalStats()
        self.stage = Stage(clock, timed=False)

    def __len__(self) -> int:
        return len(self._hosted)

    def __iter__(self) -> Iterator[LocalPartition]:
        return iter(self._hosted.values())

    def get(self, key: TopicPartition) -> LocalPartition | None:
        return self._hosted.get(key)

    # -- notifications -------------------------------------------------------------------------

    def host(self, topic: str, topic_id: Uuid, index: int) -> None:
        """This broker is a replica of the partition."""
        if (topic_id, index) not in self._hosted:
            directory = str(self.directory / directory_name(topic, index))
            one = LocalPartition(Place(topic, topic_id, index, directory))
            self._hosted[one.key] = one
            self._wait(one)

    def unhost(self, topic_id: Uuid, index: int) -> None:
        """It no longer is: remove the files."""
        one = self._hosted.pop((topic_id, index), None)
        if one is not None:
            self.stop_following(one)
            one.gone = True
            self._wait(one)

    def delete_topic(self, topic_id: Uuid) -> None:
        for known, index in [key for key in self._hosted if key[0] == topic_id]:
            self.unhost(known, index)

    def committed(self, key: TopicPartition, high_watermark: int) -> None:
        """The plane reports a commit, through any broker."""
        one = self._hosted.get(key)
        if one is None or not one.following:
            self._seen.committed(key, high_watermark)
        if one is not None and high_watermark > one.high_watermark:
            self.heard(one, 0, high_watermark)
            self._wait(one)

    def heard(self, one: LocalPartition, log_start: int, high_watermark: int) -> None:
        """The partition's start and end, neither of which decreases."""
        one.log_start = max(one.log_start, log_start)
        one.high_watermark = max(one.high_watermark, high_watermark)
        if one.behind and one.waiting_since is None:
            self._await_end(one)

    def log_started(self, key: TopicPartition, offset: int) -> None:
        """Records were deleted: they are no longer served from here."""
        one = self._hosted.get(key)
        if one is not None:
            one.log_start = max(one.log_start, offset)

    # -- rounds --------------------------------------------------------------------------------

    @property
    def waits(self) -> bool:
        return bool(self._waiting)

    def _wait(self, one: LocalPartition) -> None:
        self._waiting[one] = None
        self._on_work()

    def look_at_all(self) -> None:
        """Log starts move without a commit, and some copies may better continue elsewhere."""
        for one in self._hosted.values():
            one.unsure = one.unsure or not one.following
            self._waiting[one] = None

    def ready(self) -> list[LocalPartition]:
        """Those whose turn it is, in order."""
        now = self._clock.monotonic()
        return [
            one
            for one in self._waiting
            if one.round is None
            and one.retry_at <= now
            and self._owners.setdefault(one.place.directory, one) is one
        ]

    def take(self, one: LocalPartition, round_: object) -> None:
        del self._waiting[one]
        one.round = round_

    def release(self, one: LocalPartition, round_: object) -> None:
        """The round has finished with its files; a no-op if already reported."""
        if one.round is round_:
            one.round = None
            if one.behind:
                self._wait(one)

    def removed(self, one: LocalPartition) -> None:
        """The files of a removed partition are deleted, and its round has ended."""
        one.copy = one.round = None
        self._owners.pop(one.place.directory, None)
        self._on_work()

    # -- outcomes ------------------------------------------------------------------------------

    def appended(self, one: LocalPartition, copy: LocalCopy, added_bytes: int) -> None:
        one.copy = copy
        self.stats.bytes += added_bytes
        self.stage.succeeded(self.stage.begin())
        if one.end >= one.awaited:
            self._await_end(one)
        one.following = one.following or not one.behind
        if one.following:
            self._seen.committed(one.key, one.end)

    def _await_end(self, one: LocalPartition) -> None:
        """Restart the wait: the current high watermark should be reached soon."""
        one.awaited = one.high_watermark
        one.waiting_since = self._clock.monotonic() if one.behind else None

    def stop_following(self, one: LocalPartition) -> None:
        """Fetches that wait for the next append check again, and read objects."""
        one.following = False
        self._seen.committed(one.key, one.high_watermark)

    def give_up_waiting(self) -> None:
        """Wake fetches that have waited long enough for their copies."""
        now = self._clock.monotonic()
        for one in self._hosted.values():
            since = one.waiting_since
            if one.following and since is not None and now - since >= TAIL_WAIT_SECONDS:
                self.stop_following(one)

    def start_over(self, one: LocalPartition) -> None:
        """Drop the existing copy, which is deleted when the new one is created."""
        self.stats.rebuilds += one.copy is not None
        one.copy, one.next_offset, one.unsure = None, one.log_start, True
        one.awaited, one.waiting_since = -1, None
        self.stop_following(one)
        self._wait(one)

    def spoiled(self, one: LocalPartition, copy: LocalCopy, why: object) -> None:
        """The files are damaged."""
        if one.copy is copy:
            self.stats.spoiled += 1
            _log.warning("local copy damaged", directory=one.place.directory, why=str(why))
            self.start_over(one)

    def failed(self, one: LocalPartition, error: KafkaError) -> None:
        """The plane or the bucket failed."""
        passing = error.code in _PASSING
        if not passing:
            self.stage.failed(self.stage.begin())
            _log.warning("partition not copied", directory=one.place.directory, why=str(error))
        pause = _PASSING_RETRY_SECONDS if passing else RETRY_SECONDS
        one.retry_at = self._clock.monotonic() + pause
        self.stop_following(one)
        self._wait(one)

    def disk_failed(self, one: LocalPartition, error: Exception) -> None:
        """The partition goes without a copy for a while."""
        self.stats.disk_errors += 1
        self.stage.failed(self.stage.begin())
        _log.error("local copy dropped", directory=one.place.directory, why=str(error))
        one.retry_at = self._clock.monotonic() + DISK_RETRY_SECONDS
        self.start_over(one)
