"""Readers on threads while the log is appended to, rolled and trimmed."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest

from skylog.kernel.errors import ErrorCode, KafkaError
from skylog.log.config import LogConfig
from skylog.log.log import Log
from skylog.log.reader import MovedToRemote
from skylog.wire.batch import split_batches
from tests.unit.log.support import NOW, batch, open_log

APPENDS = 1500


class Reader(threading.Thread):
    """Follows the log in small steps, and checks every step."""

    def __init__(self, log: Log, max_bytes: int) -> None:
        super().__init__()
        self.log = log
        self.max_bytes = max_bytes
        self.offset = 0
        self.skipped = 0
        self.fault: BaseException | None = None

    def run(self) -> None:
        try:
            while self.offset < 2 * APPENDS:
                self._step()
        except BaseException as fault:  # noqa: BLE001 — told by the test
            self.fault = fault

    def _step(self) -> None:
        limit = self.log.high_watermark
        try:
            info = self.log.reader.read(
                self.offset, self.max_bytes, limit, min_one=True, block=True
            )
        except KafkaError as error:
            is_remote = self.log.config.remote
            assert isinstance(error, MovedToRemote) == is_remote
            assert is_remote or error.code is ErrorCode.OFFSET_OUT_OF_RANGE
            start = self.log.local_log_start_offset
            assert start > self.offset
            self.skipped += start - self.offset
            self.offset = start
            return
        found = list(split_batches(info.buffer))
        if not found:
            return
        assert found[0].base_offset <= self.offset <= found[0].last_offset
        assert found[-1].last_offset < limit
        for before, after in pairwise(found):
            assert after.base_offset == before.next_offset
        self.offset = found[-1].next_offset


@pytest.fixture(autouse=True)
def _many_switches() -> Iterator[None]:
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    yield
    sys.setswitchinterval(before)


@pytest.mark.parametrize("is_remote", [False, True])
def test_readers_never_see_too_much_nor_the_wrong_place(tmp_path: Path, is_remote: bool) -> None:
    """Of what is not here any more they learn whether it is in the object store."""
    config = LogConfig(
        segment_bytes=3000, index_interval_bytes=100, retention_bytes=6000, remote=is_remote
    )
    log = open_log(tmp_path, config)
    readers = [Reader(log, max_bytes) for max_bytes in (1, 300, 100_000)]
    for reader in readers:
        reader.start()
    for number in range(APPENDS):
        log.appender.append([batch(b"%d" % number, b"x" * (number % 97))], 0, NOW)
        log.high_watermark = log.log_end_offset
        if number % 50 == 0:
            if is_remote:
                log.durability.sync_rolled()
                log.remote_moved(log.segments[-1].base_offset - 1, log.segments[-1].base_offset)
            log.trimming.delete_old_segments(NOW)
            for segment in log.segments[:-1]:
                segment.drop_indexes()
    for reader in readers:
        reader.join(60)
        assert reader.fault is None, repr(reader.fault)
        assert reader.offset == 2 * APPENDS
    assert (log.log_start_offset > 0, log.local_log_start_offset > 0) == (not is_remote, True)
