"""A partition that Kafka wrote: we read it, and given its batches we write the same bytes."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from skylog.kernel.clock import ManualClock
from skylog.kernel.executor import InlineExecutor
from skylog.kernel.ids import Uuid
from skylog.log.config import LogConfig
from skylog.log.log import Log
from skylog.log.manager import LogManager
from skylog.wire.batch import split_batches
from skylog.wire.records import decode_records
from tests.unit.log.support import open_log, read_batches

GOLDEN = Path(__file__).parent / "log"
PARTITION = GOLDEN / "written-by-kafka-0"
CONFIG = LogConfig(segment_ms=1000, segment_bytes=1 << 20, index_interval_bytes=200)
# Expiry is not tested here: the files are old.
THEN = 1_700_000_000_000
CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
COPIED = ("*.log", "*.index", "*.timeindex", "*.snapshot", "leader-epoch-checkpoint")


@pytest.fixture(params=["clean", "unclean"])
def log(tmp_path: Path, request: pytest.FixtureRequest) -> Log:
    directory = shutil.copytree(PARTITION, tmp_path / PARTITION.name)
    return open_log(directory, CONFIG, clean=request.param == "clean", now_ms=THEN)


def contents(directory: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for name in COPIED for path in directory.glob(name)}


def test_every_record_is_there(log: Log) -> None:
    records = [record for batch in read_batches(log) for record in decode_records(batch)]
    assert [
        (record.offset, record.timestamp, record.key, record.value, record.headers)
        for record in records
    ] == [
        (n, THEN + 40 * n, b"k%d" % n, f"value {n} of {CODECS[n // 20]}".encode(), (("h", b"x"),))
        for n in range(100)
    ]


def test_state_is_there(log: Log) -> None:
    assert (log.log_start_offset, log.log_end_offset, log.latest_epoch) == (0, 100, 0)
    assert log.companions.topic_id == Uuid.parse("6oNDCLMSS1CwHP_4dl16hg")
    assert [s.base_offset for s in log.segments] == [0, 30, 60, 90]
    assert sorted(p.last_offset for p in log.producers) == [19, 39, 59, 79, 99]
    assert all(p.last_sequence == 19 for p in log.producers)


def test_every_time_is_found(log: Log) -> None:
    for n in range(100):
        assert log.reader.offset_for_timestamp(THEN + 40 * n, block=True) == (THEN + 40 * n, n, 0)
        found = log.reader.offset_for_timestamp(THEN + 40 * n - 39, block=True)
        assert found == (THEN + 40 * n, n, 0)
    assert log.reader.offset_for_timestamp(THEN + 40 * 99 + 1, block=True) is None
    assert log.reader.max_timestamp_offset(block=True) == (THEN + 40 * 99, 99, 0)


def test_rebuilt_indexes_are_kafkas(tmp_path: Path) -> None:
    directory = shutil.copytree(PARTITION, tmp_path / PARTITION.name)
    for path in directory.glob("*index"):
        path.write_bytes(b"broken")
    open_log(directory, CONFIG, now_ms=THEN)
    assert contents(directory) == contents(PARTITION)


def test_the_same_batches_make_the_same_files(tmp_path: Path) -> None:
    log = open_log(tmp_path / "ours", CONFIG, now_ms=THEN)
    for path in sorted(PARTITION.glob("*.log")):
        for batch in split_batches(path.read_bytes()):
            log.appender.append([batch], 0, THEN)
    log.close()
    assert contents(tmp_path / "ours") == contents(PARTITION)


async def test_the_whole_directory_is_taken_over(tmp_path: Path) -> None:
    root = shutil.copytree(GOLDEN, tmp_path / "logs")
    manager = LogManager([str(root)], ManualClock(THEN), InlineExecutor())
    await manager.start()
    assert manager.previous_broker_epoch == 15
    [log] = manager.logs()
    assert (log.high_watermark, log.durability.recovery_point) == (100, 100)
    await manager.close(15)
    names = [
        "recovery-point-offset-checkpoint",
        "replication-offset-checkpoint",
        "log-start-offset-checkpoint",
        ".kafka_cleanshutdown",
        "written-by-kafka-0/partition.metadata",
    ]
    for name in names:
        assert (root / name).read_bytes() == (GOLDEN / name).read_bytes(), name
