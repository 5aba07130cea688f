"""The scan for orphans: objects whose uploader never committed them, and that nobody ever will.

An object is deleted only when all of this holds:

- it was created (its key says when) before ``orphan_threshold``, so that every plane refuses to
  commit it: the commit age limit is less than half the grace;
- every coordinator has answered, and none knows it. One that is silent ends the scan;
- the bucket is this cluster's (``claim.py``);
- it is not held: after a restore, objects that are newer than the backup wait for the operator.

Staging and backup objects are not looked at.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from skylog.diskless.files.claim import BucketClaim
from skylog.diskless.files.holds import Hold, read_holds
from skylog.diskless.files.passes import Breather, Sleep
from skylog.diskless.plane import ControlPlane
from skylog.kernel.clock import Clock
from skylog.kernel.errors import ErrorCode, KafkaError
from skylog.kernel.limits import OBJECT_KEYS_PER_REQUEST
from skylog.kernel.logging import get_logger
from skylog.objects.store import ObjectInfo

_log = get_logger("diskless.orphans")
PREFIX: Final = "wal/"
_KEYS_SPREAD: Final = 256  # two hex digits follow the prefix


def orphan_threshold(oldest_file_ms: int | None, now_ms: int, grace_ms: int) -> int:
    """Pure: what was created before this may be looked at.

    The KIP's ``oldest + grace`` alone may lie in the future, and says nothing without files.
    """
    latest = now_ms - grace_ms
    return latest if oldest_file_ms is None else min(oldest_file_ms + grace_ms, latest)


@dataclass(slots=True)
class OrphanStats:
    """``progress`` of the scan under way, from 0 to 1."""

    scanned: int = 0
    looked_at: int = 0
    deleted: int = 0
    bytes_deleted: int = 0
    held: int = 0
    progress: float = 1.0


class OrphanScanner:
    """Reads the store page by page; memory does not grow with the number of objects."""

    def __init__(
        self,
        plane: ControlPlane,
        claim: BucketClaim,
        clock: Clock,
        *,
        grace_ms: int,
        all_coordinators: Callable[[], bool] = lambda: True,
        page: int = OBJECT_KEYS_PER_REQUEST,
        sleep: Sleep | None = None,
    ) -> None:
        """``claim`` names the store to scan; ``all_coordinators`` says whether the plane reaches
        each one that may know a file."""
        self._plane = plane
        self._store = claim.store
        self._clock = clock
        self._grace_ms = grace_ms
        self._claim = claim
        self._all_coordinators = all_coordinators
        self._page = page
        self._sleep = sleep
        self.stats = OrphanStats()

    async def run_once(self) -> None:
        """One scan over all WAL objects; any doubt ends it without deleting more."""
        self._require_all()
        await self._claim.require()
        holds = await read_holds(self._store)
        oldest_ms = await self._plane.oldest_file_ms()
        threshold_ms = orphan_threshold(oldest_ms, self._clock.now_ms(), self._grace_ms)
        breather = Breather(self._clock, self._sleep)
        self.stats.progress = 0.0
        page: list[ObjectInfo] = []
        async for info in self._store.list(PREFIX):
            self.stats.scanned += 1
            if self._is_candidate(info, threshold_ms, holds):
                page.append(info)
            if len(page) >= self._page:
                self.stats.progress = _progress(info)
                await self._delete_unknown(page)
                page = []
                await breather.rest()
        if page:
            await self._delete_unknown(page)
        self.stats.progress = 1.0

    def _require_all(self) -> None:
        if not self._all_coordinators():
            raise KafkaError(
                ErrorCode.COORDINATOR_NOT_AVAILABLE, "not every coordinator can be asked"
            )

    def _is_candidate(self, info: ObjectInfo, threshold_ms: int, holds: Sequence[Hold]) -> bool:
        created_ms = info.key.created_ms
        if created_ms is None or created_ms >= threshold_ms:
            return False
        if any(hold.covers(created_ms) for hold in holds):
            self.stats.held += 1
            return False
        return True

    async def _delete_unknown(self, page: Sequence[ObjectInfo]) -> None:
        self.stats.looked_at += len(page)
        answers = await self._plane.describe_files([info.key.text for info in page])
        # The set of coordinators may have changed while they were asked.
        self._require_all()
        for answer in answers:
            if answer.error not in (ErrorCode.NONE, ErrorCode.RESOURCE_NOT_FOUND):
                raise KafkaError(answer.error, "a coordinator could not say which files it knows")
        orphans = [
            info
            for info, answer in zip(page, answers, strict=True)
            if answer.error is ErrorCode.RESOURCE_NOT_FOUND
        ]
        if not orphans:
            return
        await self._store.delete_many([info.key for info in orphans])
        self.stats.deleted += len(orphans)
        self.stats.bytes_deleted += sum(info.size for info in orphans)
        _log.info("orphans deleted", count=len(orphans), first=orphans[0].key.text)


def _progress(info: ObjectInfo) -> float:
    """How far a listing in key order has come; ids are random, so digits are spread evenly."""
    return int(info.key.text.removeprefix(PREFIX)[:2], 16) / _KEYS_SPREAD
