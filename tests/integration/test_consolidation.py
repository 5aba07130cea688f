"""Diskless topics on a real broker: their WAL batches become segments in the tiered store."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from unittest import mock

import pytest

from skylog.broker.assembly.tiered import TieredStorage
from skylog.broker.observe.consolidation import ConsolidationCollector
from skylog.broker.tiered.assembly_source import AssemblySource
from skylog.log.checkpoints import decode_snapshot
from skylog.objects.store import ObjectError, Outcome
from skylog.testing import Broker
from skylog.tiered.segments import IndexType, RemoteSegment, SegmentState, TopicIdPartition
from skylog.wire.batch import split_batches
from tests.consolidating import CONSOLIDATING, consolidating_broker
from tests.integration.broker_client import Client, batch
from tests.integration.tiered_topics import PER_SEGMENT, alter, delete_records, fill, read_all
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


def assembled(broker: Broker, topic: str) -> list[Path]:
    """The logs of segments that are put together, or copied."""
    root = Path(broker.node.settings.node.log_dirs[0]) / "diskless-tiering"
    return sorted(root.glob(f"{topic}-*/*.log"))


def on_loop(broker: Broker, work: Callable[..., object], *arguments: object) -> None:
    """Call it where the broker's own parts do."""

    async def run() -> None:
        work(*arguments)

    broker.run(run())


def producers_of(broker: Broker, segment: RemoteSegment) -> dict[int, int]:
    """The last sequence of each producer in a segment's snapshot."""
    raw = broker.run(tiered(broker).storage.fetch_index(segment, IndexType.PRODUCER_SNAPSHOT))
    return {one.producer_id: one.last_sequence for one in decode_snapshot(bytes(raw))}


def until_copied(broker: Broker, topic: str, end: int, index: int = 0) -> list[RemoteSegment]:
    def is_copied() -> bool:
        found = finished(broker, topic, index)
        return bool(found) and found[-1].end_offset + 1 >= end

    until(is_copied, f"{topic} is not copied up to {end}")
    return finished(broker, topic, index)


@pytest.mark.parametrize("stamps", ["CreateTime", "LogAppendTime"])
def test_segments_are_what_consumers_read(broker: Broker, client: Client, stamps: str) -> None:
    topic = f"whole-{stamps}"
    client.create(topic, 1, {**CONSOLIDATING, "message.timestamp.type": stamps})
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


def test_time_cuts_a_partition_where_nothing_happens(broker: Broker, client: Client) -> None:
    topic = "idle"
    client.create(topic, 1, {**CONSOLIDATING, "internal.segment.bytes": "1000000"})
    fill(client, topic, 0, 3)
    until(lambda: source_of(broker, topic).assembled_end == 3)
    assert finished(broker, topic) == []
    alter(client, topic, segment_ms="1")
    assert [one.end_offset for one in until_copied(broker, topic, 3)] == [2]


def test_partitions_share_the_reads_of_their_objects(broker: Broker, client: Client) -> None:
    topic, partitions, commits = "shared", 12, 30
    bulky = {**CONSOLIDATING, "internal.segment.bytes": "1000000", "segment.ms": "3600000"}
    client.create(topic, partitions, {**bulky, "remote.storage.enable": "false"})
    for _ in range(commits):
        parts = [(topic, index, batch(b"v" * 100)) for index in range(partitions)]
        answers = client.produce_all(parts)
        assert {one.error_code for one in answers.values()} == {0}
    engine = broker.node._services.diskless
    objects = engine.reader.objects
    for key in list(objects.cache._objects):
        objects.cache.forget(key)
    before = objects.gets + objects.gets_at_once
    # No round begins before all have: brokers do not come to lead one partition after another.
    assembler = tiered(broker).consolidating.assembler
    with mock.patch.object(assembler, "_queue"):
        alter(client, topic, remote_storage_enable="true")
        sources = [source_of(broker, topic, index) for index in range(partitions)]
        until(lambda: all(source._assembly is not None for source in sources))

    def begin() -> None:
        for source in sources:
            assembler.committed(source._assembly, commits)

    on_loop(broker, begin)
    until(lambda: all(source.assembled_end == commits for source in sources))
    assert objects.gets + objects.gets_at_once - before <= 1.1 * commits


def test_a_file_that_changes_on_the_disk_is_not_copied(broker: Broker, client: Client) -> None:
    topic = "spoiled"
    client.create(topic, 1, CONSOLIDATING)
    fill(client, topic, 0, PER_SEGMENT - 1)
    until(lambda: source_of(broker, topic).assembled_end == PER_SEGMENT - 1)
    (path,) = assembled(broker, topic)
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(data)
    stats = tiered(broker).consolidating.assembler.stats
    before = stats.spoiled
    fill(client, topic, PER_SEGMENT - 1, 2 * PER_SEGMENT + 1)
    segments = until_copied(broker, topic, 2 * PER_SEGMENT)
    assert stats.spoiled == before + 1
    assert [one.start_offset for one in segments] == [0, PER_SEGMENT]
    for one in segments:
        log = stored(broker, one, "log").read_bytes()
        assert log == served(client, topic, one.start_offset, one.end_offset + 1)


def test_a_log_start_within_a_batch_takes_the_batch_whole(broker: Broker, client: Client) -> None:
    topic = "trimmed"
    long = {**CONSOLIDATING, "internal.segment.bytes": "1000000"}
    client.create(topic, 1, {**long, "remote.storage.enable": "false"})
    assert client.produce(topic, *(b"%06d" % number for number in range(10))).error_code == 0
    assert delete_records(client, topic, 4) == 4
    alter(client, topic, remote_storage_enable="true", segment_ms="1")
    (segment,) = until_copied(broker, topic, 10)
    assert (segment.start_offset, segment.end_offset) == (0, 9)
    assert source_of(broker, topic).covered_end == 10


def test_what_is_deleted_before_it_is_copied_leaves_no_file(broker: Broker, client: Client) -> None:
    topic = "deleted"
    client.create(topic, 1, {**CONSOLIDATING, "internal.segment.bytes": "1000000"})
    fill(client, topic, 0, 7)
    until(lambda: source_of(broker, topic).assembled_end == 7)
    assert assembled(broker, topic)
    assert delete_records(client, topic, 7) == 7
    fill(client, topic, 7, 8)
    until(lambda: [path.name[:20] for path in assembled(broker, topic)] == [f"{7:020d}"])
    client.delete(topic)
    until(lambda: not assembled(broker, topic))


def test_acks_do_not_wait_for_a_store_that_takes_no_segment(broker: Broker, client: Client) -> None:
    topic = "unstored"
    client.create(topic, 1, CONSOLIDATING)
    storage = tiered(broker).storage
    with mock.patch.object(storage, "copy", side_effect=ObjectError("away", Outcome.NOT_DONE)):
        fill(client, topic, 0, 10 * PER_SEGMENT)
        until(lambda: tiered(broker).counts.of(topic).copy_errors > 0)
        assert finished(broker, topic) == []
        assert served(client, topic, 0, 10 * PER_SEGMENT)
    until_copied(broker, topic, 9 * PER_SEGMENT)


def test_segments_have_the_producers_of_all_that_came_before(
    broker: Broker, client: Client
) -> None:
    topic = "producers"
    client.create(topic, 1, CONSOLIDATING)
    numbers = {7: 0, 8: 0}
    now_ms = int(time.time() * 1000)

    def produce(producer: int, count: int) -> None:
        for _ in range(count):
            stamp = {
                "producer_id": producer,
                "producer_epoch": 0,
                "base_sequence": numbers[producer],
            }
            answer = client.produce(topic, b"%06d" % 0, timestamp=now_ms, **stamp)
            assert answer.error_code == 0, answer
            numbers[producer] += 1

    produce(7, PER_SEGMENT)
    produce(8, 2 * PER_SEGMENT)
    segments = until_copied(broker, topic, 2 * PER_SEGMENT)
    assert producers_of(broker, segments[0]) == {7: 4}
    assert producers_of(broker, segments[1]) == {7: 4, 8: 4}
    # A new leadership begins with what the last segment knows.
    source = source_of(broker, topic)
    on_loop(broker, source.lost, "as a new leader")
    produce(7, 2)
    produce(8, PER_SEGMENT)
    segments = until_copied(broker, topic, 4 * PER_SEGMENT)
    assert producers_of(broker, segments[-1]) == {7: 6, 8: 12}


def test_a_lag_is_seen_while_a_job_is_to_assemble(broker: Broker, client: Client) -> None:
    topic = "external"
    client.create(topic, 1, {**CONSOLIDATING, "diskless.tiering.assembler": "external"})
    fill(client, topic, 0, 3 * PER_SEGMENT)
    source = source_of(broker, topic)
    until(lambda: source.lag.records == 3 * PER_SEGMENT)
    broker.run(source.refresh())
    assert assembled(broker, topic) == []
    families = {
        family.name: {sample.labels.get("topic"): sample.value for sample in family.samples}
        for family in ConsolidationCollector(tiered(broker).consolidating).collect()
    }
    assert families["skylog_consolidation_lag_records"][topic] == 3 * PER_SEGMENT
    assert families["skylog_consolidation_lag_bytes"][topic] > 0
    assert families["skylog_consolidation_lag_seconds"][topic] >= 0
    alter(client, topic, diskless_tiering_assembler="broker")
    until_copied(broker, topic, 2 * PER_SEGMENT)


def test_a_small_disk_is_enough_for_many_partitions(tmp_path: Path) -> None:
    topic, partitions, size = "crowded", 8, 40_000
    with (
        consolidating_broker(tmp_path, diskless_tiering_disk_max_bytes=str(size)) as own,
        Client(own.bootstrap) as client,
    ):
        client.create(topic, partitions, {**CONSOLIDATING, "internal.segment.bytes": "1000000"})
        assembler, most = tiered(own).consolidating.assembler, 0
        for number in range(30):
            parts = [(topic, at, batch(b"%06d" % number + bytes(1000))) for at in range(partitions)]
            answers = client.produce_all(parts)
            assert {one.error_code for one in answers.values()} == {0}
            most = max(most, assembler.used_bytes)
        sources = [source_of(own, topic, index) for index in range(partitions)]

        def is_assembled() -> bool:
            nonlocal most
            most = max(most, assembler.used_bytes)
            return all(source.assembled_end == 30 for source in sources)

        until(is_assembled)
        assert assembler.stats.cut_early > 0
        assert 0 < most <= 2 * size  # what is read at once may be over
        until(lambda: assembler.used_bytes < size)
        for index in range(partitions):
            found = served(client, topic, 0, 30, index)
            assert [one.base_offset for one in split_batches(found)] == list(range(30))


def test_a_start_drops_what_was_being_put_together(tmp_path: Path) -> None:
    topic, bucket, directory = "again", tmp_path / "bucket", tmp_path / "node"
    bucket.mkdir()
    with (
        consolidating_broker(bucket, directory=directory) as first,
        Client(first.bootstrap) as client,
    ):
        client.create(topic, 1, CONSOLIDATING)
        fill(client, topic, 0, PER_SEGMENT + 3)
        until_copied(first, topic, PER_SEGMENT)
        until(lambda: source_of(first, topic).assembled_end == PER_SEGMENT + 3)
        until(lambda: len(assembled(first, topic)) == 1)  # files go soon after their copy
        (left,) = assembled(first, topic)
    assert not left.exists()  # it had handed its leadership over
    left.parent.mkdir()
    left.write_bytes(b"as after a kill")
    foreign = left.parent.parent / "not-ours"
    foreign.write_text("kept")
    with (
        consolidating_broker(bucket, directory=directory) as second,
        Client(second.bootstrap) as client,
    ):
        fill(client, topic, PER_SEGMENT + 3, 3 * PER_SEGMENT + 1)
        segments = until_copied(second, topic, 3 * PER_SEGMENT)
        assert [one.start_offset for one in segments] == [0, 5, 10]
        assert foreign.read_text() == "kept"
        until(lambda: [path.name for path in assembled(second, topic)] == [f"{15:020d}.log"])
        read_all(client, topic, 0, 3 * PER_SEGMENT + 1)
