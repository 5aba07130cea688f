"""A compacted log, its cleaner, and the invariants of compaction."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path

from skylog.kernel.clock import ManualClock
from skylog.kernel.executor import InlineExecutor
from skylog.log.appender import AppendInfo
from skylog.log.cleaner import CleanerSettings, LogCleaner
from skylog.log.config import LogConfig
from skylog.log.files import Files
from skylog.log.host import LogHost
from skylog.log.log import Log
from skylog.wire.batch import Batch
from skylog.wire.records import Record, decode_records, encode_batch
from tests.unit.log.support import NOW, UNVERIFIED, end_transaction, open_log, read_batches

Pair = tuple[bytes | None, bytes | None]
COMPACT = LogConfig(
    segment_bytes=1000,
    index_interval_bytes=200,
    cleanup_policy=frozenset({"compact"}),
    min_cleanable_dirty_ratio=0.0,
    delete_retention_ms=10_000,
)


class CompactedLog(LogHost):
    """One log with its own cleaner; it knows every record ever appended."""

    def __init__(
        self, directory: Path, config: LogConfig = COMPACT, files: Files | None = None
    ) -> None:
        super().__init__(files or Files(16))
        self.directory = directory
        self.clock = ManualClock(NOW)
        self.settings = CleanerSettings()
        self.given: dict[int, Pair] = {}
        self.checkpoints = 0
        self.log = open_log(directory, config, files=self.files, host=self)
        self.cleaner = LogCleaner(
            self, self.clock, InlineExecutor(), random.Random(1), lambda: self.settings
        )

    def logs(self) -> Iterator[Log]:
        return iter([self.log])

    async def checkpoint_clean_offsets(self) -> None:
        self.checkpoints += 1

    def reopen(self, *, clean: bool = False, config: LogConfig | None = None) -> None:
        """Start again, with nothing but the files and the checkpoints."""
        before = self.log
        self.files = Files(16)
        self.log = open_log(
            self.directory,
            config or before.config,
            files=self.files,
            clean=clean,
            recovery_point=before.durability.recovery_point,
            log_start_offset=before.log_start_offset,
            host=self,
            now_ms=self.clock.now_ms(),
        )
        self.log.clean_offset = before.clean_offset
        self.log.high_watermark = self.log.log_end_offset

    # -- writing -------------------------------------------------------------------------------

    def append(
        self,
        *pairs: Pair,
        codec: int = 0,
        producer: tuple[int, int, int] | None = None,
        transactional: bool = False,
        timestamps: Sequence[int] | None = None,
    ) -> AppendInfo:
        producer_id, epoch, sequence = producer or (-1, -1, -1)
        data = encode_batch(
            pairs,
            timestamp=self.clock.now_ms(),
            timestamps=timestamps,
            codec=codec,
            producer_id=producer_id,
            producer_epoch=epoch,
            base_sequence=sequence,
            transactional=transactional,
        )
        info = self._append(data)
        self.given.update(enumerate(pairs, info.first_offset))
        return info

    def end_transaction(self, producer_id: int, epoch: int, *, commit: bool) -> int:
        now_ms = self.clock.now_ms()
        return end_transaction(self.log, producer_id, epoch, commit=commit, now_ms=now_ms)

    def _append(self, data: bytes) -> AppendInfo:
        batch = Batch(memoryview(bytearray(data)))
        info = self.log.appender.append([batch], 0, self.clock.now_ms(), UNVERIFIED)
        self.log.high_watermark = self.log.log_end_offset
        return info

    def roll(self) -> None:
        """Begin a new segment, so that what is there can be compacted."""
        self.log.appender.roll(self.log.log_end_offset, self.clock.now_ms())
        self.log.durability.sync()

    async def compact(self) -> int:
        self.log.durability.sync()
        return await self.cleaner.run_once()

    # -- reading -------------------------------------------------------------------------------

    def batches(self) -> list[Batch]:
        return read_batches(self.log)

    def records(self) -> list[Record]:
        return [
            record
            for batch in self.batches()
            if not batch.is_control
            for record in decode_records(batch)
        ]

    def pairs(self) -> list[Pair]:
        return [(record.key, record.value) for record in self.records()]

    def check(self, *, without_tombstones: bool = True) -> None:
        """Nothing needed is lost, nothing is moved or changed, and it can be read to the end."""
        newest: dict[bytes | None, tuple[int, bytes | None]] = {}
        for offset, (key, value) in self.given.items():
            newest[key] = offset, value
        found: dict[bytes | None, tuple[int, bytes | None]] = {}
        last = -1
        for batch in self.batches():
            assert batch.crc_ok()
            assert batch.base_offset > last or batch.base_offset == 0
            last = batch.last_offset
            for record in () if batch.is_control else decode_records(batch):
                assert self.given[record.offset] == (record.key, record.value)
                found[record.key] = record.offset, record.value
        missing = {key for key, state in newest.items() if found.get(key) != state}
        if without_tombstones:
            # A key whose tombstone was removed has no older record either.
            missing = {key for key in missing if newest[key][1] is not None or key in found}
        assert not missing
        self.check_segments()

    def check_segments(self) -> None:
        """No gap between segments, and indexes that point to their batches."""
        segments = self.log.segments
        for segment, following in pairwise(segments):
            batches = [header for header, _ in segment.headers(0, segment.size)]
            assert batches[-1].next_offset == following.base_offset
            assert segment.offset_index(block=True).is_sane()
            assert segment.time_index(block=True).is_sane()
            for slot in range(len(segment.offset_index(block=True))):
                relative, position = segment.offset_index(block=True).at(slot)
                header, _ = next(segment.headers(position, segment.size))
                assert header.last_offset == segment.base_offset + relative
