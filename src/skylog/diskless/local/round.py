"""One round of the filler: find → read → append, for the partitions whose turn it is."""

from __future__ import annotations

import asyncio
import contextlib
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final, NamedTuple

from skylog.diskless.local import plan
from skylog.diskless.local.copy import LocalCopy, log_config, remove_directory
from skylog.diskless.local.partitions import LocalPartition, LocalPartitions
from skylog.diskless.local.threads import Threads
from skylog.diskless.plane import ControlPlane, FindRequest, FindResult, LogInfo
from skylog.diskless.reader import DisklessReader, ReadResult
from skylog.kernel.clock import Clock
from skylog.kernel.errors import ErrorCode, KafkaError, StorageError
from skylog.kernel.logging import get_logger
from skylog.log.config import LogConfig
from skylog.log.files import Files

_log = get_logger("diskless.local")
# A round whose objects do not arrive gives way to another.
READ_SECONDS_MAX: Final = 30.0
# Up to this many bytes are appended on the event loop.
INLINE_BYTES_MAX: Final = 256 * 1024
_NOT_THERE: Final = (ErrorCode.OFFSET_OUT_OF_RANGE, ErrorCode.OFFSET_MOVED_TO_TIERED_STORAGE)


@dataclass(frozen=True, slots=True)
class LocalCopies:
    """The copies of this broker: how large they are, and what their records are read with."""

    partitions: LocalPartitions
    limits: plan.LocalLimits
    plane: ControlPlane
    reader: DisklessReader
    files: Files
    threads: Threads
    clock: Clock

    @property
    def sizes(self) -> plan.Sizes:
        return plan.sizes(self.limits, len(self.partitions))

    @property
    def config(self) -> LogConfig:
        sizes = self.sizes
        return log_config(sizes.segment_bytes, sizes.kept_bytes, self.limits.retention_ms)


class Filling(NamedTuple):
    """Bytes for a partition, and the offset at which they begin."""

    partition: LocalPartition
    start: int
    result: ReadResult


class Appended(NamedTuple):
    copy: LocalCopy
    added_bytes: int


class Round:
    """Has exclusive use of its partitions until it releases them."""

    def __init__(self, local: LocalCopies, ones: Sequence[LocalPartition], *, tail: bool) -> None:
        """``tail``: fetches may be waiting for these."""
        self._local = local
        self._partitions = local.partitions
        self._ones = ones
        self.tail = tail
        for one in ones:
            self._partitions.take(one, self)

    async def run(self) -> None:
        try:
            for one in self._ones:
                if one.gone:
                    await self._remove(one)
            hosted = [one for one in self._ones if not one.gone]
            await self._decide_all([one for one in hosted if one.unsure])
            known = [one for one in hosted if not one.unsure and not one.gone]
            if known:
                await self._fill(known)
        except Exception as error:  # noqa: BLE001 - logged and retried
            failure = error if isinstance(error, KafkaError) else _unexpected(error)
            for one in self._ones:
                if one.round is self:
                    self._partitions.failed(one, failure)
        finally:
            for one in self._ones:
                self._partitions.release(one, self)

    async def _remove(self, one: LocalPartition) -> None:
        work = partial(_remove_files, one.copy, one.place.directory, self._local.files)
        try:
            await self._local.threads.run(work)
        except OSError as error:
            self._partitions.stats.disk_errors += 1
            _log.error("local copy not removed", directory=one.place.directory, why=str(error))
        self._partitions.removed(one)

    # -- where to continue ---------------------------------------------------------------------

    async def _decide_all(self, ones: list[LocalPartition]) -> None:
        if ones:
            infos = await self._local.plane.log_info([one.key for one in ones])
            await asyncio.gather(*map(self._decide, ones, infos))

    async def _decide(self, one: LocalPartition, info: LogInfo) -> None:
        """Check the existing copy and the plane's state, and choose where to continue."""
        copy_bytes = self._local.sizes.copy_bytes
        try:
            if info.error is not ErrorCode.NONE:
                raise KafkaError(info.error)
            self._partitions.heard(one, info.log_start_offset, info.high_watermark)
            first_look = one.next_offset is None
            copy = await self._open(one) if first_look else one.copy
            chosen = plan.resume(copy.region if copy else None, info, copy_bytes)
            if copy is not None and first_look and chosen.keep:
                same = await self._is_of_this_history(one, copy)
                chosen = chosen if same else plan.resume(None, info, copy_bytes)
        except KafkaError as error:
            self._partitions.failed(one, error)
        except OSError as error:
            self._partitions.disk_failed(one, error)
        else:
            if copy is not None and chosen.keep:
                one.copy = copy
            else:
                # If the copy is not kept, it is removed when the new one is created.
                self._partitions.stats.rebuilds += copy is not None
                one.copy = None
                self._partitions.stop_following(one)
            one.next_offset, one.unsure = chosen.offset, False

    async def _open(self, one: LocalPartition) -> LocalCopy | None:
        local = self._local
        work = partial(LocalCopy.open, one.place, local.files, local.config, local.clock.now_ms())
        return await local.threads.run(work)

    async def _is_of_this_history(self, one: LocalPartition, copy: LocalCopy) -> bool:
        """A plane restored from a backup reassigns offsets: the last batch must be the same."""
        start, end = copy.region
        if start == end:
            return True
        found = await self._local.plane.find_batches([FindRequest(*one.key, end - 1, 1)], 1)
        if found[0].error in _NOT_THERE:
            return False
        result = (await self._local.reader.read_found(found))[0]
        if result.error is not ErrorCode.NONE:
            raise KafkaError(result.error)
        return await self._local.threads.run(partial(copy.agrees_with, result.records))

    # -- copying -------------------------------------------------------------------------------

    async def _fill(self, known: list[LocalPartition]) -> None:
        """At the tail, no partition waits for an object that only another needs; those that catch
        up share their reads."""
        # If there are more than a round can take, those that have waited longest go first.
        known.sort(key=lambda one: one.waiting_since or math.inf)
        found = await self._local.plane.find_batches(
            [FindRequest(*one.key, one.end, plan.ROUND_PARTITION_BYTES) for one in known],
            plan.ROUND_BYTES,
        )
        usable = [pair for pair in zip(known, found, strict=True) if self._usable(*pair)]
        groups = self._apart(usable) if self.tail else [usable]
        reads = {asyncio.ensure_future(self._read(group)) for group in groups if group}
        try:
            while reads:
                done, reads = await asyncio.wait(
                    reads, timeout=READ_SECONDS_MAX, return_when=asyncio.FIRST_COMPLETED
                )
                if not done:
                    raise KafkaError(ErrorCode.REQUEST_TIMED_OUT, "objects did not arrive in time")
                await self._append([filling for task in done for filling in task.result()])
        finally:
            for task in reads:
                task.cancel()

    def _apart(
        self, usable: list[tuple[LocalPartition, FindResult]]
    ) -> list[list[tuple[LocalPartition, FindResult]]]:
        """All whose objects are in memory together, each of the others by itself."""
        cache = self._local.reader.objects.cache
        together, apart = [], []
        for pair in usable:
            if all(batch.extent.object_key in cache for batch in pair[1].batches):
                together.append(pair)
            else:
                apart.append([pair])
        return [together, *apart]

    def _usable(self, one: LocalPartition, found: FindResult) -> bool:
        if found.error is ErrorCode.NONE:
            self._partitions.heard(one, found.log_start_offset, found.high_watermark)
            return True
        if found.error in _NOT_THERE:
            one.log_start, one.high_watermark = found.log_start_offset, found.high_watermark
            self._partitions.start_over(one)
        else:
            self._partitions.failed(one, KafkaError(found.error))
        return False

    async def _read(self, group: list[tuple[LocalPartition, FindResult]]) -> list[Filling]:
        try:
            results = await self._local.reader.read_found([found for _, found in group])
        except KafkaError as error:
            results = [ReadResult(error.code)] * len(group)
        return [
            Filling(one, found.batches[0].stamp.base_offset if found.batches else one.end, result)
            for (one, found), result in zip(group, results, strict=True)
        ]

    async def _append(self, fillings: list[Filling]) -> None:
        for one, _, result in fillings:
            if result.error is not ErrorCode.NONE:
                self._partitions.failed(one, KafkaError(result.error))
        good = [one for one in fillings if one.result.error is ErrorCode.NONE]
        if self._is_quick(good):
            outcomes = self._append_all(good, trim=False)
        else:
            outcomes = await self._local.threads.run(partial(self._append_all, good, trim=True))
        for (one, _, _), outcome in zip(good, outcomes, strict=True):
            if isinstance(outcome, Appended):
                self._partitions.appended(one, *outcome)
            elif isinstance(outcome, KafkaError) and outcome.code is ErrorCode.INVALID_RECORD:
                self._partitions.failed(one, outcome)
                self._partitions.start_over(one)
            else:
                self._partitions.disk_failed(one, outcome)
            self._partitions.release(one, self)

    def _is_quick(self, fillings: list[Filling]) -> bool:
        """A few bytes for copies with room: a thread would cost more than it saves, as with the
        logs of classic topics."""
        copy_bytes = self._local.sizes.copy_bytes
        return 0 < sum(one.result.size for one in fillings) <= INLINE_BYTES_MAX and all(
            one.partition.copy is not None and one.partition.copy.takes(one.result.size, copy_bytes)
            for one in fillings
        )

    def _append_all(self, fillings: list[Filling], *, trim: bool) -> list[Appended | Exception]:
        """Nothing else changes these files meanwhile."""
        outcomes: list[Appended | Exception] = []
        config, now_ms = self._local.config, self._local.clock.now_ms()
        for one, start, result in fillings:
            try:
                copy = one.copy or LocalCopy.create(
                    one.place, self._local.files, config, now_ms, start
                )
                added_bytes = copy.append(result.records, now_ms)
                if trim:
                    copy.trim(one.log_start, config, now_ms)
                outcomes.append(Appended(copy, added_bytes))
            except (OSError, KafkaError, StorageError) as error:
                outcomes.append(error)
                # If the disk is full, this frees the space of these files.
                with contextlib.suppress(OSError):
                    _remove_files(one.copy, one.place.directory, self._local.files)
        return outcomes


def _unexpected(error: Exception) -> KafkaError:
    return KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, repr(error))


def _remove_files(copy: LocalCopy | None, directory: str, files: Files) -> None:
    if copy is not None:
        copy.remove()
    else:
        remove_directory(files, directory)
