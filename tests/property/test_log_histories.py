"""Random histories of a local log, with crashes at any point, against a list of records.

A crash keeps what was synced. Of everything else any part may be lost: the end of a segment may
be missing, zeroed or garbage, and a small file that was swapped in may be empty.
"""

from __future__ import annotations

import shutil
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from skylog.log.config import LogConfig
from skylog.log.files import Descriptor, Files
from skylog.log.host import LogHost
from skylog.log.log import Log
from skylog.log.recovery import Checkpointed
from skylog.wire.batch import split_batches
from tests.unit.log.support import NOW, batch, read_values

SETTLED = settings(max_examples=60, stateful_step_count=40, deadline=None)


class DurableFiles(Files):
    """Remembers how much of each file is durable."""

    def __init__(self) -> None:
        super().__init__(8)
        self.durable: dict[str, bytes] = {}

    def fsync(self, descriptor: Descriptor) -> None:
        path = Path(f"/proc/self/fd/{descriptor.number}").resolve()
        if path.is_file():
            self.durable[str(path)] = path.read_bytes()

    def create(self, path: str) -> None:
        self.durable.pop(path, None)
        super().create(path)

    def remove(self, path: str) -> None:
        self.durable.pop(path, None)
        super().remove(path)

    def rename(self, source: str, target: str) -> None:
        self.durable[target] = self.durable.pop(source, b"")
        super().rename(source, target)

    def crash(self, directory: Path, draw: st.DataObject) -> None:
        """Leave the directory as a power failure might."""
        for path in sorted(directory.iterdir()):
            content = path.read_bytes()
            kept = self.durable.get(str(path), b"")
            if not content.startswith(kept):
                kept = content  # it was truncated since; a crash does not restore the rest here
            lost = draw.draw(st.integers(0, len(content) - len(kept)), label=path.name)
            survivor = content[: len(content) - lost]
            if lost:
                tail = draw.draw(st.sampled_from([b"", b"\0" * lost, b"\xa5" * lost]))
                survivor += tail
            if survivor != content:
                path.write_bytes(survivor)
            self.durable[str(path)] = survivor


@dataclass
class Model:
    """Every record ever appended, by offset, and which of them must be there."""

    values: list[bytes] = field(default_factory=list)
    times: list[int] = field(default_factory=list)
    # (last offset, producer, sequence after) of every batch
    batches: list[tuple[int, int, int]] = field(default_factory=list)
    start: int = 0

    def cut(self, end: int) -> None:
        del self.values[end:]
        del self.times[end:]
        self.batches = [entry for entry in self.batches if entry[0] < end]

    def next_sequence(self, producer: int) -> int:
        return next((after for _, who, after in reversed(self.batches) if who == producer), 0)


class LogHistories(RuleBasedStateMachine):
    @initialize(
        per_segment=st.integers(2, 8),
        interval=st.sampled_from([0, 100, 4096]),
    )
    def begin(self, per_segment: int, interval: int) -> None:
        self.root = Path(tempfile.mkdtemp())
        self.directory = self.root / "topic-0"
        self.config = LogConfig(
            segment_bytes=per_segment * 120,
            index_interval_bytes=interval,
            retention_ms=-1,
            file_delete_delay_ms=0,
        )
        self.model = Model()
        self.checkpointed = (0, 0)
        self.synced_end = 0
        self.files = DurableFiles()
        self.log = self._open(clean=False)

    def teardown(self) -> None:
        if hasattr(self, "root"):
            shutil.rmtree(self.root)

    def _open(self, *, clean: bool) -> Log:
        host, known = LogHost(self.files), Checkpointed(clean, *self.checkpointed)
        return Log.open(("topic", 0), str(self.directory), host, self.config, NOW, known)

    @rule(
        count=st.integers(1, 3),
        producer=st.integers(-1, 2),
        times=st.lists(st.integers(0, 50), min_size=3, max_size=3),
    )
    def append(self, count: int, producer: int, times: list[int]) -> None:
        model, log = self.model, self.log
        first = len(model.values)
        values = [b"%04d" % (first + number) for number in range(count)]
        stamps = [NOW + time for time in times[:count]]
        sequence = model.next_sequence(producer)
        placed = batch(
            *values, timestamps=stamps, producer=(producer, 0, sequence) if producer >= 0 else None
        )
        info = log.appender.append([placed], 1, NOW)
        assert (info.first_offset, info.last_offset) == (first, first + count - 1)
        model.values += values
        model.times += stamps
        if producer >= 0:
            model.batches.append((info.last_offset, producer, sequence + count))
        log.high_watermark = log.log_end_offset

    @rule()
    def sync(self) -> None:
        self.log.durability.sync()
        self.synced_end = self.log.log_end_offset

    @rule()
    def sync_rolled(self) -> None:
        self.log.durability.sync_rolled()
        self.synced_end = max(self.synced_end, self.log.segments[-1].base_offset)

    @rule()
    def checkpoint(self) -> None:
        self.checkpointed = (self.log.durability.recovery_point, self.log.log_start_offset)

    @rule(share=st.floats(0, 1))
    def delete_records(self, share: float) -> None:
        span = self.log.log_end_offset - self.log.log_start_offset
        target = self.log.log_start_offset + int(span * share)
        self.model.start = self.log.trimming.delete_records_before(target)
        assert self.model.start == target

    @rule(keep=st.integers(0, 2000))
    def retain(self, keep: int) -> None:
        self.log.config = LogConfig(
            segment_bytes=self.config.segment_bytes, retention_ms=-1, retention_bytes=keep
        )
        before = self.log.log_start_offset
        self.log.trimming.delete_old_segments(NOW)
        self.log.config = self.config
        assert self.log.log_start_offset >= before
        assert self.log.size >= min(keep, self.log.size)
        self.model.start = self.log.log_start_offset

    @rule()
    def restart(self) -> None:
        self.log.close()
        self.synced_end = self.log.log_end_offset
        self.checkpoint()
        self.log = self._open(clean=True)
        self.log.high_watermark = self.log.log_end_offset
        assert self.log.log_end_offset == len(self.model.values)
        assert self.log.log_start_offset == self.model.start

    @rule(draw=st.data())
    def lose_power_after_a_clean_shutdown(self, draw: st.DataObject) -> None:
        self.log.close()
        self.synced_end = self.log.log_end_offset
        self.checkpoint()
        self.files.crash(self.directory, draw)
        self.log = self._open(clean=True)
        self.log.high_watermark = self.log.log_end_offset
        assert self.log.log_end_offset == len(self.model.values)
        assert self.log.log_start_offset == self.model.start

    @rule(draw=st.data())
    def crash(self, draw: st.DataObject) -> None:
        self.files.crash(self.directory, draw)
        self.log = self._open(clean=False)
        log, model = self.log, self.model
        end = log.log_end_offset
        assert max(self.synced_end, self.checkpointed[1]) <= end <= len(model.values)
        # The log start may fall back to its checkpoint, but not further.
        assert self.checkpointed[1] <= log.log_start_offset <= max(model.start, end)
        model.cut(end)
        model.start = log.log_start_offset
        log.high_watermark = end
        # What the crash left is durable now.
        log.durability.sync()
        self.synced_end = end
        self.checkpointed = (min(self.checkpointed[0], end), self.checkpointed[1])

    @invariant()
    def holds_the_models_records(self) -> None:
        if not hasattr(self, "log"):
            return
        model, log = self.model, self.log
        assert (log.log_start_offset, log.log_end_offset) == (model.start, len(model.values))
        assert read_values(log) == list(enumerate(model.values))[model.start :]

    @invariant()
    def remembers_the_producers(self) -> None:
        if not hasattr(self, "log"):
            return
        known = {entry.producer_id: entry.last_sequence + 1 for entry in self.log.producers}
        for last, producer, _ in self.model.batches:
            if last >= self.model.start:
                assert known[producer] == self.model.next_sequence(producer)

    @rule(time=st.integers(-1, 51))
    def search_by_time(self, time: int) -> None:
        model, target = self.model, NOW + time
        expected = next(
            (
                (model.times[offset], offset, 1)
                for offset in range(model.start, len(model.times))
                if model.times[offset] >= target
            ),
            None,
        )
        assert self.log.reader.offset_for_timestamp(target, block=True) == expected

    @rule(share=st.floats(0, 1), limit=st.floats(0, 1), max_bytes=st.integers(0, 400))
    def read_anywhere(self, share: float, limit: float, max_bytes: int) -> None:
        log = self.log
        offset = log.log_start_offset + int(share * (log.log_end_offset - log.log_start_offset))
        bound = log.log_start_offset + int(limit * (log.log_end_offset - log.log_start_offset))
        for min_one in (False, True):
            info = log.reader.read(offset, max_bytes, bound, min_one=min_one, block=True)
            found = list(split_batches(info.buffer))
            if found:
                assert found[0].base_offset <= offset <= found[0].last_offset
                assert found[-1].last_offset < bound
                assert len(info.buffer) <= max_bytes or (min_one and len(found) == 1)


TestLogHistories = LogHistories.TestCase
TestLogHistories.settings = SETTLED
