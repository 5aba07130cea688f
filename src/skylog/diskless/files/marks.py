"""Pure: which manifests and done markers of bulk writers may be deleted.

A restarted writer looks for the marks of its last epoch, however long it was down. So the highest
epoch of each writer is kept for ever; earlier ones are kept until all their pins have expired.
"""

from __future__ import annotations

import re
from typing import Final

from skylog.kernel.limits import STAGED_PIN_LIFETIME_MS_MAX
from skylog.objects.store import ObjectInfo

MARK_AGE_MS_MIN: Final = STAGED_PIN_LIFETIME_MS_MAX + 24 * 60 * 60 * 1000
_MARK: Final = re.compile(
    r"(staging/[0-9a-f]{16}/w/[0-9a-f]{32})/(\d{1,19})\.(?:manifest|done)\Z", re.ASCII
)


class MarkSweep:
    """Takes all objects in key order; remembers the last epoch of one writer at a time."""

    def __init__(self, now_ms: int) -> None:
        self._before_ms = now_ms - MARK_AGE_MS_MIN
        self._writer = ""
        self._epoch = -1
        self._last: list[ObjectInfo] = []

    def show(self, info: ObjectInfo) -> list[ObjectInfo]:
        """The marks that may be deleted, now that this one is known."""
        mark = _MARK.match(info.key.text)
        if mark is None:
            return []
        writer, epoch = mark[1], int(mark[2])
        if writer != self._writer or epoch > self._epoch:
            earlier = self._last if writer == self._writer else []
            self._writer, self._epoch, self._last = writer, epoch, [info]
            return self._old(earlier)
        if epoch == self._epoch:
            self._last.append(info)
            return []
        return self._old([info])

    def _old(self, marks: list[ObjectInfo]) -> list[ObjectInfo]:
        return [info for info in marks if info.modified_ms < self._before_ms]
