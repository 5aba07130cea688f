"""Real clients read topics whose old segments are in the object store only."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from aiokafka import AIOKafkaConsumer
from aiokafka.structs import TopicPartition as AioPartition
from confluent_kafka import Consumer, Producer, TopicPartition

from skylog.bulk.fetch import BrokerSource
from skylog.bulk.source import LossPolicy
from skylog.client import bulk
from skylog.client.bulk import PartitionRange
from skylog.kernel.errors import ErrorCode
from skylog.kernel.executor import InlineExecutor
from skylog.testing import Broker
from skylog.wire.messages.plan_ranges_request import PlanPartition, PlanRangesRequest, PlanTopic
from tests.integration.broker_client import NOW, Client, values
from tests.integration.bulk_support import cluster
from tests.waiting import until

SETTINGS = {
    "remote.log.storage.system.enable": "true",
    "rlmm.config.remote.log.metadata.topic.num.partitions": "3",
    "remote.log.manager.task.interval.ms": "100",
    "log.retention.check.interval.ms": "100",
    "log.segment.delete.delay.ms": "0",
    "transaction.state.log.num.partitions": "2",
}
TIERED = {
    "remote.storage.enable": "true",
    # A segment is full when its indexes are: after a few batches.
    "segment.index.bytes": "60",
    "index.interval.bytes": "1",
    "local.retention.bytes": "1",
    "retention.ms": "-1",
    "file.delete.delay.ms": "0",
}
EARLIEST_LOCAL = -4
LATEST = -1
RECORDS = 400
PARTITIONS = 4


def local_start(client: Client, topic: str) -> int:
    found: int = client.offset(topic, EARLIEST_LOCAL).offset
    return found


def fill(client: Client, topic: str, partitions: int = 1) -> None:
    """Records of 1 kB, a second apart, ten to a batch; all closed segments are remote only."""
    client.create(topic, partitions, TIERED)
    for index in range(partitions):
        for first in range(0, RECORDS, 10):
            found = [b"%d:%d " % (index, first + at) + b"x" * 1000 for at in range(10)]
            times = [NOW + 1000 * (first + at) for at in range(10)]
            assert client.produce(topic, *found, index=index, timestamps=times).error_code == 0


def numbers(found: list[bytes]) -> list[int]:
    return [int(value.split(b":")[1].split(b" ")[0]) for value in found]


@pytest.fixture(scope="module")
def tiered(broker: Broker) -> Iterator[str]:
    """A topic whose partitions are remote but for their last segment."""
    with Client(broker.bootstrap) as client:
        fill(client, "tiered", PARTITIONS)
        for index in range(PARTITIONS):
            directory = broker.directory / f"tiered-{index}"
            until(lambda d=directory: len(list(d.glob("*.log"))) == 1)  # type: ignore[misc]
        until(lambda: local_start(client, "tiered") >= 300)
        yield "tiered"


def test_everything_is_there_from_the_beginning(client: Client, tiered: str) -> None:
    offset, found = 0, []
    while offset < RECORDS:
        answer = client.fetch(tiered, offset, partition_max_bytes=15_000)
        assert (answer.error_code, answer.high_watermark, answer.log_start_offset) == (
            0,
            RECORDS,
            0,
        )
        some = numbers(values(answer.records))
        assert some[0] <= offset <= some[-1]
        found += [number for number in some if number >= offset]
        offset = found[-1] + 1
    assert found == list(range(RECORDS))


def test_partitions_on_both_tiers_in_one_fetch(client: Client, tiered: str) -> None:
    offsets = [3, 399, 150, 0]
    parts = [(tiered, index, offset) for index, offset in enumerate(offsets)]
    answer = client.fetch_all(*parts, partition_max_bytes=12_000)
    for one in answer.responses[0].partitions:
        offset = offsets[one.partition_index]
        assert one.error_code == 0
        assert offset in numbers(values(one.records))


@pytest.mark.parametrize("number", [0, 1, 133, 299, 399])
def test_seek_by_time(client: Client, tiered: str, number: int) -> None:
    found = client.offset(tiered, NOW + 1000 * number - 500)
    assert (found.error_code, found.offset, found.timestamp) == (0, number, NOW + 1000 * number)


def test_after_the_last_record_there_is_none(client: Client, tiered: str) -> None:
    found = client.offset(tiered, NOW + 1000 * RECORDS)
    assert (found.error_code, found.offset) == (0, -1)


def consumed(bootstrap: str, topic: str, **more: Any) -> dict[int, list[int]]:
    """All of a topic with librdkafka."""
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "g", **more})
    consumer.assign([TopicPartition(topic, index, 0) for index in range(PARTITIONS)])
    found: dict[int, list[int]] = {index: [] for index in range(PARTITIONS)}
    try:
        until(lambda: _take(consumer, found), "not everything was consumed")
    finally:
        consumer.close()
    return found


def _take(consumer: Consumer, found: dict[int, list[int]]) -> bool:
    for message in consumer.consume(500, 0.2):
        assert message.error() is None, message.error()
        found[message.partition()].append(numbers([message.value() or b""])[0])
    return all(len(one) >= RECORDS for one in found.values())


def test_librdkafka_reads_everything_in_order(broker: Broker, tiered: str) -> None:
    found = consumed(broker.bootstrap, tiered)
    assert all(one == list(range(RECORDS)) for one in found.values())


async def test_aiokafka_reads_everything(broker: Broker, tiered: str) -> None:
    consumer = AIOKafkaConsumer(bootstrap_servers=broker.bootstrap)
    await consumer.start()
    try:
        partition = AioPartition(tiered, 1)
        consumer.assign([partition])
        consumer.seek(partition, 0)
        found: list[int] = []
        async with asyncio.timeout(60):
            while len(found) < RECORDS:
                for records in (await consumer.getmany(timeout_ms=200)).values():
                    found += numbers([record.value for record in records])
        assert found == list(range(RECORDS))
    finally:
        await consumer.stop()


def test_aborted_transactions_of_both_tiers_are_not_read(broker: Broker, client: Client) -> None:
    topic = "transactions"
    client.create(topic, 1, TIERED)
    committed = []
    for number in range(40):
        producer = Producer(
            {"bootstrap.servers": broker.bootstrap, "transactional.id": f"t{number % 4}"}
        )
        producer.init_transactions()
        producer.begin_transaction()
        for at in range(5):
            producer.produce(topic, b"0:%d " % (number * 5 + at) + b"x" * 1000)
        producer.flush()
        if number % 3 == 1:
            producer.abort_transaction()
        else:
            producer.commit_transaction()
            committed += [number * 5 + at for at in range(5)]
    until(lambda: local_start(client, topic) > 120)
    found: list[int] = []
    consumer = Consumer(
        {
            "bootstrap.servers": broker.bootstrap,
            "group.id": "g",
            "isolation.level": "read_committed",
        }
    )
    consumer.assign([TopicPartition(topic, 0, 0)])

    def everything() -> bool:
        for message in consumer.consume(500, 0.2):
            assert message.error() is None, message.error()
            found.extend(numbers([message.value() or b""]))
        return len(found) >= len(committed)

    try:
        until(everything)
    finally:
        consumer.close()
    assert found == committed


def test_below_the_log_start_is_out_of_range(client: Client, tiered: str) -> None:
    assert client.fetch(tiered, RECORDS + 1).error_code == ErrorCode.OFFSET_OUT_OF_RANGE


def test_plans_of_bulk_readers_begin_with_what_is_remote(client: Client, tiered: str) -> None:
    partitions = [PlanPartition(index, -2, -1, -1) for index in range(PARTITIONS)]
    request = PlanRangesRequest(split_bytes=50_000, topics=[PlanTopic(tiered, partitions)])
    for one in client.ask(request).topics[0].partitions:
        assert one.error_code == 0
        assert (one.log_start_offset, one.high_watermark) == (0, RECORDS)
        ends = [split.end_offset for split in one.splits]
        assert [split.start_offset for split in one.splits] == [0, *ends[:-1]]
        assert ends[-1] == RECORDS
        assert 5 <= len(ends) <= 20


async def test_bulk_readers_get_every_record_once(broker: Broker, tiered: str) -> None:
    asked = [PartitionRange(tiered, index) for index in range(PARTITIONS)]
    async with cluster(broker.bootstrap) as opened:
        plan = await bulk.plan_ranges(opened, asked, 50_000)
        for partition in plan.partitions:
            found: list[int] = []
            for split in partition.splits:
                source = BrokerSource(opened, InlineExecutor(), [split], LossPolicy())
                while pieces := await source.next():
                    for batch in pieces[0].batches:
                        some = numbers(values(batch.data))
                        # A split may begin or end within a batch.
                        found += [n for n in some if split.start_offset <= n < split.end_offset]
                await source.close()
            assert found == list(range(RECORDS))


def test_indexes_are_kept_beside_the_logs(broker: Broker, client: Client, tiered: str) -> None:
    client.fetch(tiered, 55)
    cache = broker.directory / "remote-log-index-cache"
    assert until(lambda: list(cache.glob("*.index")))


def test_a_deleted_topic_leaves_no_indexes_behind(broker: Broker, client: Client) -> None:
    topic = "short-lived"
    fill(client, topic)
    until(lambda: local_start(client, topic) >= 300)
    cache = broker.directory / "remote-log-index-cache"
    before = set(cache.iterdir())
    assert numbers(values(client.fetch(topic, 55).records))[0] <= 55
    (index,) = until(lambda: set(cache.glob("*.index")) - before)
    client.delete(topic)
    until(lambda: not index.exists())


def test_a_restarted_broker_reads_remote_segments(tmp_path: Path) -> None:
    def first_numbers(client: Client) -> list[int]:
        # REPLICA_NOT_AVAILABLE until the metadata topic is read.
        return numbers(values(client.fetch("kept", 55, partition_max_bytes=15_000).records))

    with Broker(SETTINGS, directory=tmp_path) as broker, Client(broker.bootstrap) as client:
        fill(client, "kept")
        until(lambda: local_start(client, "kept") >= 300)
        before = first_numbers(client)
        assert 55 in before
        cached = until(lambda: list((tmp_path / "remote-log-index-cache").glob("*.index")))
    with Broker(SETTINGS, directory=tmp_path) as broker, Client(broker.bootstrap) as client:
        assert until(lambda: first_numbers(client)) == before
        assert client.fetch("kept", 0).log_start_offset == 0
        assert all(path.exists() for path in cached)
        assert client.offset("kept", NOW + 120_000).offset == 120
