"""The orphan scan: objects that were never committed and never will be.

An object is deleted only when all of this holds:

- it was created (its key says when) before ``orphan_threshold``, so that every plane refuses to
  commit it: the commit age limit is less than half the grace;
- every coordinator has answered, and none knows it. If one does not answer, the scan stops;
- the bucket is this cluster's (``objects/claim.py``);
- it is not held: after a restore, objects that are newer than the backup wait for the operator.

A staged object may wait that much longer for its pin, so it must be older by as much; a pin makes
it known. Marks of bulk writers have their own rules (``marks.py``). While anything is held, all
staged objects and marks are: pins make objects older than the backup part of what came after it.
Backups are not scanned.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from skylog.diskless.files.marks import MarkSweep
from skylog.diskless.files.passes import Breather, Sleep
from skylog.diskless.plane import ControlPlane
from skylog.kernel.clock import Clock
from skylog.kernel.errors import ErrorCode, KafkaError
from skylog.kernel.limits import OBJECT_KEYS_PER_REQUEST, STAGED_PIN_AGE_MS_MAX
from skylog.kernel.logging import get_logger
from skylog.objects.claim import BucketClaim
from skylog.objects.holds import Hold, read_holds
from skylog.objects.store import ObjectInfo

_log = get_logger("diskless.orphans")
PREFIX: Final = "wal/"
STAGED_PREFIX: Final = "staging/"
_KEYS_SPREAD: Final = 256  # the prefix is followed by two hex digits


def orphan_threshold(now_ms: int, grace_ms: int) -> int:
    """Pure: objects created before this may be checked (docs/adr/0012-orphans-go-by-age.md)."""
    return now_ms - grace_ms


@dataclass(slots=True)
class OrphanStats:
    """``progress`` of the current scan, from 0 to 1."""

    scanned: int = 0
    looked_at: int = 0
    deleted: int = 0
    bytes_deleted: int = 0
    held: int = 0
    progress: float = 1.0


def staged_threshold(now_ms: int, grace_ms: int) -> int:
    """Pure: staged objects created before this can be neither pinned nor committed."""
    return now_ms - STAGED_PIN_AGE_MS_MAX - grace_ms


class OrphanScanner:
    """Reads the store page by page; memory does not grow with the number of objects."""

    def __init__(
        self,
        plane: ControlPlane,
        claim: BucketClaim,
        clock: Clock,
        *,
        grace_ms: int,
        page: int = OBJECT_KEYS_PER_REQUEST,
        sleep: Sleep | None = None,
    ) -> None:
        """``claim`` names the store to scan."""
        self._plane = plane
        self._store = claim.store
        self._clock = clock
        self._grace_ms = grace_ms
        self._claim = claim
        self._page = page
        self._sleep = sleep
        self.stats = OrphanStats()

    async def run_once(self) -> None:
        """One scan of all objects; any doubt ends it without further deletions."""
        self._require_all()
        await self._claim.require()
        holds = await read_holds(self._store)
        now_ms = self._clock.now_ms()
        breather = Breather(self._clock, self._sleep)
        self.stats.progress = 0.0
        before_ms = orphan_threshold(now_ms, self._grace_ms)
        await self._scan(PREFIX, before_ms, holds, breather)
        if not holds:
            before_ms = staged_threshold(now_ms, self._grace_ms)
            await self._scan(STAGED_PREFIX, before_ms, holds, breather, MarkSweep(now_ms))
        self.stats.progress = 1.0

    async def _scan(
        self,
        prefix: str,
        before_ms: int,
        holds: Sequence[Hold],
        breather: Breather,
        sweep: MarkSweep | None = None,
    ) -> None:
        page: list[ObjectInfo] = []
        marks: list[ObjectInfo] = []
        async for info in self._store.list(prefix):
            self.stats.scanned += 1
            if self._is_candidate(info, before_ms, holds):
                page.append(info)
            if sweep is not None:
                marks += sweep.show(info)
            if len(page) >= self._page or len(marks) >= self._page:
                self._progress(info)
                await self._delete_unknown(page)
                await self._delete(marks)
                page, marks = [], []
                await breather.rest()
        await self._delete_unknown(page)
        await self._delete(marks)

    def _progress(self, info: ObjectInfo) -> None:
        """How far a listing in key order is; ids are random, so keys are spread evenly."""
        if info.key.text.startswith(PREFIX):
            digits = info.key.text.removeprefix(PREFIX)[:2]
            self.stats.progress = int(digits, 16) / _KEYS_SPREAD

    def _require_all(self) -> None:
        if not self._plane.reaches_all():
            raise KafkaError(
                ErrorCode.COORDINATOR_NOT_AVAILABLE, "not every coordinator can be asked"
            )

    def _is_candidate(self, info: ObjectInfo, before_ms: int, holds: Sequence[Hold]) -> bool:
        created_ms = info.key.created_ms
        if created_ms is None or created_ms >= before_ms:
            return False
        if any(hold.covers(created_ms) for hold in holds):
            self.stats.held += 1
            return False
        return True

    async def _delete_unknown(self, page: Sequence[ObjectInfo]) -> None:
        if not page:
            return
        self.stats.looked_at += len(page)
        answers = await self._plane.describe_files([info.key.text for info in page])
        # The set of coordinators may have changed meanwhile.
        self._require_all()
        for answer in answers:
            if answer.error not in (ErrorCode.NONE, ErrorCode.RESOURCE_NOT_FOUND):
                raise KafkaError(answer.error, "a coordinator could not say which files it knows")
        orphans = [
            info
            for info, answer in zip(page, answers, strict=True)
            if answer.error is ErrorCode.RESOURCE_NOT_FOUND
        ]
        await self._delete(orphans)

    async def _delete(self, orphans: Sequence[ObjectInfo]) -> None:
        if not orphans:
            return
        await self._store.delete_many([info.key for info in orphans])
        self.stats.deleted += len(orphans)
        self.stats.bytes_deleted += sum(info.size for info in orphans)
        _log.info("orphans deleted", count=len(orphans), first=orphans[0].key.text)
