"""Compacts all eligible logs in the background, the dirtiest first.

A pass works in steps on the executor's threads: between two steps it waits as
``log.cleaner.io.max.bytes.per.second`` requires, and stops if its log was deleted. Only the swap of
a finished copy runs on the event loop, where logs are changed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Final, Protocol

from skylog.kernel.clock import Clock
from skylog.kernel.errors import KafkaError
from skylog.kernel.executor import Executor
from skylog.kernel.limits import LOG_CLEANER_THREADS_MAX
from skylog.kernel.logging import get_logger
from skylog.kernel.rng import Random
from skylog.log.clean_pass import CleanPass, PassBudget, PassSource, Steps
from skylog.log.cleanable import Cleanable, LogState, cleanable
from skylog.log.files import Files, Replaced
from skylog.log.log import Log

_logger = get_logger("log.cleaner")
# A map is never larger than this, as in Kafka.
_MAP_BYTES_MAX: Final = 2**31 - 1
_SEED_BYTES: Final = 16
# A step ends after this many bytes, so that other work can use the thread.
_STEP_BYTES: Final = 4 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class CleanerSettings:
    """The ``log.cleaner.*`` settings, which may change at any time; defaults are Kafka's."""

    enable: bool = True
    threads: int = 1
    dedupe_buffer_bytes: int = 128 * 1024 * 1024
    io_buffer_bytes: int = 512 * 1024
    load_factor: float = 0.9
    bytes_per_second_max: float = float("inf")
    backoff_ms: int = 15_000

    @property
    def passes_max(self) -> int:
        """The number of concurrent passes."""
        return min(self.threads, LOG_CLEANER_THREADS_MAX) if self.enable else 0

    @property
    def budget(self) -> PassBudget:
        """The memory of one pass: half of its buffer is for reading."""
        return PassBudget(
            min(self.dedupe_buffer_bytes // self.threads, _MAP_BYTES_MAX),
            self.load_factor,
            self.io_buffer_bytes // self.threads // 2,
        )


class Logs(Protocol):
    """What the cleaner needs of the log manager."""

    files: Files

    def logs(self) -> Iterator[Log]: ...

    async def checkpoint_clean_offsets(self) -> None: ...


@dataclass(slots=True)
class CleanerStats:
    """Totals for the metrics."""

    passes: int = 0
    failures: int = 0
    bytes_read_and_written: int = 0
    bytes_removed: int = 0
    dirty_ratio_max: float = 0.0
    last_look_ms: int = 0
    # Logs that cannot be compacted, and why: they are skipped until the next start.
    uncleanable: dict[tuple[str, int], str] = field(default_factory=dict)


class _GoneError(Exception):
    """The log has changed, so the pass is useless now."""


class LogCleaner:
    """``run`` compacts until it is cancelled."""

    def __init__(
        self,
        logs: Logs,
        clock: Clock,
        executor: Executor,
        rng: Random,
        settings: Callable[[], CleanerSettings],
    ) -> None:
        self._logs = logs
        self._clock = clock
        self._executor = executor
        self._rng = rng
        self._settings = settings
        self._free_at = 0.0
        self.stats = CleanerStats()

    async def run(self) -> None:
        while True:
            if not await self.run_once():
                await asyncio.sleep(max(self._settings().backoff_ms, 1) / 1000)

    async def run_once(self) -> int:
        """Compact the dirtiest logs, one for each allowed pass; returns how many."""
        settings = self._settings()
        if not settings.passes_max:
            return 0
        chosen = await self._dirtiest(settings.passes_max)
        done = await asyncio.gather(*(self._clean(log, found) for log, found in chosen))
        if any(done):
            await self._logs.checkpoint_clean_offsets()
        return sum(done)

    # -- choosing ------------------------------------------------------------------------------

    async def _dirtiest(self, count: int) -> list[tuple[Log, Cleanable]]:
        now_ms = self._clock.now_ms()
        logs = [log for log in self._logs.logs() if self._may_clean(log)]
        states = [(log, state_of(log)) for log in logs]
        looked = await self._executor.run(partial(_look, states, now_ms))
        stats = self.stats
        stats.last_look_ms = now_ms
        stats.dirty_ratio_max = max((found.dirty_ratio for _, found in looked), default=0.0)
        stats.uncleanable = {
            key: why
            for key, why in stats.uncleanable.items()
            if key in {(log.topic, log.partition) for log in self._logs.logs()}
        }
        worth = [(log, found) for log, found in looked if found.is_worth_it(log.config)]
        worth.sort(key=lambda pair: pair[1].dirty_ratio, reverse=True)
        return worth[:count]

    def _may_clean(self, log: Log) -> bool:
        key = log.topic, log.partition
        return log.config.compacts and not log.is_offline and key not in self.stats.uncleanable

    # -- one log -------------------------------------------------------------------------------

    async def _clean(self, log: Log, found: Cleanable) -> bool:
        """Whether the pass completed; an error in one log does not stop the cleaner."""
        began, before = self._clock.monotonic(), log.size
        following = log.segments[len(found.segments)]
        try:
            work = await self._pass(log, found)
        except _GoneError:
            return False
        except OSError as error:
            if not log.is_deleted:
                self._failed(log, error)
            return False
        except KafkaError as error:
            # A failure while the log was being truncated means nothing.
            if not log.is_offline and following in log.segments:
                self.stats.uncleanable[log.topic, log.partition] = str(error)
                self._failed(log, error)
            return False
        log.clean_offset = work.end_offset
        self.stats.passes += 1
        self.stats.bytes_removed += max(before - log.size, 0)
        _logger.info(
            "compacted",
            topic=log.topic,
            partition=log.partition,
            up_to=work.end_offset,
            keys=work.keys,
            bytes_before=before,
            bytes_after=log.size,
            seconds=round(self._clock.monotonic() - began, 3),
        )
        return True

    def _failed(self, log: Log, error: Exception) -> None:
        self.stats.failures += 1
        _logger.error("compaction failed", directory=log.directory, error=str(error))

    async def _pass(self, log: Log, found: Cleanable) -> CleanPass:
        work = self._new_pass(log, found)
        await self._take(log, work.build_map())
        work.begin_copies()
        while (copy := work.next_copy()) is not None:
            try:
                await self._take(log, work.copy(copy))
            except BaseException:
                await self._executor.run(copy.remove)
                raise
            if not log.replace_segments(work.group, copy):
                await self._executor.run(copy.remove)
                raise _GoneError
            await self._executor.run(log.durability.sync_names)
        return work

    def _new_pass(self, log: Log, found: Cleanable) -> CleanPass:
        producers = tuple(log.producers)
        source = PassSource(
            self._logs.files,
            log.directory,
            log.config,
            found,
            tuple(log.segments),
            [producer.last_offset for producer in producers if producer.batches],
            {one.producer_id: one.epoch for one in producers if not one.batches},
        )
        seed = self._rng.randbytes(_SEED_BYTES)
        return CleanPass(source, self._settings().budget, seed, self._clock.now_ms())

    async def _take(self, log: Log, steps: Steps) -> None:
        """Run the steps of a pass at the allowed rate."""
        while True:
            try:
                count = await self._executor.run(partial(_advance, steps))
            except (FileNotFoundError, Replaced):
                raise _GoneError from None  # deleted or truncated meanwhile
            if log.is_offline:
                raise _GoneError
            if count is None:
                return
            self.stats.bytes_read_and_written += count
            await self._pace(count)

    async def _pace(self, count: int) -> None:
        rate = self._settings().bytes_per_second_max
        now = self._clock.monotonic()
        self._free_at = max(self._free_at, now) + count / max(rate, 1.0)
        if self._free_at > now:
            await asyncio.sleep(self._free_at - now)


def state_of(log: Log) -> LogState:
    """What decides about compacting a log, now."""
    return LogState(
        log.segments,
        log.config,
        log.clean_offset,
        log.log_start_offset,
        log.log_end_offset,
        # An older value may only be dropped once the newer one cannot be lost.
        min(log.last_stable_offset, log.durability.recovery_point),
    )


def _look(states: Iterable[tuple[Log, LogState]], now_ms: int) -> list[tuple[Log, Cleanable]]:
    found = []
    for log, state in states:
        try:
            found.append((log, cleanable(state, now_ms)))
        except (OSError, KafkaError, Replaced) as error:
            _logger.warning("log not checked", directory=log.directory, error=str(error))
    return found


def _advance(steps: Steps) -> int | None:
    """Run some steps; None if there are no more."""
    total = 0
    for count in steps:
        total += count
        if total >= _STEP_BYTES:
            return total
    return total or None
