"""The orphan scan: objects of remote segments that no metadata names any more.

A copy that was given up, and a put that arrived after its segment was deleted, leave objects that
no record names. They are deleted only when all of this holds:

- the store says that the newest object of the segment is older than the grace;
- the leader of its partition has answered, and does not know the segment; or the topic has been
  missing in this broker's metadata for a whole grace. A leader that does not answer keeps all of
  its objects;
- nothing else would be lost with it: a segment with a manifest, of offsets that neither the
  leader's other segments nor its log have, is kept and told, however it came to be unknown;
- it is not held: after a restore, what is newer than the backup waits for the operator;
- the store is this cluster's (``objects/claim.py``).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Final, NamedTuple, Protocol, TypeAlias

from skylog.kernel.clock import Clock
from skylog.kernel.errors import KafkaError
from skylog.kernel.ids import Uuid
from skylog.kernel.logging import get_logger
from skylog.objects.claim import BucketClaim
from skylog.objects.holds import Hold, read_holds
from skylog.objects.keys import ObjectKey
from skylog.objects.store import ObjectError
from skylog.tiered.segments import TopicIdPartition
from skylog.tiered.storage import read_manifest
from skylog.tiered.stored import StoredSegment, stored_segments

_log = get_logger("tiered.orphans")
_SHOWN_MAX: Final = 1000
Rest: TypeAlias = Callable[[], Awaitable[None]]


class KnownSegments(NamedTuple):
    """What the leader of a partition says."""

    # In any state.
    ids: frozenset[Uuid]
    log_start_offset: int
    # Offsets that need no unknown segment: of finished segments, and of the log itself.
    ranges: Sequence[tuple[int, int]]


class Registry(Protocol):
    """What the scan asks of the cluster."""

    def topic_exists(self, topic_id: Uuid) -> bool:
        """By this broker's metadata."""
        ...

    async def known_segments(self, partition: TopicIdPartition) -> KnownSegments | None:
        """What the partition's leader knows, completely; None if it does not say."""
        ...


class Fate(Enum):
    """What becomes of a stored segment."""

    KNOWN = "known"
    YOUNG = "young"
    HELD = "held"
    UNANSWERED = "unanswered"
    # Its topic is missing, but not for long enough yet.
    WAITING = "waiting"
    # Unknown, but the only one that has its offsets.
    NEEDED = "needed"
    ORPHAN = "orphan"


def fate(
    segment: StoredSegment,
    *,
    now_ms: int,
    grace_ms: int,
    holds: Sequence[Hold],
    missing_ms: int | None,
    known: KnownSegments | None,
) -> Fate:
    """Pure. ``missing_ms`` is how long its topic has been missing; None if it exists, and then
    ``known`` is the answer of the leader. ``NEEDED`` is decided by ``needed``."""
    if known is not None and missing_ms is None and segment.id in known.ids:
        return Fate.KNOWN
    if any(hold.covers(info.modified_ms) for hold in holds for info in segment.objects.values()):
        return Fate.HELD
    if segment.modified_ms > now_ms - grace_ms:
        return Fate.YOUNG
    if missing_ms is not None:
        return Fate.ORPHAN if missing_ms >= grace_ms else Fate.WAITING
    return Fate.UNANSWERED if known is None else Fate.ORPHAN


def needed(start: int, end: int, known: KnownSegments) -> bool:
    """Pure: whether an offset from ``start`` to ``end`` (inclusive), at or above the log start, is
    in none of the leader's ranges."""
    at = max(start, known.log_start_offset)
    for first, behind in sorted(known.ranges):
        if first > at:
            break
        at = max(at, behind)
    return at <= end


@dataclass(slots=True)
class OrphanStats:
    scanned: int = 0
    deleted: int = 0
    bytes_deleted: int = 0
    held: int = 0
    unanswered: int = 0
    needed: int = 0


@dataclass(slots=True)
class OrphanReport:
    """What one scan found; ``shown`` has the first of the orphans, ``kept`` of those held."""

    scanned: int = 0
    orphans: int = 0
    bytes: int = 0
    held: int = 0
    unanswered: int = 0
    needed: list[StoredSegment] = field(default_factory=list)
    shown: list[StoredSegment] = field(default_factory=list)
    kept: list[StoredSegment] = field(default_factory=list)


class OrphanScanner:
    """A pass over the store, partition by partition; memory does not grow with it."""

    def __init__(
        self,
        claim: BucketClaim,
        registry: Registry,
        clock: Clock,
        *,
        grace_ms: int,
        rests: Callable[[], Rest] | None = None,
    ) -> None:
        """``claim`` names the store; ``rests`` makes what a scan awaits before each partition."""
        self._claim = claim
        self._store = claim.store
        self._registry = registry
        self._clock = clock
        self._grace_ms = grace_ms
        self._rests = rests
        self._missing_since: dict[Uuid, float] = {}
        self.stats = OrphanStats()

    async def run_once(self) -> None:
        """One scan that deletes; any doubt keeps."""
        report = await self.scan(delete=True)
        self.stats.scanned += report.scanned
        self.stats.held += report.held
        self.stats.unanswered += report.unanswered
        self.stats.needed = len(report.needed)

    async def scan(self, *, delete: bool) -> OrphanReport:
        """Look at all segments, and delete the orphans among them if ``delete``."""
        await self._claim.require()
        holds = await read_holds(self._store)
        report, now_ms = OrphanReport(), self._clock.now_ms()
        rest = self._rests() if self._rests is not None else None
        asked: TopicIdPartition | None = None
        known: KnownSegments | None = None
        missing: set[Uuid] = set()
        async for segment in stored_segments(self._store):
            report.scanned += 1
            topic_id = segment.partition.topic_id
            missing_ms = self._missing_ms(topic_id)
            if missing_ms is not None:
                missing.add(topic_id)
            elif segment.partition != asked:
                if rest is not None:
                    await rest()
                asked, known = segment.partition, await self._ask(segment.partition)
            decided = fate(
                segment,
                now_ms=now_ms,
                grace_ms=self._grace_ms,
                holds=holds,
                missing_ms=missing_ms,
                known=known,
            )
            if decided is Fate.ORPHAN and missing_ms is None and known is not None:
                decided = await self._unless_needed(segment, known)
            await self._settle(segment, decided, report, delete=delete)
        self._missing_since = {
            topic_id: since
            for topic_id, since in self._missing_since.items()
            if topic_id in missing
        }
        return report

    def _missing_ms(self, topic_id: Uuid) -> int | None:
        """How long a topic has been missing; a broker that is behind must not take a new one for a
        deleted one."""
        if self._registry.topic_exists(topic_id):
            self._missing_since.pop(topic_id, None)
            return None
        now = self._clock.monotonic()
        return int((now - self._missing_since.setdefault(topic_id, now)) * 1000)

    async def _ask(self, partition: TopicIdPartition) -> KnownSegments | None:
        try:
            return await self._registry.known_segments(partition)
        except (KafkaError, TimeoutError) as error:
            _log.info("leader does not say which segments it knows", why=str(error))
            return None

    async def _unless_needed(self, segment: StoredSegment, known: KnownSegments) -> Fate:
        """The range of a segment is in its manifest. In the layout with manifests one without was
        never whole; in the other only the first offset is known."""
        end: int | None = segment.start_offset
        if segment.has_layout_with_manifest:
            if segment.manifest is None:
                return Fate.ORPHAN
            end = await self._last_offset(segment.manifest.key)
        # One that cannot be read is not to be told from one that is needed.
        if end is None or needed(segment.start_offset, end, known):
            return Fate.NEEDED
        return Fate.ORPHAN

    async def _last_offset(self, key: ObjectKey) -> int | None:
        try:
            described = (await read_manifest(self._store, key)).segment
        except ObjectError:
            return None
        return None if described is None else described.end_offset

    async def _settle(
        self, segment: StoredSegment, decided: Fate, report: OrphanReport, *, delete: bool
    ) -> None:
        if decided is Fate.HELD:
            report.held += 1
            if len(report.kept) < _SHOWN_MAX:
                report.kept.append(segment)
        elif decided is Fate.UNANSWERED:
            report.unanswered += 1
        elif decided is Fate.NEEDED:
            if len(report.needed) < _SHOWN_MAX:
                report.needed.append(segment)
            _log.warning("unknown segment is the only copy of its offsets", id=str(segment.id))
        elif decided is Fate.ORPHAN:
            report.orphans += 1
            report.bytes += segment.size
            if len(report.shown) < _SHOWN_MAX:
                report.shown.append(segment)
            if delete:
                await self._delete(segment)

    async def _delete(self, segment: StoredSegment) -> None:
        for info in segment.in_deletion_order:
            await self._store.delete_many([info.key])
        self.stats.deleted += 1
        self.stats.bytes_deleted += segment.size
        _log.info("orphan deleted", topic=segment.topic, id=str(segment.id))
