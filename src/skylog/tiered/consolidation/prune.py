"""Lets go of WAL batches that remote segments have, and only of those.

One pass over the diskless partitions that this broker leads:

1. Ask their coordinators for the WAL start and the high watermark.
2. Take the segments from the WAL start on, without a gap, that this broker has had as finished for
   the delay (``ripening.py``). All that readers would read from count, not only enough to cover.
3. Read each back from the store (``read_back.py``); the first one that is not whole ends the run.
4. Tell the coordinator how far it may go. The log start does not move.

Whoever leads by then, that is harmless: a finished segment stays until the log start has passed it,
and the coordinator moves that before any object is deleted. In doubt the WAL stays.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple, Protocol

from skylog.kernel.errors import ErrorCode
from skylog.kernel.limits import PRUNED_PARTITIONS_PER_CALL_MAX, PRUNED_SEGMENTS_AT_ONCE
from skylog.kernel.logging import get_logger
from skylog.objects.store import NotFound, ObjectError
from skylog.tiered.consolidation.ripening import Ripening, target
from skylog.tiered.slots import Slots
from skylog.tiered.storage import DamagedSegment

if TYPE_CHECKING:
    from skylog.kernel.clock import Clock
    from skylog.log.epochs import LeaderEpochs
    from skylog.tiered.counts import TieredCounts
    from skylog.tiered.metadata.intervals import Interval
    from skylog.tiered.metadata.machine import RemoteLog
    from skylog.tiered.ports import RemoteLogs
    from skylog.tiered.segments import RemoteSegment, TopicIdPartition

_log = get_logger("tiered.prune")


class LedPartition(Protocol):
    """A diskless partition that this broker leads."""

    @property
    def partition(self) -> TopicIdPartition: ...
    @property
    def topic(self) -> str: ...
    @property
    def leader_epoch(self) -> int:
        """−1 as soon as it is led elsewhere."""
        ...

    @property
    def epochs(self) -> LeaderEpochs: ...


class Extent(NamedTuple):
    """What a coordinator says of a partition."""

    wal_start_offset: int
    high_watermark: int


class Pruner(Protocol):
    """Who leads, and the coordinators; ``broker/`` fills it. Errors of calls are ``KafkaError``."""

    def led(self) -> Iterable[LedPartition]: ...

    def obstacle(self) -> str | None:
        """Why nothing may be pruned now; None if nothing speaks against it."""
        ...

    async def extents(self, partitions: Sequence[TopicIdPartition]) -> Sequence[Extent | None]:
        """In the order of the partitions; None if the coordinator does not know one."""
        ...

    async def prune_to(
        self, targets: Sequence[tuple[TopicIdPartition, int]]
    ) -> Sequence[ErrorCode]:
        """Tiered storage has everything below these offsets. An ambiguous error is harmless: the
        next pass asks again."""
        ...


class _Candidate(NamedTuple):
    """A partition with segments that are to be read back."""

    led: LedPartition
    # If it is another one by the time that the segments are read back, the next pass decides.
    leader_epoch: int
    remote: RemoteLog
    extent: Extent
    ripe: list[Interval]


class PrunePass:
    """One pass each interval (``Pass``)."""

    def __init__(
        self,
        logs: RemoteLogs,
        pruner: Pruner,
        read_back: Callable[[RemoteSegment], Awaitable[None]],
        clock: Clock,
        counts: TieredCounts,
        *,
        delay_ms: int,
    ) -> None:
        self._logs = logs
        self._pruner = pruner
        self._read_back = read_back
        self._clock = clock
        self._counts = counts
        self._delay = delay_ms / 1000
        self._slots = Slots(PRUNED_SEGMENTS_AT_ONCE)
        self._ripening: dict[TopicIdPartition, Ripening] = {}
        # What was told last, so that it is told once.
        self._obstacle: str | None = None
        self._refused: dict[TopicIdPartition, bytes] = {}
        # The store did not answer in this pass: others need not wait for it, too.
        self._failure: ObjectError | TimeoutError | None = None

    async def run_once(self) -> None:
        """Raises ``KafkaError`` or a store's error; the next pass goes on."""
        with self._counts.prune.run():
            led = {one.partition: one for one in self._pruner.led()}
            # What was led elsewhere meanwhile begins anew.
            self._ripening = {key: self._ripening.get(key, Ripening()) for key in led}
            self._refused = {key: id_ for key, id_ in self._refused.items() if key in led}
            self._failure = None
            every = list(led.values())
            for first in range(0, len(every), PRUNED_PARTITIONS_PER_CALL_MAX):
                await self._prune(every[first : first + PRUNED_PARTITIONS_PER_CALL_MAX])
            self._counts.prunes_refused = len(self._refused)
            if self._failure is not None:
                raise self._failure

    async def _prune(self, led: Sequence[LedPartition]) -> None:
        candidates = await self._candidates(led)
        if not candidates or self._is_kept_back():
            return
        checked = await asyncio.gather(*map(self._check, candidates))
        targets = [
            (candidate.led, end)
            for candidate, ids in zip(candidates, checked, strict=True)
            if (end := self._target(candidate, ids)) is not None
        ]
        if not targets:
            return
        results = await self._pruner.prune_to([(one.partition, end) for one, end in targets])
        for (one, end), error in zip(targets, results, strict=True):
            tell = _log.info if error is ErrorCode.NONE else _log.warning
            tell(
                "WAL pruned" if error is ErrorCode.NONE else "WAL not pruned",
                topic=one.topic,
                partition=one.partition.partition_index,
                leader_epoch=one.leader_epoch,
                offset=end,
                error=error.name,
            )

    async def _candidates(self, led: Sequence[LedPartition]) -> list[_Candidate]:
        # Before the high watermarks are asked for: they must not be below what is remote now.
        highest = [self._highest(one) for one in led]
        epochs = [one.leader_epoch for one in led]
        extents = await self._pruner.extents([one.partition for one in led])
        found, now = [], self._clock.monotonic()
        for one, epoch, above, extent in zip(led, epochs, highest, extents, strict=True):
            remote = self._logs.get(one.partition)
            if extent is None or remote is None or epoch < 0:
                continue
            ripening = self._ripening[one.partition]
            ripening.note(remote, now, self._delay)
            if above >= extent.high_watermark and ripening.contradicted(extent.high_watermark):
                _log.error(
                    "remote segments end above the high watermark: the WAL from there on is kept",
                    topic=one.topic,
                    partition=one.partition.partition_index,
                    high_watermark=extent.high_watermark,
                    remote_offset=above,
                )
            candidate = _Candidate(one, epoch, remote, extent, [])
            candidate.ripe.extend(self._ripe(candidate))
            if candidate.ripe:
                found.append(candidate)
        return found

    def _highest(self, led: LedPartition) -> int:
        remote = self._logs.get(led.partition)
        highest = None if remote is None else remote.highest_offset(led.epochs.latest)
        return -1 if highest is None else highest

    def _ripe(self, candidate: _Candidate) -> list[Interval]:
        led, extent = candidate.led, candidate.extent
        return self._ripening[led.partition].ripe(
            led.epochs.latest,
            extent.wal_start_offset,
            extent.high_watermark,
            self._clock.monotonic(),
            self._delay,
        )

    def _is_kept_back(self) -> bool:
        obstacle = self._pruner.obstacle()
        if obstacle is not None and obstacle != self._obstacle:
            _log.warning("no WAL is pruned", why=obstacle)
        self._obstacle = obstacle
        return obstacle is not None

    # -- read back -----------------------------------------------------------------------------

    async def _check(self, candidate: _Candidate) -> set[bytes]:
        """The ids of the first segments that are whole."""
        whole: set[bytes] = set()
        for interval in candidate.ripe:
            async with self._slots:
                segment = candidate.remote.segment(interval.id)
                if self._failure is not None or segment is None:
                    break
                try:
                    await self._read_back(segment)
                except (NotFound, DamagedSegment) as error:
                    self._refuse(candidate.led, segment, error)
                    break
                except (ObjectError, TimeoutError) as error:
                    self._failure = error
                    break
            whole.add(interval.id)
        else:
            self._refused.pop(candidate.led.partition, None)
        return whole

    def _refuse(self, led: LedPartition, segment: RemoteSegment, error: Exception) -> None:
        if self._refused.get(led.partition) != segment.id:
            _log.error(
                "remote segment is not whole: the WAL from its start on is kept",
                topic=led.topic,
                partition=led.partition.partition_index,
                start_offset=segment.start_offset,
                segment=str(segment.id),
                why=str(error),
            )
        self._refused[led.partition] = segment.id

    def _target(self, candidate: _Candidate, whole: set[bytes]) -> int | None:
        """By what is remote now: it may have changed while the store was asked."""
        led = candidate.led
        if led.leader_epoch != candidate.leader_epoch:
            return None
        if self._logs.get(led.partition) is not candidate.remote:
            return None
        return target(self._ripe(candidate), whole)
