"""Retention of diskless partitions: the plane decides what is too old, in steps of bounded size."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from skylog.diskless.files.passes import Breather, Sleep
from skylog.diskless.plane import ControlPlane, RetentionResult
from skylog.kernel.clock import Clock
from skylog.kernel.errors import ErrorCode, KafkaError
from skylog.kernel.ids import Uuid
from skylog.kernel.limits import DISKLESS_RETENTION_PARTITIONS_PER_CALL
from skylog.kernel.logging import get_logger

_log = get_logger("diskless.retention")
# Topic id, partition, retention bytes, retention ms; a negative limit is off.
RetentionRequest: TypeAlias = tuple[Uuid, int, int, int]
RetentionSource: TypeAlias = Callable[[], Sequence[RetentionRequest]]


@dataclass(slots=True)
class RetentionStats:
    batches_deleted: int = 0
    bytes_deleted: int = 0
    partition_errors: int = 0


class RetentionPass:
    """Visits all partitions; those with more to delete than one step allows are visited again."""

    def __init__(
        self,
        plane: ControlPlane,
        source: RetentionSource,
        clock: Clock,
        *,
        batches_max: int,
        sleep: Sleep | None = None,
    ) -> None:
        """A step deletes at most ``batches_max`` of a partition."""
        self._plane = plane
        self._source = source
        self._clock = clock
        self._batches_max = batches_max
        self._sleep = sleep
        self.stats = RetentionStats()

    async def run_once(self) -> None:
        """Raises the first failure, after all other partitions have been handled."""
        limited = [one for one in self._source() if one[2] >= 0 or one[3] >= 0]
        size = DISKLESS_RETENTION_PARTITIONS_PER_CALL
        steps = deque(limited[at : at + size] for at in range(0, len(limited), size))
        breather = Breather(self._clock, self._sleep)
        failure: KafkaError | None = None
        while steps:
            step = steps.popleft()
            try:
                results = await self._plane.enforce_retention(step, self._batches_max)
            except KafkaError as error:
                failure = failure or error
                results = []
            unfinished = self._account(step, results)
            if unfinished:
                steps.append(unfinished)
            await breather.rest()
        if failure is not None:
            raise failure

    def _account(
        self, step: Sequence[RetentionRequest], results: Sequence[RetentionResult]
    ) -> list[RetentionRequest]:
        """Count what was done; returns the partitions that have more to delete."""
        unfinished = []
        for request, result in zip(step, results, strict=False):
            self.stats.batches_deleted += result.batches_deleted
            self.stats.bytes_deleted += result.bytes_deleted
            if result.batches_deleted >= self._batches_max:
                unfinished.append(request)
            # A partition that is being created or deleted is skipped.
            if result.error not in (ErrorCode.NONE, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION):
                self.stats.partition_errors += 1
                _log.warning(
                    "retention not enforced", partition=request[1], error=result.error.name
                )
        return unfinished
