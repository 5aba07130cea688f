"""Diskless topics that are consolidated into small tiered segments, and questions about them."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from skylog.broker.assembly.diskless_engine import OBJECTS_DIRECTORY
from skylog.broker.assembly.tiered import TieredStorage
from skylog.testing import Broker
from skylog.testing.threads import NodeThread
from skylog.tiered.segments import RemoteSegment, SegmentState, TopicIdPartition
from tests import consolidating
from tests.integration.broker_client import Client, values
from tests.waiting import until

# Objects are deleted soon after they have become free; topics are consolidated when they say so.
SETTINGS: Mapping[str, str] = {
    **consolidating.SETTINGS,
    "remote.log.manager.task.retry.backoff.ms": "10",
    "remote.log.manager.task.retry.backoff.max.ms": "50",
    "diskless.metadata.topic.num.partitions": "2",
    "diskless.tiering.default": "false",
    "diskless.commit.age.max.ms": "1000",
    "diskless.coordinator.orphan.scan.grace.period.ms": "2001",
    "diskless.file.cleaner.interval.ms": "50",
    "diskless.retention.check.interval.ms": "100",
}
RECORD_BYTES = 500
# Records of a segment: one more would exceed internal.segment.bytes.
PER_SEGMENT = 5
SEGMENTED: Mapping[str, str] = {"internal.segment.bytes": "3000", "retention.ms": "-1"}
DISKLESS: Mapping[str, str] = {"diskless.enable": "true", **SEGMENTED}
CONSOLIDATING: Mapping[str, str] = {**DISKLESS, "remote.storage.enable": "true"}
LATEST, EARLIEST, WAL_START, LATEST_TIERED = -1, -2, -4, -5


def value(number: int) -> bytes:
    return b"%08d " % number + bytes(RECORD_BYTES - 9)


def number_of(found: bytes) -> int:
    return int(found[:8])


def fill(client: Client, topic: str, first: int, end: int, *, index: int = 0) -> None:
    """One batch for each record; offsets are the numbers of records."""
    for number in range(first, end):
        answer = client.produce(topic, value(number), index=index, timestamp=now_ms())
        assert (answer.error_code, answer.base_offset) == (0, number), answer


def now_ms() -> int:
    return int(time.time() * 1000)


def read_all(client: Client, topic: str, start: int, end: int, *, index: int = 0) -> None:
    """Every record from ``start`` on, once and in order; no error on the way."""
    at = start
    while at < end:
        answer = client.fetch(topic, at, index, wait_ms=1000)
        assert answer.error_code == 0, (at, answer)
        found = [number_of(one) for one in values(answer.records)]
        found = [number for number in found if number >= at]
        assert found == list(range(at, at + len(found)))
        at += len(found)


def offset(client: Client, topic: str, kind: int) -> int:
    answer = client.offset(topic, kind)
    assert answer.error_code == 0, answer
    return int(answer.offset)


def tiered_of(node: NodeThread) -> TieredStorage:
    found = node.node._services.tiered
    assert found is not None
    return found


def key_of(node: NodeThread, topic: str, index: int = 0) -> TopicIdPartition:
    found = node.node._services.image.topic(topic)
    assert found is not None
    return TopicIdPartition(found.topic_id, index)


def segments(node: NodeThread, topic: str, index: int = 0) -> list[RemoteSegment]:
    """The finished segments that a replica knows, by their first offset."""
    remote = tiered_of(node).logs.get(key_of(node, topic, index))
    if remote is None:
        return []
    found = [one for one in remote.all() if one.state is SegmentState.COPY_FINISHED]
    return sorted(found, key=lambda one: one.start_offset)


def covered(node: NodeThread, topic: str, index: int = 0) -> int:
    """The end of the finished segments, which must follow one another."""
    found = segments(node, topic, index)
    end = found[0].start_offset if found else 0
    for one in found:
        assert one.start_offset <= end, f"a gap from {end} to {one.start_offset}"
        end = max(end, one.end_offset + 1)
    return end


def wal_objects(broker: Broker) -> set[Path]:
    return set((broker.directory / OBJECTS_DIRECTORY / "wal").glob("*/*"))


def tiered_objects(broker: Broker, topic: str = "*") -> dict[str, list[Path]]:
    """The objects of tiered segments, by their suffix."""
    found: dict[str, list[Path]] = {"log": [], "indexes": [], "rsm-manifest": []}
    for path in sorted((broker.directory / "tiered-objects").glob(f"{topic}-*/*/*.*")):
        found[path.suffix[1:]].append(path)
    return found


def assembly_directories(directory: Path, topic: str, index: int = 0) -> list[Path]:
    """Each assembly of a partition has its own."""
    return list((directory / "diskless-tiering").glob(f"{topic}-{index}.*"))


def assembled(directory: Path, topic: str, index: int = 0) -> list[int]:
    """The first offsets of the segments that are being put together."""
    return sorted(
        int(path.stem)
        for found in assembly_directories(directory, topic, index)
        for path in found.glob("*.log")
    )


def until_covered(node: NodeThread, topic: str, end: int, index: int = 0) -> None:
    until(lambda: covered(node, topic, index) >= end, f"{topic}-{index} is tiered up to {end}")


def until_pruned(client: Client, topic: str, end: int) -> None:
    until(lambda: offset(client, topic, WAL_START) >= end, f"{topic} is pruned up to {end}")


@contextmanager
def consolidating_broker(directory: Path | None = None, **more: str) -> Iterator[Broker]:
    """Settings may have underscores for dots."""
    given = {name.replace("_", "."): text for name, text in more.items()}
    with Broker({**SETTINGS, **given}, directory=directory) as running:
        yield running
