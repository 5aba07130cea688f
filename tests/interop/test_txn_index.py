"""Kafka's log and ours on the same directory: stable offset, aborted lists, indexes, snapshots."""

from __future__ import annotations

import random
import re
import shutil
import subprocess
import time
from pathlib import Path

import pytest

from skylog.log.checkpoints import decode_snapshot
from skylog.log.config import LogConfig
from skylog.log.log import Log
from skylog.log.producers import Marker, TransactionEnd
from skylog.wire.batch import split_batches
from tests.interop.support import HERE, java
from tests.unit.log.compaction_support import CompactedLog
from tests.unit.log.support import UNVERIFIED, batch, fill, open_log

pytestmark = pytest.mark.interop

# Kafka's log uses the real clock, and expires silent producers.
NOW = int(time.time() * 1000)
SEGMENT_BYTES = 1200
CONFIG = LogConfig(segment_bytes=SEGMENT_BYTES, index_interval_bytes=100)


def ran(command: list[str]) -> str:
    done = subprocess.run(command, capture_output=True, text=True, timeout=110, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def kafka(*arguments: str) -> list[str]:
    """What Kafka's log finds in a directory."""
    source = str(HERE / "java" / "LogJudge.java")
    lines = ran(java(source, *arguments, level="ERROR")).splitlines()
    return [line for line in lines if line.split(" ")[0] in ("end", "stable", "producer", "read")]


def skylog(log: Log, reads: list[str]) -> list[str]:
    """What our log finds in it."""
    log.high_watermark = log.log_end_offset
    told = [f"end {log.log_end_offset}", f"stable {log.last_stable_offset}"]
    told += sorted(
        f"producer {p.producer_id} {p.epoch} {p.last_sequence} {p.coordinator_epoch}"
        f" {p.txn_first_offset}"
        for p in log.producers
    )
    for read in reads:
        offset, size = map(int, read.split(":"))
        found = log.reader.read_committed(
            offset, size, log.last_stable_offset, min_one=True, block=True
        )
        end = [offset, *(one.next_offset for one in split_batches(found.buffer))][-1]
        aborted = [f" {one.producer_id}:{one.first_offset}" for one in found.aborted]
        told.append(f"read {read} {end}" + "".join(aborted))
    return told


def same(theirs: list[str], ours: list[str]) -> None:
    """Equal for everything that both have read.

    Kafka may list one more transaction that begins after a read: it takes the entry of its offset
    index after the read, and sometimes the next one. We read more empty batches of a compacted log
    at once.
    """
    assert len(theirs) == len(ours)
    for their, our in zip(theirs, ours, strict=True):
        if not our.startswith("read"):
            assert their == our
            continue
        assert their.split(" ")[1] == our.split(" ")[1]
        end = min(int(line.split(" ")[2]) for line in (their, our))
        assert told_before(their, end) == told_before(our, end)


def told_before(line: str, end: int) -> list[str]:
    return [one for one in line.split(" ")[3:] if int(one.split(":")[1]) < end]


def history(log: Log, seed: int) -> None:
    """Producers with open, committed and aborted transactions side by side, of both versions."""
    rng = random.Random(seed)
    epochs, sequences = [0] * 6, [0] * 6
    is_open = [False] * 6
    for _ in range(400):
        producer = rng.randrange(6)
        if is_open[producer] and rng.random() < 0.4:
            grows = producer % 2 == 1
            epochs[producer] += grows
            sequences[producer] *= not grows
            end = TransactionEnd(
                producer, epochs[producer], Marker(rng.randrange(3, 4), rng.random() < 0.4)
            )
            log.appender.append_marker(end, 0, NOW)
            is_open[producer] = False
        elif rng.random() < 0.2:
            fill(log, [b"plain"], now_ms=NOW)
        else:
            count = rng.randint(1, 3)
            values = [b"v" * rng.randint(1, 40) for _ in range(count)]
            place = producer, epochs[producer], sequences[producer]
            sent = batch(*values, producer=place, transactional=True, timestamp=NOW)
            log.appender.append([sent], 0, NOW, UNVERIFIED)
            sequences[producer] += count
            is_open[producer] = True
        log.high_watermark = log.log_end_offset


def some_reads(log: Log) -> list[str]:
    rng = random.Random(9)
    log.high_watermark = log.log_end_offset
    stable = log.last_stable_offset
    return [f"{rng.randrange(stable)}:{rng.choice([1, 150, 400, 5000])}" for _ in range(60)]


def indexes(directory: Path) -> dict[str, bytes]:
    """An empty file counts as none."""
    found = {path.name: path.read_bytes() for path in directory.glob("*.txnindex")}
    return {name: content for name, content in found.items() if content}


def snapshots(directory: Path) -> dict[str, list[str]]:
    return {
        path.name: sorted(map(repr, decode_snapshot(path.read_bytes())))
        for path in directory.glob("*.snapshot")
    }


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Closed, as after a clean shutdown."""
    found = tmp_path_factory.mktemp("ours") / "topic-0"
    log = open_log(found, CONFIG)
    history(log, 4)
    assert len(log.segments) > 10
    assert log.last_stable_offset < log.log_end_offset
    log.close()
    return found


@pytest.mark.parametrize("how", ["clean", "crashed"])
def test_kafka_sees_in_our_directory_what_we_see(directory: Path, tmp_path: Path, how: str) -> None:
    ours = open_log(directory, CONFIG, clean=True)
    reads = some_reads(ours)
    theirs = tmp_path / "topic-0"
    shutil.copytree(directory, theirs)
    expected = skylog(ours, reads)
    assert sum(len(line.split(" ")) > 3 for line in expected if line.startswith("read")) > 20
    same(kafka("open", str(SEGMENT_BYTES), str(theirs), how, "0", *reads), expected)
    # After a crash it has rebuilt the indexes from the batches.
    assert indexes(theirs) == indexes(directory)


def test_kafka_writes_the_same_indexes_and_snapshots(directory: Path, tmp_path: Path) -> None:
    ours = open_log(directory, CONFIG, clean=True)
    reads = some_reads(ours)
    theirs = tmp_path / "topic-0"
    told = kafka("replay", str(SEGMENT_BYTES), str(directory), str(theirs), *reads)
    same(told, skylog(ours, reads))
    assert indexes(theirs) == indexes(directory)
    assert snapshots(theirs) == snapshots(directory)


@pytest.mark.parametrize("clean", [True, False])
def test_we_see_in_kafkas_directory_what_kafka_sees(
    directory: Path, tmp_path: Path, clean: bool
) -> None:
    theirs = tmp_path / "topic-0"
    reads = some_reads(open_log(directory, CONFIG, clean=True))
    told = kafka("replay", str(SEGMENT_BYTES), str(directory), str(theirs), *reads)
    before = indexes(theirs)
    ours = open_log(theirs, CONFIG, clean=clean)
    same(told, skylog(ours, reads))
    assert indexes(theirs) == before


def test_kafkas_tool_reads_both_files(directory: Path) -> None:
    def dump(suffix: str) -> str:
        files = ",".join(str(path) for path in sorted(directory.glob(f"*.{suffix}")))
        tool = java("org.apache.kafka.tools.DumpLogSegments", "--files", files, level="ERROR")
        return ran(tool)

    log = open_log(directory, CONFIG, clean=True)
    found = re.findall(
        r"producerId: (\d+) firstOffset: (\d+) lastOffset: (\d+) lastStableOffset: (\d+)",
        dump("txnindex"),
    )
    expected = [
        (one.producer_id, one.first_offset, one.last_offset, one.last_stable_offset)
        for segment in log.segments
        for one in segment.aborted.entries(block=True)
    ]
    assert [tuple(map(int, one)) for one in found] == expected
    assert len(expected) > 20
    began = re.findall(r"currentTxnFirstOffset: OptionalLong\[(\d+)", dump("snapshot"))
    open_now = {p.txn_first_offset for p in log.producers if p.txn_first_offset >= 0}
    assert open_now <= set(map(int, began))


async def test_kafka_sees_the_same_after_our_compaction(tmp_path: Path) -> None:
    world = CompactedLog(tmp_path / "ours" / "topic-0")
    world.clock.advance(NOW - world.clock.now_ms())
    rng = random.Random(3)
    sequences = [0] * 4
    for number in range(200):
        producer = rng.randrange(4)
        place = producer, 0, sequences[producer]
        pair = b"k%d" % rng.randrange(12), b"%d" % number
        world.append(pair, producer=place, transactional=True)
        sequences[producer] += 1
        if rng.random() < 0.5:
            world.end_transaction(producer, 0, commit=rng.random() < 0.5)
    for producer in range(4):
        world.end_transaction(producer, 0, commit=producer % 2 == 0)
    world.roll()
    before = len(world.batches())
    assert await world.compact() == 1
    assert len(world.batches()) < before
    log = world.log
    log.close()
    assert any(segment.aborted.entries(block=True) for segment in log.segments)
    theirs = tmp_path / "topic-0"
    shutil.copytree(world.directory, theirs)
    reads = some_reads(log)
    told = kafka("open", str(SEGMENT_BYTES), str(theirs), "clean", "0", *reads)
    same(told, skylog(log, reads))
