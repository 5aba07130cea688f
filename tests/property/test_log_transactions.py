"""Random transactions in a local log, with crashes, truncation and retention, against a list.

The model keeps every batch and computes each time from the beginning what is stable and what was
aborted; the log must return the same from its own state.
"""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import NamedTuple

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from skylog.log.config import LogConfig
from skylog.log.host import LogHost
from skylog.log.log import Log
from skylog.log.producers import Marker, TransactionEnd
from skylog.log.recovery import Checkpointed
from skylog.wire.batch import split_batches
from tests.property.test_log_histories import DurableFiles
from tests.unit.log.support import NOW, UNVERIFIED, batch

SETTLED = settings(max_examples=60, stateful_step_count=50, deadline=None)
PRODUCERS = st.integers(0, 3)


class Entry(NamedTuple):
    """A batch of the log: ``commits`` for a marker, None for records."""

    first: int
    last: int
    producer: int
    epoch: int
    commits: bool | None


class Aborted(NamedTuple):
    producer: int
    first: int
    last: int


class Truth:
    """What follows from the batches alone."""

    def __init__(self, entries: list[Entry]) -> None:
        self.open: dict[int, int] = {}
        self.aborted: list[Aborted] = []
        for entry in entries:
            if entry.producer < 0:
                continue
            if entry.commits is None:
                self.open.setdefault(entry.producer, entry.first)
                continue
            first = self.open.pop(entry.producer, None)
            if first is not None and not entry.commits:
                self.aborted.append(Aborted(entry.producer, first, entry.first))


class LogTransactions(RuleBasedStateMachine):
    @initialize(per_segment=st.integers(2, 8), interval=st.sampled_from([0, 100, 4096]))
    def begin(self, per_segment: int, interval: int) -> None:
        self.root = Path(tempfile.mkdtemp())
        self.directory = self.root / "topic-0"
        self.config = LogConfig(
            segment_bytes=per_segment * 120,
            index_interval_bytes=interval,
            retention_ms=-1,
            file_delete_delay_ms=0,
        )
        self.entries: list[Entry] = []
        self.point = 0
        self.files = DurableFiles()
        self.log = self._open(clean=False)

    def teardown(self) -> None:
        if hasattr(self, "root"):
            shutil.rmtree(self.root)

    def _open(self, *, clean: bool, start: int = 0) -> Log:
        host, known = LogHost(self.files), Checkpointed(clean, self.point, start)
        log = Log.open(("topic", 0), str(self.directory), host, self.config, NOW, known)
        log.high_watermark = log.log_end_offset
        return log

    def _note(self, first: int, producer: int, epoch: int, commits: bool | None = None) -> None:
        last = self.log.log_end_offset - 1
        self.entries.append(Entry(first, last, producer, epoch, commits))
        self.log.high_watermark = self.log.log_end_offset

    def _epoch(self, producer: int) -> int:
        return max((e.epoch for e in self.entries if e.producer == producer), default=0)

    def _cut(self, end: int) -> None:
        self.entries = [entry for entry in self.entries if entry.last < end]

    def _loaded(self) -> None:
        """As in Kafka, a log that is empty when it is loaded knows no producers."""
        self._cut(self.log.log_end_offset)
        if not self.log.size:
            self.entries.clear()

    # -- actions -------------------------------------------------------------------------------

    @rule(producer=PRODUCERS, count=st.integers(1, 3))
    def write(self, producer: int, count: int) -> None:
        # Without sequences, as coordinators write offsets; another test covers sequences.
        epoch = self._epoch(producer)
        sent = batch(*[b"v"] * count, producer=(producer, epoch, -1), transactional=True)
        origin = UNVERIFIED.__class__(is_client=False, is_verified=False)
        info = self.log.appender.append([sent], 1, NOW, origin)
        self._note(info.first_offset, producer, epoch)

    @rule()
    def write_plain(self) -> None:
        info = self.log.appender.append([batch(b"plain")], 1, NOW)
        self._note(info.first_offset, -1, -1)

    @rule(producer=PRODUCERS, commits=st.booleans(), grows=st.booleans())
    def end(self, producer: int, commits: bool, grows: bool) -> None:
        epoch = self._epoch(producer) + grows
        end = TransactionEnd(producer, epoch, Marker(0, commits))
        info = self.log.appender.append_marker(end, 1, NOW)
        self._note(info.first_offset, producer, epoch, commits)

    @rule()
    def sync(self) -> None:
        self.log.durability.sync()
        self.point = self.log.durability.recovery_point

    @rule(share=st.floats(0, 1))
    def truncate(self, share: float) -> None:
        start = self.log.log_start_offset
        offset = start + round(share * (self.log.log_end_offset - start))
        cuts = offset < self.log.log_end_offset
        self.log.truncate_to(offset)
        self.point = min(self.point, self.log.log_end_offset)
        if cuts:
            self._loaded()
        self.log.high_watermark = self.log.log_end_offset

    @rule(share=st.floats(0, 1))
    def retain(self, share: float) -> None:
        self.sync()
        start = self.log.log_start_offset
        self.log.trimming.delete_records_before(
            start + round(share * (self.log.log_end_offset - start))
        )
        self.log.trimming.delete_old_segments(NOW)

    @rule()
    def restart(self) -> None:
        start = self.log.log_start_offset
        self.log.close()
        self.point = self.log.durability.recovery_point
        self.log = self._open(clean=True, start=start)
        self._loaded()

    @rule(data=st.data())
    def crash(self, data: st.DataObject) -> None:
        start = self.log.log_start_offset
        self.files.crash(self.directory, data)
        self.log = self._open(clean=False, start=start)
        self._loaded()

    @rule()
    def forget(self) -> None:
        """As retention does for inactive segments."""
        for segment in self.log.segments[:-1]:
            segment.drop_indexes()

    # -- checks --------------------------------------------------------------------------------

    @invariant()
    def the_stable_offset_is_right(self) -> None:
        if not hasattr(self, "log"):
            return
        log, truth = self.log, Truth(self.entries)
        expected = log.high_watermark
        if truth.open:
            expected = max(min(truth.open.values()), log.log_start_offset)
        assert log.last_stable_offset == min(expected, log.high_watermark)
        found = {p.producer_id: p.txn_first_offset for p in log.producers}
        assert {p: first for p, first in found.items() if first >= 0} == truth.open

    @invariant()
    def the_aborted_list_is_right(self) -> None:
        if hasattr(self, "log"):
            self._compare(self.log.log_start_offset, self.log.log_end_offset)

    def _compare(self, start: int, end: int) -> None:
        found = self.log.reader.aborted_transactions(start, end, block=True)
        given = [Aborted(a.producer_id, a.first_offset, a.last_offset) for a in found]
        every = Truth(self.entries).aborted
        expected = [a for a in every if a.last >= start and a.first < end]
        # A range of equal bounds is empty, but a transaction across both may be returned.
        assert given == expected or start == end

    @rule(data=st.data())
    def read(self, data: st.DataObject) -> None:
        log, truth = self.log, Truth(self.entries)
        stable = log.last_stable_offset
        if log.log_start_offset >= stable:
            return
        offset = data.draw(st.integers(log.log_start_offset, stable - 1))
        size = data.draw(st.sampled_from([1, 150, 400, 10_000]))
        info = log.reader.read_committed(offset, size, stable, min_one=True, block=True)
        end = list(split_batches(info.buffer))[-1].next_offset
        given = [Aborted(a.producer_id, a.first_offset, a.last_offset) for a in info.aborted]
        needed = [a for a in truth.aborted if a.last >= offset and a.first < end]
        assert [a for a in given if a.first < end] == needed
        assert [a for a in truth.aborted if a in given] == given

    @rule(data=st.data())
    def search(self, data: st.DataObject) -> None:
        start = data.draw(st.integers(self.log.log_start_offset, self.log.log_end_offset))
        self._compare(start, data.draw(st.integers(start, self.log.log_end_offset)))


LogTransactions.TestCase.settings = SETTLED
test_log_transactions = LogTransactions.TestCase
