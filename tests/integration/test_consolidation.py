"""Diskless topics on a real broker: their WAL batches become segments in the tiered store."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from skylog.broker.assembly.tiered import TieredStorage
from skylog.broker.tiered.assembly_source import AssemblySource
from skylog.testing import Broker
from skylog.tiered.segments import RemoteSegment, SegmentState, TopicIdPartition
from skylog.wire.batch import split_batches
from tests.consolidating import CONSOLIDATING, consolidating_broker
from tests.integration.broker_client import Client
from tests.integration.tiered_topics import PER_SEGMENT, fill
from tests.waiting import until


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    # What is copied stays in the WAL, too: the tests compare both.
    keep = {"diskless_tiering_prune_interval_ms": "3600000"}
    with consolidating_broker(tmp_path_factory.mktemp("bucket"), **keep) as running:
        yield running


@pytest.fixture
def client(broker: Broker) -> Iterator[Client]:
    with Client(broker.bootstrap) as connected:
        yield connected


def tiered(broker: Broker) -> TieredStorage:
    found = broker.node._services.tiered
    assert found is not None
    return found


def key_of(broker: Broker, topic: str, index: int = 0) -> TopicIdPartition:
    found = broker.node.image.topic(topic)
    assert found is not None
    return TopicIdPartition(found.topic_id, index)


def source_of(broker: Broker, topic: str, index: int = 0) -> AssemblySource:
    found = tiered(broker).consolidating.get(key_of(broker, topic, index))
    assert found is not None
    return found


def finished(broker: Broker, topic: str, index: int = 0) -> list[RemoteSegment]:
    remote = tiered(broker).logs.get(key_of(broker, topic, index))
    if remote is None:
        return []
    return [one for one in remote.all() if one.state is SegmentState.COPY_FINISHED]


def stored(broker: Broker, segment: RemoteSegment, suffix: str) -> Path:
    """An object of a segment, where Aiven's plugin would look for it."""
    bucket = Path(broker.node.settings.diskless.storage_url.removeprefix("file://"))
    topic, key = segment.topic, segment.partition
    name = f"{segment.start_offset:020d}-{segment.id}.{suffix}"
    return bucket / "tiered" / f"{topic}-{key.topic_id}" / str(key.partition_index) / name


def served(client: Client, topic: str, start: int, end: int, index: int = 0) -> bytes:
    """The bytes of the batches as a consumer gets them."""
    found = b""
    while start < end:
        answer = client.fetch(topic, start, index, wait_ms=1000)
        assert answer.error_code == 0, answer
        for one in split_batches(answer.records):
            if start <= one.base_offset < end:
                found += bytes(one.buffer)
                start = one.next_offset
    return found


def until_copied(broker: Broker, topic: str, end: int, index: int = 0) -> list[RemoteSegment]:
    def is_copied() -> bool:
        found = finished(broker, topic, index)
        return bool(found) and found[-1].end_offset + 1 >= end

    until(is_copied, f"{topic} is not copied up to {end}")
    return finished(broker, topic, index)


def test_segments_are_what_consumers_read(broker: Broker, client: Client) -> None:
    topic = "whole"
    client.create(topic, 1, CONSOLIDATING)
    fill(client, topic, 0, 4 * PER_SEGMENT + 2)
    segments = until_copied(broker, topic, 4 * PER_SEGMENT)
    assert [one.start_offset for one in segments] == [0, 5, 10, 15]
    assert [one.epochs for one in segments] == [((0, start),) for start in (0, 5, 10, 15)]
    assert {one.copier_epoch for one in segments} == {0}
    for one in segments:
        assert stored(broker, one, "rsm-manifest").is_file()
        assert stored(broker, one, "indexes").is_file()
        log = stored(broker, one, "log").read_bytes()
        assert log == served(client, topic, one.start_offset, one.end_offset + 1)
        assert len(log) == one.size
