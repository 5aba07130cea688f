"""Deletes the objects of files that are no longer needed: the plane names them, the cleaner
confirms their deletion.

The plane forgets a file only after the store has confirmed the deletion of its object. An
interrupted deletion is repeated: deleting an absent object succeeds.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from skylog.diskless.files.passes import Breather, Sleep
from skylog.diskless.plane import ControlPlane
from skylog.kernel.clock import Clock
from skylog.kernel.limits import OBJECT_KEYS_PER_REQUEST
from skylog.kernel.logging import get_logger
from skylog.objects.keys import ObjectKey, known
from skylog.objects.store import ObjectError, ObjectStore, Outcome

_log = get_logger("diskless.cleaner")
# For a store that does not answer; longer than all of its retries.
DELETE_SECONDS_MAX: Final = 300.0
# Refusals that end a pass: it should get past a few objects that cannot be deleted, but not try
# every object if nothing may be deleted.
REFUSALS_MAX: Final = 64


# Objects that are committed, by brokers or by bulk writers.
_KINDS: Final = ("wal", "staging")


@dataclass(slots=True)
class CleanerStats:
    files_deleted: int = 0
    files_refused: int = 0


class FileCleaner:
    """One deletion at a time, so that it takes only one of the store's slots."""

    def __init__(
        self,
        plane: ControlPlane,
        store: ObjectStore,
        clock: Clock,
        *,
        grace_ms: int,
        chunk: int = OBJECT_KEYS_PER_REQUEST,
        sleep: Sleep | None = None,
        delete_seconds_max: float = DELETE_SECONDS_MAX,
    ) -> None:
        self._plane = plane
        self._store = store
        self._clock = clock
        self._grace_ms = grace_ms
        self._chunk = chunk
        self._sleep = sleep
        self._delete_seconds_max = delete_seconds_max
        self.stats = CleanerStats()

    async def run_once(self) -> None:
        """Delete everything whose grace period is over; refused objects do not hold up the
        others."""
        before_ms = self._clock.now_ms() - self._grace_ms
        breather = Breather(self._clock, self._sleep)
        refused: set[str] = set()
        refusal: ObjectError | None = None
        deleted: set[ObjectKey] = set()
        while True:
            limit = self._chunk + len(refused)
            found = await self._plane.files_to_delete(before_ms, limit)
            keys = self._to_delete(found, refused)
            # A plane that names a file again has not forgotten it yet: left to the next pass.
            if not keys or not deleted.isdisjoint(keys):
                break
            deleted = set(keys)
            refusal = await self._delete(keys, refused) or refusal
            if len(refused) >= REFUSALS_MAX or len(found) < limit:
                break
            await breather.rest()
        self.stats.files_refused += len(refused)
        if refusal is not None:
            raise refusal

    def _to_delete(self, found: Sequence[str], refused: set[str]) -> list[ObjectKey]:
        keys = []
        for text in found:
            key = known(text)
            if key is None or key.created_ms is None or key.kind not in _KINDS:
                refused.add(text)
                _log.error("the control plane returned an invalid key", key=text)
            elif text not in refused:
                keys.append(key)
        return keys[: self._chunk]

    async def _delete(self, keys: list[ObjectKey], refused: set[str]) -> ObjectError | None:
        """Delete and confirm; refused keys are found by bisection. Returns the last refusal."""
        try:
            async with asyncio.timeout(self._delete_seconds_max):
                await self._store.delete_many(keys)
        except ObjectError as error:
            if error.kind is not Outcome.REFUSED:
                raise
            if len(keys) == 1:
                refused.add(keys[0].text)
                _log.warning("object cannot be deleted", key=keys[0].text, why=str(error))
            elif len(refused) < REFUSALS_MAX:
                half = len(keys) // 2
                await self._delete(keys[:half], refused)
                await self._delete(keys[half:], refused)
            return error
        await self._plane.confirm_deleted([key.text for key in keys])
        self.stats.files_deleted += len(keys)
        return None
