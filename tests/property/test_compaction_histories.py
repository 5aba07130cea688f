"""Random histories of a compacted log, with kills and power failures, against all records given.

Whatever happens, the latest record of each key is there, at its offset and unchanged; only older
records may be gone. A power failure loses only what was not synced, and then an older value that
was synced must still be there.
"""

from __future__ import annotations

import asyncio
import contextlib
import shutil
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from skylog.log.cleaner import CleanerSettings
from skylog.log.files import Descriptor, Files
from skylog.log.offset_map import SLOT_BYTES
from skylog.wire.buffers import Buffer
from tests.unit.log.compaction_support import COMPACT, CompactedLog, Pair

SETTLED = settings(max_examples=40, stateful_step_count=30, deadline=None)
KEYS = [b"k%d" % number for number in range(6)]
HORIZON_MS = 1000


class Died(BaseException):
    """As after kill −9."""


class RandomlyMortalFiles(Files):
    """Crashes before a change when told to."""

    def __init__(self) -> None:
        super().__init__(8)
        self.left: int | None = None

    def _change(self) -> None:
        if self.left is not None:
            if self.left <= 0:
                raise Died
            self.left -= 1

    def create(self, path: str) -> None:
        self._change()
        super().create(path)

    def pwritev(self, descriptor: Descriptor, buffers: Sequence[Buffer], position: int) -> int:
        self._change()
        return super().pwritev(descriptor, buffers, position)

    def fsync(self, descriptor: Descriptor) -> None:
        self._change()

    def rename(self, source: str, target: str) -> None:
        self._change()
        super().rename(source, target)

    def remove(self, path: str) -> None:
        self._change()
        super().remove(path)


class CompactionHistory(RuleBasedStateMachine):
    @initialize(segment_bytes=st.sampled_from([300, 1000, 5000]), slots=st.sampled_from([5, 1000]))
    def begin(self, segment_bytes: int, slots: int) -> None:
        self.directory = Path(tempfile.mkdtemp())
        config = replace(COMPACT, segment_bytes=segment_bytes, delete_retention_ms=HORIZON_MS)
        self.world = CompactedLog(self.directory / "topic-0", config, RandomlyMortalFiles())
        self.world.settings = CleanerSettings(dedupe_buffer_bytes=slots * SLOT_BYTES)
        self.sequences: dict[int, int] = {}

    def teardown(self) -> None:
        if hasattr(self, "directory"):
            shutil.rmtree(self.directory)

    @rule(
        pairs=st.lists(
            st.tuples(st.sampled_from(KEYS), st.none() | st.binary(max_size=60)),
            min_size=1,
            max_size=4,
        ),
        codec=st.sampled_from([0, 0, 0, 2, 4]),
        producer=st.integers(-1, 2),
    )
    def append(self, pairs: list[Pair], codec: int, producer: int) -> None:
        if producer < 0:
            self.world.append(*pairs, codec=codec)
            return
        sequence = self.sequences.get(producer, 0)
        self.world.append(*pairs, codec=codec, producer=(producer, 0, sequence))
        self.sequences[producer] = sequence + len(pairs)

    @rule()
    def roll(self) -> None:
        self.world.roll()

    @rule(ms=st.integers(1, HORIZON_MS))
    def time_passes(self, ms: int) -> None:
        self.world.clock.advance(ms)

    @rule()
    def compact(self) -> None:
        self.run()

    @rule(changes=st.integers(0, 80), clean_offset_lost=st.booleans())
    def killed_while_compacting(self, changes: int, clean_offset_lost: bool) -> None:
        files = self.world.files
        assert isinstance(files, RandomlyMortalFiles)
        files.left = changes
        with contextlib.suppress(Died):
            self.run()
        self.restart(clean_offset_lost)

    @rule(clean_offset_lost=st.booleans())
    def killed(self, clean_offset_lost: bool) -> None:
        self.restart(clean_offset_lost)

    @rule(data=st.data())
    def power_fails(self, data: st.DataObject) -> None:
        """The last segment loses some or all of what was not synced."""
        log = self.world.log
        active = log.segments[-1]
        safe = active.position_of(log.durability.recovery_point, block=True) or active.size
        if log.durability.recovery_point < active.base_offset:
            return
        size = data.draw(st.integers(safe, active.size), label="bytes that survive")
        with Path(active.log_path).open("r+b") as file:
            file.truncate(size)
        self.restart(clean_offset_lost=False)
        end = self.world.log.log_end_offset
        self.world.given = {at: pair for at, pair in self.world.given.items() if at < end}
        producers = {one.producer_id: one for one in self.world.log.producers}
        for producer in self.sequences:
            known = producers.get(producer)
            self.sequences[producer] = known.last_sequence + 1 if known else 0

    @rule()
    def stopped(self) -> None:
        self.world.log.close()
        self.world.reopen(clean=True)
        self.keep_mortal()

    def restart(self, clean_offset_lost: bool) -> None:
        if clean_offset_lost:
            self.world.log.clean_offset = 0
        self.world.reopen()
        self.keep_mortal()

    def keep_mortal(self) -> None:
        files = RandomlyMortalFiles()
        self.world.files = self.world.log.files = files
        for segment in self.world.log.segments:
            segment._files = files
            for index in (segment._index, segment._time_index):
                if index is not None:
                    index._files = files

    def run(self) -> None:
        asyncio.run(self.world.cleaner.run_once())
        assert not self.world.cleaner.stats.uncleanable

    @invariant()
    def all_that_counts_is_there(self) -> None:
        if not hasattr(self, "world"):
            return
        self.world.check()
        producers = {one.producer_id: one for one in self.world.log.producers}
        for producer, sequence in self.sequences.items():
            if sequence:
                assert producers[producer].last_sequence == sequence - 1


CompactionHistory.TestCase.settings = SETTLED
TestCompactionHistory = CompactionHistory.TestCase
