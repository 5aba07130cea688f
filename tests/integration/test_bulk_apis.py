"""The APIs of bulk readers and writers, over real sockets."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from crc32c import crc32c

from skylog.broker.net.server import stop_accepting
from skylog.client import bulk
from skylog.client.bulk import PartitionRange
from skylog.client.cluster import Cluster
from skylog.diskless.layout import batches_of
from skylog.kernel.errors import ErrorCode, KafkaError
from skylog.kernel.ids import ZERO_UUID, Uuid
from skylog.kernel.limits import STAGED_OBJECT_BYTES_MAX
from skylog.testing import Broker
from skylog.wire.apis import ApiKey
from skylog.wire.batch import Compression
from skylog.wire.messages import commit_staged_request
from skylog.wire.messages.api_versions_request import ApiVersionsRequest
from skylog.wire.messages.delete_topics_request import DeleteTopicsRequest, DeleteTopicState
from skylog.wire.messages.pin_staged_request import PinStagedRequest
from skylog.wire.records import encode_batch
from tests.integration.bulk_support import HOUR_MS, Stage, cluster, now_ms, object_path
from tests.integration.diskless_support import SECONDS_MAX, read_all
from tests.integration.diskless_uploader import new_topic
from tests.integration.wire_client import Wire

SETTINGS = {"diskless.metadata.topic.num.partitions": "2", "log.level": "ERROR"}
NONE = ErrorCode.NONE
INVALID = ErrorCode.INVALID_REQUEST


@pytest.fixture
def wire(broker: Broker) -> Iterator[Wire]:
    with Wire(broker.bootstrap) as connection:
        yield connection


def produce(broker: Broker, topic: str, *rounds: list[bytes], partition: int = 0) -> None:
    """A batch for each round."""
    for values in rounds:
        producer = Producer({"bootstrap.servers": broker.bootstrap, "linger.ms": 100})
        for value in values:
            producer.produce(topic, value, partition=partition)
        assert producer.flush(SECONDS_MAX) == 0


def values(broker: Broker, topic: str, ends: dict[int, int]) -> dict[int, list[bytes]]:
    return read_all(broker.bootstrap, topic, ends)


async def prefix(opened: Cluster) -> str:
    return (await bulk.staging_info(opened)).prefix


def test_api_versions_does_not_list_them(wire: Wire) -> None:
    request = ApiVersionsRequest(client_software_name="t", client_software_version="1")
    offered = {api.api_key for api in wire.ask(request).api_keys}
    assert max(offered) < ApiKey.PLAN_RANGES


# --- Reading --------------------------------------------------------------------------------------


async def test_a_plan_leads_to_every_record(broker: Broker, wire: Wire) -> None:
    new_topic(wire, "planned", 2)
    rounds = [[b"%d-%d" % (number, i) for i in range(50)] for number in range(6)]
    produce(broker, "planned", *rounds)
    async with cluster(broker.bootstrap) as opened:
        plan = await bulk.plan_ranges(
            opened, [PartitionRange("planned", 0), PartitionRange("planned", 1)], 1000
        )
        assert plan.storage_url is not None and plan.storage_url.startswith("file:///")
        first, empty = plan.partitions
        assert (first.error, first.diskless, first.high_watermark) == (NONE, True, 300)
        assert (empty.error, empty.splits, empty.high_watermark) == (NONE, (), 0)
        assert len(first.splits) > 1
        edges = [split.start_offset for split in first.splits] + [300]
        assert edges == [0] + [split.end_offset for split in first.splits]
        offset = 0
        for split in first.splits:
            located = await bulk.locate_batches(opened, split)
            assert located.next_offset == split.end_offset
            assert sum(batch.byte_size for batch in located.batches) == split.bytes
            for batch in located.batches:
                assert batch.base_offset == offset
                offset = batch.last_offset + 1
                data = object_path(plan.storage_url, batch.object_key).read_bytes()
                batches = dict(batches_of(data))
                assert batches[batch.byte_offset].size == batch.byte_size
        assert offset == 300


async def test_located_batches_come_in_pages(broker: Broker, wire: Wire) -> None:
    new_topic(wire, "paged")
    produce(broker, "paged", *[[b"x"]] * 5)
    async with cluster(broker.bootstrap) as opened:
        plan = await bulk.plan_ranges(opened, [PartitionRange("paged", 0)], 1 << 30)
        (split,) = plan.partitions[0].splits
        assert (split.start_offset, split.end_offset) == (0, 5)
        at, found = 0, []
        while at < split.end_offset:
            page = await bulk.locate_batches(opened, split, start_offset=at, max_batches=2)
            assert 0 < len(page.batches) <= 2
            found += [batch.base_offset for batch in page.batches]
            at = page.next_offset
        assert found == [0, 1, 2, 3, 4]


async def test_many_splits_are_located_at_once(broker: Broker, wire: Wire) -> None:
    new_topic(wire, "many", 3)
    for partition in range(3):
        produce(broker, "many", *[[b"x"]] * 3, partition=partition)
    async with cluster(broker.bootstrap) as opened:
        ranges = [PartitionRange("many", partition) for partition in range(3)]
        plan = await bulk.plan_ranges(opened, ranges, 1 << 20)
        splits = [split for one in plan.partitions for split in one.splits]
        absent = replace(splits[0], topic="no-such-topic")
        wanted = [(split, 1) for split in (*splits, absent)]
        first, second, third, missing = await bulk.locate_many(opened, wanted)
        assert first == await bulk.locate_batches(opened, splits[0], start_offset=1)
        assert second == await bulk.locate_batches(opened, splits[1], start_offset=1)
        assert third == await bulk.locate_batches(opened, splits[2], start_offset=1)
        assert isinstance(missing, KafkaError)
        assert missing.code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        # A response has limited space. Two of the three are of the same coordinator.
        *some, _ = await bulk.locate_many(opened, wanted, max_batches=1)
        begun = [one for one in some if isinstance(one, bulk.Located)]
        assert 0 < len(begun) < 3
        assert {one.next_offset for one in begun} == {2}
        assert [one for one in some if one not in begun] == [None] * (3 - len(begun))


async def test_old_batches_are_skipped(broker: Broker, wire: Wire) -> None:
    topic_id = new_topic(wire, "dated")
    start = now_ms()
    async with cluster(broker.bootstrap) as opened:
        info = await bulk.staging_info(opened)
        stage = Stage(info.prefix)
        for age in (3000, 2000, 1000):
            stage.add("dated", topic_id, b"v", timestamp=start - age)
        await commit_one(opened, stage.put(info.storage_url))
        young = PartitionRange("dated", 0, min_timestamp=start - 1000)
        plan = await bulk.plan_ranges(opened, [young, PartitionRange("dated", 0)], 1)
        skipping, whole = plan.partitions
        assert [(s.start_offset, s.end_offset) for s in skipping.splits] == [(2, 3)]
        assert skipping.skipped_bytes == sum(s.bytes for s in whole.splits[:2]) > 0
        (split,) = (
            (await bulk.plan_ranges(opened, [PartitionRange("dated", 0)], 1 << 20))
            .partitions[0]
            .splits
        )
        located = await bulk.locate_batches(opened, split, min_timestamp=start - 2000)
        assert [batch.base_offset for batch in located.batches] == [1, 2]
        assert [batch.max_timestamp for batch in located.batches] == [start - 2000, start - 1000]


async def test_plans_fail_with_a_reason(broker: Broker, wire: Wire) -> None:
    new_topic(wire, "short", **{"cleanup.policy": "delete"})
    produce(broker, "short", [b"a", b"b", b"c"])
    ranges = [
        PartitionRange("nothing", 0),
        PartitionRange("short", 5),
        PartitionRange("short", 0, 4),
        PartitionRange("short", 0, 0, 4),
        PartitionRange("short", 0, 1, 2),
    ]
    async with cluster(broker.bootstrap) as opened:
        plan = await bulk.plan_ranges(opened, ranges, 1000)
        assert [one.error for one in plan.partitions] == [
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            ErrorCode.OFFSET_OUT_OF_RANGE,
            ErrorCode.OFFSET_OUT_OF_RANGE,
            NONE,
        ]
        assert "nothing" in (plan.partitions[0].message or "")
        outside = plan.partitions[2]
        assert (outside.log_start_offset, outside.high_watermark) == (0, 3)
        assert [(s.start_offset, s.end_offset) for s in plan.partitions[4].splits] == [(1, 2)]
        refused = (await bulk.plan_ranges(opened, ranges[-1:], 0)).partitions[0]
        assert (refused.error, refused.message) == (INVALID, "splits of 0 bytes")


async def test_a_recreated_topic_is_another(broker: Broker, wire: Wire) -> None:
    new_topic(wire, "again")
    produce(broker, "again", [b"a"])
    async with cluster(broker.bootstrap) as opened:
        plan = await bulk.plan_ranges(opened, [PartitionRange("again", 0)], 1000)
        (split,) = plan.partitions[0].splits
        wire.ask(DeleteTopicsRequest([DeleteTopicState("again")]))
        new_topic(wire, "again")
        with pytest.raises(KafkaError) as gone:
            await bulk.locate_batches(opened, split)
        assert gone.value.code is ErrorCode.UNKNOWN_TOPIC_ID


async def test_classic_topics_are_split_by_their_indexes(broker: Broker, wire: Wire) -> None:
    # The smallest segments that Kafka allows, and an index entry for nearly every batch.
    configs = {"segment.bytes": str(1 << 20), "index.interval.bytes": "1"}
    new_topic(wire, "classic", **{"diskless.enable": "false", **configs})
    produce(broker, "classic", *[[b"x" * 10_000] * 20 for _ in range(12)])
    async with cluster(broker.bootstrap) as opened:
        plan = await bulk.plan_ranges(
            opened, [PartitionRange("classic", 0), PartitionRange("classic", 0, 33, 200)], 400_000
        )
        whole, part = plan.partitions
        for one, start, end in ((whole, 0, 240), (part, 33, 200)):
            assert (one.error, one.diskless, one.high_watermark) == (NONE, False, 240)
            edges = [split.start_offset for split in one.splits] + [end]
            assert edges == [start] + [split.end_offset for split in one.splits]
            assert len(one.splits) > 2
            assert all(split.bytes < 1_100_000 for split in one.splits)
        assert 2_400_000 <= sum(split.bytes for split in whole.splits) <= 2_500_000
        late = PartitionRange("classic", 0, min_timestamp=now_ms() + HOUR_MS)
        (nothing,) = (await bulk.plan_ranges(opened, [late], 400_000)).partitions
        assert nothing.splits == ()
        assert nothing.skipped_bytes == sum(split.bytes for split in whole.splits)
        outside = PartitionRange("classic", 0, 241)
        (wrong,) = (await bulk.plan_ranges(opened, [outside], 400_000)).partitions
        assert wrong.error is ErrorCode.OFFSET_OUT_OF_RANGE
        with pytest.raises(KafkaError, match="no batches in the object store") as refused:
            await bulk.locate_batches(opened, whole.splits[0])
        assert refused.value.code is INVALID


# --- Writing --------------------------------------------------------------------------------------


async def commit_one(opened: Cluster, staged: bulk.StagedObject) -> bulk.CommitStagedResult:
    (result,) = await bulk.commit_staged(opened, "writer", 1, [staged])
    return result


async def test_staged_batches_become_records(broker: Broker, wire: Wire) -> None:
    """Of several topics, partitions and codecs in one object; a second commit changes nothing."""
    one, other = new_topic(wire, "staged-1", 2), new_topic(wire, "staged-2")
    async with cluster(broker.bootstrap) as opened:
        info = await bulk.staging_info(opened)
        stage = Stage(info.prefix)
        for codec in Compression:
            stage.add("staged-1", one, b"a" * 100, b"b", codec=codec)
        stage.add("staged-1", one, b"c", partition=1).add("staged-2", other, b"d", b"e")
        staged = stage.put(info.storage_url)
        first = await commit_one(opened, staged)
        assert first.error is NONE, first
        assert [batch.base_offset for batch in first.batches] == [0, 2, 4, 6, 8, 0, 0]
        assert not any(batch.duplicate for batch in first.batches)
        again = await commit_one(opened, staged)
        assert again.error is NONE
        assert again.batches == tuple(replace(b, duplicate=True) for b in first.batches)
        read = await asyncio.to_thread(values, broker, "staged-1", {0: 10, 1: 1})
        assert read == {0: [b"a" * 100, b"b"] * 5, 1: [b"c"]}
        assert await asyncio.to_thread(values, broker, "staged-2", {0: 2}) == {0: [b"d", b"e"]}


async def test_log_append_time_is_the_commits(broker: Broker, wire: Wire) -> None:
    topic_id = new_topic(wire, "stamped", **{"message.timestamp.type": "LogAppendTime"})
    async with cluster(broker.bootstrap) as opened:
        info = await bulk.staging_info(opened)
        stage = Stage(info.prefix).add("stamped", topic_id, b"v", timestamp=5)
        before = now_ms()
        result = await commit_one(opened, stage.put(info.storage_url))
        (batch,) = result.batches
        assert batch.log_append_time >= before

    def consumed() -> tuple[int, int]:
        consumer = Consumer({"bootstrap.servers": broker.bootstrap, "group.id": "none"})
        consumer.assign([TopicPartition("stamped", 0, 0)])
        message = consumer.poll(SECONDS_MAX)
        assert message is not None
        kind_and_time: tuple[int, int] = message.timestamp()
        consumer.close()
        return kind_and_time

    assert await asyncio.to_thread(consumed) == (2, batch.log_append_time)


async def test_a_waiting_fetch_is_woken(broker: Broker, wire: Wire) -> None:
    topic_id = new_topic(wire, "awaited")
    got: list[bytes] = []
    parked = threading.Event()

    def wait() -> None:
        consumer = Consumer(
            {
                "bootstrap.servers": broker.bootstrap,
                "group.id": "none",
                "fetch.wait.max.ms": int(SECONDS_MAX * 1000),
                "socket.timeout.ms": int(SECONDS_MAX * 2000),
            }
        )
        consumer.assign([TopicPartition("awaited", 0, 0)])
        consumer.poll(0.5)  # sends the request, and waits at the broker from then on
        parked.set()
        message = consumer.poll(SECONDS_MAX / 2)
        assert message is not None
        got.append(message.value())
        consumer.close()

    waiting = threading.Thread(target=wait)
    waiting.start()
    async with cluster(broker.bootstrap) as opened:
        info = await bulk.staging_info(opened)
        await asyncio.to_thread(parked.wait, SECONDS_MAX)
        stage = Stage(info.prefix).add("awaited", topic_id, b"v")
        assert (await commit_one(opened, stage.put(info.storage_url))).error is NONE
        await asyncio.to_thread(waiting.join, SECONDS_MAX)
    assert got == [b"v"]


def wrong_batches(topic_id: Uuid) -> dict[str, tuple[bytes, ErrorCode]]:
    """Batches that Produce would refuse."""
    now = now_ms()
    good = encode_batch([(None, b"v" * 100)], timestamp=now)

    def with_crc(data: bytearray) -> bytes:
        data[17:21] = crc32c(data[21:]).to_bytes(4, "big")
        return bytes(data)

    flipped = bytearray(good)
    flipped[-5] ^= 1
    count = bytearray(good)
    count[57:61] = (2).to_bytes(4, "big")
    delta = bytearray(count)
    delta[23:27] = (1).to_bytes(4, "big")
    late = bytearray(good)
    late[35:43] = (now - 5).to_bytes(8, "big")
    magic = bytearray(good)
    magic[16] = 1
    length = bytearray(good)
    length[8:12] = (len(good) - 13).to_bytes(4, "big")
    base = bytearray(good)
    base[7] = 9
    future = encode_batch([(None, b"v")], timestamp=now_ms() + 9 * HOUR_MS)
    idempotent = encode_batch(
        [(None, b"v")], timestamp=now_ms(), producer_id=7, producer_epoch=0, base_sequence=0
    )
    transactional = encode_batch([(None, b"v")], timestamp=now_ms(), transactional=True)
    control = encode_batch([(b"\0\0\0\0", b"v")], timestamp=now_ms(), control=True)
    invalid = ErrorCode.INVALID_RECORD
    return {
        "checksum": (bytes(flipped), ErrorCode.CORRUPT_MESSAGE),
        "count": (with_crc(count), invalid),
        "count and range": (with_crc(delta), invalid),
        "largest timestamp": (with_crc(late), invalid),
        "magic": (bytes(magic), invalid),
        "length": (bytes(length), ErrorCode.CORRUPT_MESSAGE),
        "more than a batch": (good + b"\0", ErrorCode.CORRUPT_MESSAGE),
        "two batches": (good + good, ErrorCode.CORRUPT_MESSAGE),
        "base offset": (bytes(base), invalid),
        "in the future": (future, ErrorCode.INVALID_TIMESTAMP),
        "idempotent": (idempotent, invalid),
        "transactional": (transactional, invalid),
        "control": (control, invalid),
        "too large": (
            encode_batch([(None, b"v" * 3000)], timestamp=now_ms()),
            ErrorCode.MESSAGE_TOO_LARGE,
        ),
        "garbage": (b"\xff" * 200, ErrorCode.CORRUPT_MESSAGE),
        "zeros": (bytes(200), ErrorCode.CORRUPT_MESSAGE),
    }


async def test_a_wrong_batch_refuses_its_object(broker: Broker, wire: Wire) -> None:
    topic_id = new_topic(wire, "strict", **{"max.message.bytes": "2000"})
    async with cluster(broker.bootstrap) as opened:
        info = await bulk.staging_info(opened)
        for name, (data, code) in wrong_batches(topic_id).items():
            stage = Stage(info.prefix).add("strict", topic_id, b"good")
            stage.add_bytes("strict", topic_id, data).add("strict", topic_id, b"good")
            result = await commit_one(opened, stage.put(info.storage_url))
            errors = [batch.error for batch in result.batches]
            untried = ErrorCode.OPERATION_NOT_ATTEMPTED
            assert errors == [untried, code, untried], (name, result)
            assert result.error is code and result.message
        assert await high_watermark(opened, "strict") == 0


async def high_watermark(opened: Cluster, topic: str) -> int:
    plan = await bulk.plan_ranges(opened, [PartitionRange(topic, 0)], 1 << 30)
    assert plan.partitions[0].error is NONE
    return plan.partitions[0].high_watermark


async def test_a_wrong_description_refuses_its_object(broker: Broker, wire: Wire) -> None:
    topic_id = new_topic(wire, "described")
    async with cluster(broker.bootstrap) as opened:
        info = await bulk.staging_info(opened)

        def staged() -> bulk.StagedObject:
            stage = Stage(info.prefix)
            stage.add("described", topic_id, b"a" * 100).add("described", topic_id, b"b" * 100)
            return stage.put(info.storage_url)

        def moved(by: int, size: int = 0, place: int = 1) -> bulk.StagedObject:
            told = staged()
            batches = list(told.batches)
            one = batches[place]
            batches[place] = replace(
                one, byte_offset=one.byte_offset + by, byte_size=one.byte_size + size
            )
            return replace(told, batches=tuple(batches))

        good = staged()
        missing = Stage(info.prefix).add("described", topic_id, b"a").told()
        version = Stage(info.prefix).add("described", topic_id, b"a")
        version.data[0] = 1
        wrong: list[tuple[bulk.StagedObject, ErrorCode]] = [
            (replace(good, size=good.size + 1), INVALID),
            (replace(good, size=good.size - 1), INVALID),
            (replace(good, size=STAGED_OBJECT_BYTES_MAX + 1), ErrorCode.RECORD_LIST_TOO_LARGE),
            (replace(good, size=-1), INVALID),
            (replace(good, batches=()), INVALID),
            (replace(good, batches=(*good.batches, good.batches[0])), INVALID),
            (moved(-1), INVALID),  # overlaps
            (moved(1), INVALID),  # beyond the object
            (moved(0, 1), INVALID),
            (moved(-1, 0, 0), INVALID),  # the header byte
            (moved(0, -1, 0), ErrorCode.CORRUPT_MESSAGE),
            (moved(0, -140, 0), INVALID),  # less than a header
            (missing, ErrorCode.RESOURCE_NOT_FOUND),
            (version.put(info.storage_url), INVALID),
            (replace(good, key="wal/aa/bb"), INVALID),
            (replace(good, key=f"{info.prefix}w/manifest"), INVALID),
            (named(good, "nothing"), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
            (named(good, "__diskless_metadata"), ErrorCode.INVALID_TOPIC_EXCEPTION),
            (at_partition(good, 7), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
            (of_topic_id(good, Uuid(b"x" * 16)), ErrorCode.UNKNOWN_TOPIC_ID),
        ]
        for number, (told, code) in enumerate(wrong):
            result = await commit_one(opened, told)
            assert result.error is code, (number, result)
            assert all(batch.error is not NONE for batch in result.batches)
        assert await high_watermark(opened, "described") == 0
        assert (await commit_one(opened, good)).error is NONE
        assert (await commit_one(opened, replace(good, size=good.size + 1))).error is INVALID


def named(staged: bulk.StagedObject, topic: str) -> bulk.StagedObject:
    batches = [replace(b, topic=topic, topic_id=ZERO_UUID) for b in staged.batches]
    return replace(staged, batches=tuple(batches))


def at_partition(staged: bulk.StagedObject, index: int) -> bulk.StagedObject:
    return replace(staged, batches=tuple(replace(b, partition=index) for b in staged.batches))


def of_topic_id(staged: bulk.StagedObject, topic_id: Uuid) -> bulk.StagedObject:
    return replace(staged, batches=tuple(replace(b, topic_id=topic_id) for b in staged.batches))


async def test_a_commit_may_time_out(broker: Broker, wire: Wire) -> None:
    """Then the outcome is unknown, and the same request may be repeated."""
    topic_id = new_topic(wire, "hurried")
    async with cluster(broker.bootstrap) as opened:
        info = await bulk.staging_info(opened)
        staged = Stage(info.prefix).add("hurried", topic_id, b"v").put(info.storage_url)
        (batch,) = staged.batches
        m = commit_staged_request
        told = m.StagedBatch(batch.topic, topic_id, 0, batch.byte_offset, batch.byte_size)
        asked = m.StagedObject(staged.key, staged.size, [told])
        for timeout_ms in (0, -1):
            answer = wire.ask(m.CommitStagedRequest("w", 1, [asked], timeout_ms))
            assert answer.objects[0].error_code == ErrorCode.REQUEST_TIMED_OUT
            pinned = wire.ask(PinStagedRequest("w", 1, HOUR_MS, timeout_ms=timeout_ms))
            assert pinned.error_code in (NONE, ErrorCode.REQUEST_TIMED_OUT)
        result = await commit_one(opened, staged)
        assert (result.error, result.batches[0].base_offset) == (NONE, 0)
        long = wire.ask(m.CommitStagedRequest("w" * 256, 1, [asked]))
        assert long.error_code == INVALID


async def test_classic_topics_take_no_staged_objects(broker: Broker, wire: Wire) -> None:
    topic_id = new_topic(wire, "local", **{"diskless.enable": "false"})
    async with cluster(broker.bootstrap) as opened:
        info = await bulk.staging_info(opened)
        staged = Stage(info.prefix).add("local", topic_id, b"v").put(info.storage_url)
        result = await commit_one(opened, staged)
        assert (result.error, result.message) == (INVALID, "local is not diskless.")
        (pinned,) = await bulk.pin_staged(opened, "w", 1, [staged], HOUR_MS)
        assert pinned.error is INVALID


async def test_a_pin_lets_old_objects_be_committed(broker: Broker, wire: Wire) -> None:
    """Twenty minutes old, twice the limit without a pin."""
    topic_id = new_topic(wire, "pinned")
    async with cluster(broker.bootstrap) as opened:
        info = await bulk.staging_info(opened)

        def old() -> bulk.StagedObject:
            stage = Stage(info.prefix, age_ms=HOUR_MS // 3).add("pinned", topic_id, b"v")
            return stage.put(info.storage_url)

        pinned, unpinned, expired, released = old(), old(), old(), old()
        results = await bulk.pin_staged(opened, "w", 1, [pinned, released], HOUR_MS)
        assert [one.error for one in results] == [NONE, NONE]
        assert abs(results[0].expires_ms - now_ms() - HOUR_MS) < HOUR_MS / 2
        (short,) = await bulk.pin_staged(opened, "w", 1, [expired], 200)
        assert short.error is NONE
        (gone,) = await bulk.pin_staged(opened, "w", 1, [released], 0, release=True)
        assert gone.error is NONE
        await asyncio.to_thread(wait_until, short.expires_ms)
        for refused in (unpinned, expired, released):
            result = await commit_one(opened, refused)
            assert result.error is INVALID
            assert "not pinned" in (result.message or "")
        assert await high_watermark(opened, "pinned") == 0
        assert (await commit_one(opened, pinned)).error is NONE
        too_long = await bulk.pin_staged(opened, "w", 1, [old()], 8 * 24 * HOUR_MS)
        assert too_long[0].error is INVALID


def wait_until(time_ms: int) -> None:
    while now_ms() <= time_ms:
        time.sleep(0.001)


async def test_other_brokers_are_recognized() -> None:
    """It always closes the connection at once."""

    async def closes(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            with suppress(asyncio.IncompleteReadError):  # the client has seen enough
                await converses(reader, writer)
        finally:
            writer.transport.abort()

    async def converses(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        size = int.from_bytes(await reader.readexactly(4), "big")
        request = await reader.readexactly(size)
        if int.from_bytes(request[:2], "big") == ApiKey.API_VERSIONS:
            await answer_versions(writer, request)
            size = int.from_bytes(await reader.readexactly(4), "big")
            request = await reader.readexactly(size)
            if int.from_bytes(request[:2], "big") == ApiKey.METADATA:
                await answer_metadata(writer, request)
                await reader.read(4)

    async def answer_versions(writer: asyncio.StreamWriter, request: bytes) -> None:
        answer = request[4:8] + b"\0\0\x02\0\x03\0\x00\0\x0c\0" + bytes(4) + b"\0"
        writer.write(len(answer).to_bytes(4, "big") + answer)

    async def answer_metadata(writer: asyncio.StreamWriter, request: bytes) -> None:
        # Version 12, flexible: no brokers, cluster id, controller, topics.
        answer = request[4:8] + b"\0" + bytes(4) + b"\x01\0" + b"\xff" * 4 + b"\x01\0"
        writer.write(len(answer).to_bytes(4, "big") + answer)

    server = await asyncio.start_server(closes, "127.0.0.1", 0)
    try:
        host, port = server.sockets[0].getsockname()
        async with cluster(f"{host}:{port}") as opened:
            with pytest.raises(KafkaError, match="is this skylog") as error:
                await bulk.staging_info(opened)
            assert error.value.code is ErrorCode.UNSUPPORTED_VERSION
    finally:
        await stop_accepting([server])
