"""All local logs of a broker: opened at the start, created and deleted by metadata.

Background steps (retention, flushes, checkpoints, removal) work in slices, so that the event loop
never stalls however many partitions there are; work that waits for the disk uses the executor.
``run`` runs the steps when they are due.
"""

from __future__ import annotations

import asyncio
import heapq
from collections.abc import Awaitable, Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Final

from skylog.kernel.clock import Clock
from skylog.kernel.errors import ErrorCode, KafkaError, StorageError
from skylog.kernel.executor import Executor
from skylog.kernel.ids import ZERO_UUID, Uuid
from skylog.kernel.logging import get_logger
from skylog.kernel.rng import Random, random_uuid, system_random
from skylog.kernel.topics import CLUSTER_METADATA
from skylog.log.checkpoints import NO_BROKER_EPOCH, TopicPartition
from skylog.log.config import LogConfig, LogManagerSettings
from skylog.log.directory import LogDirectory
from skylog.log.discarded import Discarded
from skylog.log.files import Files, storage_error
from skylog.log.host import LogHost
from skylog.log.locks import DirectoryLock
from skylog.log.log import Log
from skylog.log.names import (
    DELETE_DIR_SUFFIX,
    STRAY_DIR_SUFFIX,
    directory_name,
    doomed_directory_name,
)

# A step yields to the loop after this time, which is checked after this many logs.
_SLICE_SECONDS: Final = 0.002
_SLICE_LOGS: Final = 32
# The number of logs that one executor call opens.
_OPENED_TOGETHER: Final = 64
_DISCARD_INTERVAL_MS: Final = 5_000
_WAIT_SECONDS_MAX: Final = 3_600

_logger = get_logger("log.manager")


class LogManager(LogHost):
    """Manages the logs in ``dirs``."""

    def __init__(
        self,
        dirs: list[str],
        clock: Clock,
        executor: Executor,
        settings: LogManagerSettings | None = None,
        rng: Random | None = None,
        files: Files | None = None,
    ) -> None:
        self.settings = settings or LogManagerSettings()
        super().__init__(files or Files(self.settings.open_files_max))
        self._clock = clock
        self._executor = executor
        self._rng = rng or system_random()
        self._directories = [LogDirectory(self.files, str(Path(path))) for path in dirs]
        self._locks: list[DirectoryLock] = []
        # A caller that locked before ``start`` also unlocks: it still uses other files there.
        self._unlocks = False
        self._logs: dict[TopicPartition, Log] = {}
        self._homes: dict[TopicPartition, LogDirectory] = {}
        self._failed = False
        self._unflushed: dict[Log, None] = {}
        self._unwritten: dict[Log, None] = {}
        self._starts_moved = False
        self._discarded = Discarded(clock, executor)
        self._work = asyncio.Event()

    # -- start and stop ------------------------------------------------------------------------

    @property
    def previous_broker_epoch(self) -> int:
        """The epoch of the broker that shut down cleanly here, or −1."""
        epochs = {home.broker_epoch for home in self._directories if home.was_clean}
        return max(epochs) if len(epochs) == 1 else NO_BROKER_EPOCH

    async def start(self, config_of: Callable[[str], LogConfig] | None = None) -> None:
        """Lock the directories and open every log in them. Raises StorageError."""
        self._unlocks = not self._locks
        if self._unlocks:
            self.lock()
        for home in self._directories:
            try:
                await self._executor.run(home.prepare)
                found = await self._executor.run(home.partitions)
                doomed = await self._executor.run(home.deleted)
            except OSError as error:
                raise StorageError(f"{home.path} cannot be used: {error}") from error
            # The metadata log belongs to the quorum.
            keys = [key for key in found if key[0] != CLUSTER_METADATA]
            for at in range(0, len(keys), _OPENED_TOGETHER):
                part = keys[at : at + _OPENED_TOGETHER]
                opened = await self._executor.run(partial(self._open_all, home, part, config_of))
                for log in opened:
                    self._add(home, log)
            delay_ms = self.settings.default.file_delete_delay_ms
            for path in doomed:
                self._discarded.add(path, delay_ms)

    def lock(self) -> None:
        """Lock the directories for this broker alone. Raises StorageError."""
        for home in self._directories:
            try:
                Path(home.path).mkdir(parents=True, exist_ok=True)
                self._locks.append(DirectoryLock(home.path))
            except OSError as error:
                raise StorageError(f"{home.path} cannot be used: {error}") from error

    def unlock(self) -> None:
        while self._locks:
            self._locks.pop().release()

    def _open_all(
        self,
        home: LogDirectory,
        keys: list[TopicPartition],
        config_of: Callable[[str], LogConfig] | None,
    ) -> list[Log]:
        return [
            self._open(home, key, config_of(key[0]) if config_of else self.settings.default)
            for key in keys
        ]

    def _open(self, home: LogDirectory, key: TopicPartition, config: LogConfig) -> Log:
        directory, known = f"{home.path}/{directory_name(*key)}", home.checkpointed(key)
        try:
            log = Log.open(key, directory, self, config, self._clock.now_ms(), known)
        except (OSError, KafkaError) as error:
            raise StorageError(f"{directory} cannot be opened: {error}") from error
        mark = max(known.high_watermark, log.local_log_start_offset)
        log.high_watermark = min(mark, log.log_end_offset)
        log.clean_offset = home.clean_offset(key)
        return log

    def _add(self, home: LogDirectory, log: Log) -> None:
        key = log.topic, log.partition
        if key in self._logs:
            raise StorageError(
                f"{log.directory} and {self._logs[key].directory} are of one partition"
            )
        self._logs[key] = log
        self._homes[key] = home
        home.logs_count += 1
        if log.config.remote:
            self._starts_moved = True

    async def close(self, broker_epoch: int = NO_BROKER_EPOCH) -> None:
        """Close every log and write the mark that lets the next start skip recovery."""
        for home in self._directories:
            await self._executor.run(partial(self._close, home, self._logs_in(home), broker_epoch))
        if self._unlocks:
            self.unlock()

    def _close(self, home: LogDirectory, logs: list[Log], broker_epoch: int) -> None:
        clean = not self._failed
        for log in logs:
            try:
                log.close()
            except KafkaError as error:
                clean = False
                _logger.error("log not closed", directory=log.directory, error=str(error))
        try:
            home.write_offsets(logs)
            home.write_high_watermarks(logs)
            home.write_clean_offsets(logs)
            if clean:
                home.mark_clean(broker_epoch)
        except OSError as error:
            _logger.error("no clean shutdown", directory=home.path, error=str(error))

    # -- logs ----------------------------------------------------------------------------------

    def get(self, topic: str, index: int) -> Log | None:
        return self._logs.get((topic, index))

    def logs(self) -> Iterator[Log]:
        return iter(tuple(self._logs.values()))

    def by_directory(self) -> list[tuple[str, list[Log]]]:
        """Each directory with the logs in it."""
        return [(home.path, self._logs_in(home)) for home in self._directories]

    def _logs_in(self, home: LogDirectory) -> list[Log]:
        return [log for key, log in self._logs.items() if self._homes[key] is home]

    def get_or_create(self, topic: str, index: int, topic_id: Uuid, config: LogConfig) -> Log:
        """The partition's log. If an older topic of that name left one, it is put aside."""
        key = topic, index
        log = self._logs.get(key)
        if (
            log is not None
            and topic_id not in (log.companions.topic_id, ZERO_UUID)
            and (log.companions.topic_id != ZERO_UUID)
        ):
            _logger.warning("log of an older topic put aside", directory=log.directory)
            self._remove(key, STRAY_DIR_SUFFIX)
            log = None
        if log is None:
            log = self._create(key, config)
        log.configure(config)
        if topic_id != ZERO_UUID:
            log.companions.assign_topic_id(topic_id)
        return log

    def _create(self, key: TopicPartition, config: LogConfig) -> Log:
        home = min(self._directories, key=lambda one: one.logs_count)
        try:
            if home.knows(key):
                # Offsets of a deleted partition of that name must not apply to the new one.
                home.rewrite(self._logs_in(home))
            log = self._open(home, key, config)
        except OSError as error:
            raise storage_error(f"{home.path} cannot be used", error) from error
        except StorageError as error:
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, str(error)) from error
        self._add(home, log)
        return log

    def delete(self, topic: str, index: int, *, stray: bool = False) -> None:
        """Remove a partition; its files go a little later or, if it is stray, are set aside."""
        if (topic, index) in self._logs:
            self._remove((topic, index), STRAY_DIR_SUFFIX if stray else DELETE_DIR_SUFFIX)

    def _remove(self, key: TopicPartition, suffix: str) -> None:
        log, home = self._logs.pop(key), self._homes.pop(key)
        home.logs_count -= 1
        self._unflushed.pop(log, None)
        self._unwritten.pop(log, None)
        log.mark_deleted()
        target = f"{home.path}/{doomed_directory_name(*key, random_uuid(self._rng).hex(), suffix)}"
        try:
            self.files.rename(log.directory, target)
        except OSError as error:
            _logger.error("log not removed", directory=log.directory, error=str(error))
            return
        self._starts_moved = True
        if suffix == DELETE_DIR_SUFFIX:
            self._discarded.add(target, log.config.file_delete_delay_ms)

    # -- requests of logs ----------------------------------------------------------------------

    def rolled(self, log: Log) -> None:
        self._unflushed[log] = None
        self._work.set()
        super().rolled(log)

    def start_moved(self, log: Log) -> None:
        self._starts_moved = True
        self._work.set()
        super().start_moved(log)

    def pin_start(self, log: Log) -> None:
        home = self._homes[log.topic, log.partition]
        if not home.has_start(log):
            home.write_offsets(self._logs_in(home))

    def discard(self, log: Log, paths: list[str]) -> None:
        for path in paths:
            self._discarded.add(path, log.config.file_delete_delay_ms)

    def unwritten(self, log: Log) -> None:
        self._unwritten[log] = None
        self._work.set()

    def failed(self, log: Log) -> None:
        self._failed = True

    # -- background ----------------------------------------------------------------------------

    async def run_retention(self) -> int:
        """One pass over all logs: deletes old segments and idle producers."""
        deleted = 0
        began = self._clock.monotonic()
        for seen, log in enumerate(self.logs(), 1):
            now_ms = self._clock.now_ms()
            try:
                deleted += log.trimming.delete_old_segments(now_ms)
            except KafkaError as error:
                _logger.error("retention failed", directory=log.directory, error=str(error))
            log.producers.expire(now_ms, log.config.producer_id_expiration_ms)
            for segment in log.segments[:-1]:
                segment.drop_indexes()
            if seen % _SLICE_LOGS == 0 and self._clock.monotonic() - began > _SLICE_SECONDS:
                await asyncio.sleep(0)
                began = self._clock.monotonic()
        return deleted

    async def write_companions(self) -> None:
        """Write small files that are out of date, one log at a time: others get their turn."""
        while self._unwritten:
            log, _ = self._unwritten.popitem()
            log.companions.write()
            await asyncio.sleep(0)

    async def flush(self) -> None:
        """Sync rolled segments, and logs whose ``flush.ms`` has passed."""
        rolled, self._unflushed = self._unflushed, {}
        for log in rolled:
            await self._sync(log, log.durability.sync_rolled)
        now_ms = self._clock.now_ms()
        for log in self.logs():
            if log.config.flush_ms <= now_ms - log.durability.flushed_ms:
                log.durability.flushed_ms = now_ms
                await self._sync(log, log.durability.sync)

    async def _sync(self, log: Log, how: Callable[[], None]) -> None:
        try:
            await self._executor.run(how)
        except KafkaError as error:
            if not log.is_deleted:
                _logger.error("flush failed", directory=log.directory, error=str(error))

    async def sync(self, log: Log) -> None:
        """Make everything appended to a log durable; OSError or KafkaError if that fails."""
        await self._executor.run(log.durability.sync)

    async def checkpoint(self) -> None:
        """Write recovery points and log starts."""
        self._starts_moved = False
        for home in self._directories:
            await self._write_checkpoint(partial(home.write_offsets, self._logs_in(home)))

    async def make_start_durable(self, log: Log) -> None:
        """Write the log's start; raises KAFKA_STORAGE_ERROR."""
        home = self._homes[log.topic, log.partition]
        try:
            await self._executor.run(partial(home.write_offsets, self._logs_in(home)))
        except OSError as error:
            raise storage_error(f"{home.path} cannot be used", error) from error

    async def require_snapshot(self, log: Log, offset: int) -> None:
        """See that the producers' state at the base of a segment is in a file; raises
        KafkaError."""
        try:
            await self._executor.run(partial(log.snapshots.require, offset))
        except OSError as error:
            raise storage_error(f"{log.directory} has no snapshot", error) from error

    async def checkpoint_high_watermarks(self) -> None:
        for home in self._directories:
            await self._write_checkpoint(partial(home.write_high_watermarks, self._logs_in(home)))

    async def _write_checkpoint(self, write: Callable[[], None]) -> None:
        try:
            await self._executor.run(write)
        except OSError as error:
            _logger.error("checkpoint not written", error=str(error))

    async def checkpoint_clean_offsets(self) -> None:
        for home in self._directories:
            await self._write_checkpoint(partial(home.write_clean_offsets, self._logs_in(home)))

    async def remove_discarded(self) -> None:
        """Remove from disk what is due."""
        await self._discarded.remove_due()

    async def run(self) -> None:
        """Run every step when it is due, until cancelled."""
        settings = self.settings
        steps: list[tuple[Callable[[], Awaitable[object]], int]] = [
            (self.run_retention, settings.retention_check_interval_ms),
            (self.flush, settings.flush_scheduler_interval_ms),
            (self.checkpoint, settings.flush_offset_checkpoint_interval_ms),
            (self.checkpoint_high_watermarks, settings.high_watermark_checkpoint_interval_ms),
            (self.remove_discarded, _DISCARD_INTERVAL_MS),
        ]
        now = self._clock.monotonic()
        due = [(now + every_ms / 1000, number) for number, (_, every_ms) in enumerate(steps)]
        heapq.heapify(due)
        while True:
            await self._wait_for_work(due[0][0] - self._clock.monotonic())
            await self.write_companions()
            if self._starts_moved:
                await self.checkpoint()
            if self._unflushed:
                await self.flush()
            if due[0][0] <= self._clock.monotonic():
                number = due[0][1]
                step, every_ms = steps[number]
                await step()
                heapq.heapreplace(due, (self._clock.monotonic() + every_ms / 1000, number))

    async def _wait_for_work(self, seconds: float) -> None:
        try:
            async with asyncio.timeout(min(max(seconds, 0), _WAIT_SECONDS_MAX)):
                await self._work.wait()
        except TimeoutError:
            return
        self._work.clear()
