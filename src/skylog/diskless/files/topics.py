"""Topics in the plane that are not in the cluster's metadata, because a broker died in between.

Topics are created and deleted in the metadata first, then in the plane. A broker that is behind
with metadata must not take a new topic for a deleted one: a topic is deleted here only if it has
been missing on this broker for a whole grace period.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from skylog.diskless.plane import ControlPlane
from skylog.kernel.clock import Clock
from skylog.kernel.ids import Uuid
from skylog.kernel.logging import get_logger

_log = get_logger("diskless.topics")


@dataclass(slots=True)
class TopicSweepStats:
    topics_deleted: int = 0


class TopicSweep:
    """Repeats deletions that the plane may have missed."""

    def __init__(
        self, plane: ControlPlane, exists: Callable[[Uuid], bool], clock: Clock, *, grace_ms: int
    ) -> None:
        self._plane = plane
        self._exists = exists
        self._clock = clock
        self._grace_ms = grace_ms
        self._missed_since: dict[Uuid, float] = {}
        self.stats = TopicSweepStats()

    async def run_once(self) -> None:
        now = self._clock.monotonic()
        missed = [topic for topic in await self._plane.known_topics() if not self._exists(topic)]
        self._missed_since = {topic: self._missed_since.get(topic, now) for topic in missed}
        gone = [
            topic
            for topic, since in self._missed_since.items()
            if (now - since) * 1000 >= self._grace_ms
        ]
        if gone:
            await self._plane.delete_topics(gone)
            self.stats.topics_deleted += len(gone)
            _log.info("deleted topics unknown to metadata", count=len(gone))
