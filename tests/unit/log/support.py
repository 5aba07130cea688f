"""Batches, logs and failing disks for the tests of the local log."""

from __future__ import annotations

import errno
from collections.abc import Callable, Sequence
from pathlib import Path

from skylog.log.config import LogConfig
from skylog.log.files import Descriptor, Files
from skylog.log.host import LogHost
from skylog.log.log import Log
from skylog.log.producers import Marker, TransactionEnd
from skylog.log.recovery import Checkpointed
from skylog.log.verification import Origin
from skylog.wire.batch import Batch, split_batches
from skylog.wire.buffers import Buffer
from skylog.wire.records import decode_records, encode_batch

NOW = 1_700_000_000_000
# A client whose transactions are not verified.
UNVERIFIED = Origin(is_verified=False)


def batch(
    *values: bytes,
    timestamp: int = NOW,
    timestamps: Sequence[int] | None = None,
    producer: tuple[int, int, int] | None = None,
    codec: int = 0,
    transactional: bool = False,
) -> Batch:
    """A client's batch; ``producer`` is (id, epoch, base sequence)."""
    producer_id, epoch, sequence = producer or (-1, -1, -1)
    data = encode_batch(
        [(None, value) for value in values],
        timestamp=timestamp,
        timestamps=timestamps,
        codec=codec,
        producer_id=producer_id,
        producer_epoch=epoch,
        base_sequence=sequence,
        transactional=transactional,
    )
    return Batch(memoryview(bytearray(data)))


def open_log(
    directory: Path,
    config: LogConfig | None = None,
    *,
    files: Files | None = None,
    clean: bool = False,
    recovery_point: int = 0,
    log_start_offset: int = 0,
    now_ms: int = NOW,
    host: LogHost | None = None,
) -> Log:
    host = host or LogHost(files or Files(16))
    known = Checkpointed(clean, recovery_point, log_start_offset)
    return Log.open(("topic", 0), str(directory), host, config or LogConfig(), now_ms, known)


def end_transaction(
    log: Log, producer_id: int, epoch: int = 0, *, commit: bool, now_ms: int = NOW
) -> int:
    """Write the marker; returns its offset."""
    end = TransactionEnd(producer_id, epoch, Marker(0, commit))
    info = log.appender.append_marker(end, 0, now_ms)
    log.high_watermark = log.log_end_offset
    return info.first_offset


def fill(log: Log, values: Sequence[bytes], *, epoch: int = 0, now_ms: int = NOW) -> None:
    """One batch per value, committed."""
    for value in values:
        log.appender.append([batch(value, timestamp=now_ms)], epoch, now_ms)
    log.high_watermark = log.log_end_offset


def read_batches(log: Log, offset: int | None = None, max_bytes: int = 1 << 20) -> list[Batch]:
    """Everything from ``offset`` on, read as a consumer would."""
    at = log.log_start_offset if offset is None else offset
    found: list[Batch] = []
    while at < log.log_end_offset:
        info = log.reader.read(at, max_bytes, log.log_end_offset, min_one=True, block=True)
        batches = list(split_batches(info.buffer))
        assert batches, f"nothing at {at} in {log}"
        found += batches
        at = batches[-1].next_offset
    return found


def read_values(log: Log, offset: int | None = None) -> list[tuple[int, bytes | None]]:
    start = log.log_start_offset if offset is None else offset
    return [
        (record.offset, record.value)
        for found in read_batches(log, offset)
        for record in decode_records(found)
        if record.offset >= start
    ]


class FaultyFiles(Files):
    """Fails the calls that a test picks."""

    def __init__(self) -> None:
        super().__init__(16)
        self.fail: Callable[[str, str], int | None] = lambda call, path: None
        self.bytes_left: int | None = None
        self.calls: list[tuple[str, str]] = []

    def _called(self, call: str, path: str) -> None:
        self.calls.append((call, path))
        code = self.fail(call, path)
        if code is not None:
            raise OSError(code, "injected", path)

    def _path_of(self, descriptor: Descriptor) -> str:
        known = {id(found): path for path, found in self._table.items()}
        return known.get(id(descriptor), "")

    def open(self, path: str, flags: int) -> int:
        self._called("open", path)
        return super().open(path, flags)

    def pwritev(self, descriptor: Descriptor, buffers: Sequence[Buffer], position: int) -> int:
        self._called("write", self._path_of(descriptor))
        if self.bytes_left is None:
            return super().pwritev(descriptor, buffers, position)
        data = b"".join(buffers)[: self.bytes_left]
        if not data:
            raise OSError(errno.ENOSPC, "no space left")
        self.bytes_left -= len(data)
        return super().pwritev(descriptor, [data], position)

    def preadv(self, descriptor: Descriptor, buffer: Buffer, position: int, *, block: bool) -> int:
        self._called("read" if block else "peek", self._path_of(descriptor))
        return super().preadv(descriptor, buffer, position, block=block)

    def fsync(self, descriptor: Descriptor) -> None:
        self._called("fsync", self._path_of(descriptor))
        super().fsync(descriptor)

    def truncate(self, path: str, size: int) -> None:
        self._called("truncate", path)
        super().truncate(path, size)

    def rename(self, source: str, target: str) -> None:
        self._called("rename", source)
        super().rename(source, target)
