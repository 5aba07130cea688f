"""Local segments of diskless topics: a broker reads its tail from its own disk."""

from __future__ import annotations

import random
import re
import shutil
import threading
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import AdminClient, ConfigResource

from skylog.diskless.local.partitions import LocalPartition
from skylog.kernel.errors import ErrorCode
from skylog.testing import Broker
from skylog.wire.messages import fetch_request
from tests.integration.diskless_support import Load, create_topic, end_offsets, read_all
from tests.integration.processes import BrokerProcess
from tests.integration.wire_client import Wire
from tests.ports import free_port
from tests.waiting import until

PARTITIONS = 3
SECONDS_MAX = 60.0
SETTINGS = {
    "diskless.local.segments.enable": "true",
    "diskless.metadata.topic.num.partitions": "2",
    "diskless.fetch.cache.max.bytes": "0",  # every read of an object goes to the store
    "log.level": "FATAL",
}


@pytest.fixture
def broker() -> Iterator[Broker]:
    with Broker(SETTINGS) as running:
        create_topic(running.bootstrap, "t", PARTITIONS)
        yield running


def engine(broker: Broker) -> Any:
    return broker.node._services.diskless


def copies(broker: Broker) -> dict[int, LocalPartition]:
    return {one.place.index: one for one in list(engine(broker).local.partitions)}


def wait_for_copies(broker: Broker, ends: dict[int, int]) -> None:
    until(
        lambda: all(
            one.following and one.end == ends[index] and one.round is None
            for index, one in copies(broker).items()
        )
    )


def gets(broker: Broker) -> int:
    return int(engine(broker).store_stats.operations["get"].requests)


def count_finds(broker: Broker) -> list[Any]:
    """Count the plane's finds from now on."""
    plane, asked = engine(broker).plane, []
    find = plane.find_batches

    async def counted(requests: Any, *limits: Any) -> Any:
        asked.extend(requests)
        return await find(requests, *limits)

    plane.find_batches = counted
    return asked


def produce(broker: Broker, count: int, size: int = 10) -> dict[int, int]:
    """``count`` records to each partition; returns the ends."""
    producer = Producer({"bootstrap.servers": broker.bootstrap, "log_level": 0})
    for number in range(count):
        for partition in range(PARTITIONS):
            producer.produce("t", b"%*d" % (size, number), partition=partition)
    assert producer.flush(SECONDS_MAX) == 0
    return end_offsets(broker.bootstrap, "t", PARTITIONS)


def fetch(broker: Broker, offsets: dict[int, int], wait_ms: int = 0) -> dict[int, Any]:
    """One raw fetch, by partition."""
    wanted = [
        fetch_request.FetchPartition(index, fetch_offset=offset, partition_max_bytes=1 << 20)
        for index, offset in offsets.items()
    ]
    request = fetch_request.FetchRequest(
        max_wait_ms=wait_ms,
        min_bytes=1,
        max_bytes=1 << 24,
        topics=[fetch_request.FetchTopic(topic="t", partitions=wanted)],
        session_epoch=-1,
    )
    with Wire(broker.bootstrap, seconds_max=2 * SECONDS_MAX) as wire:
        answer = wire.ask(request, 12)
    return {one.partition_index: one for one in answer.responses[0].partitions}


def test_consumers_of_the_tail_ask_neither_plane_nor_bucket(broker: Broker) -> None:
    # ENG-36, ENG-41
    ends = produce(broker, 200)
    wait_for_copies(broker, ends)
    before, finds = gets(broker), count_finds(broker)
    for _ in range(3):
        found = read_all(broker.bootstrap, "t", ends)
        assert found == {index: [b"%10d" % n for n in range(200)] for index in range(PARTITIONS)}
    assert gets(broker) == before
    # Nothing but the filler's own check of the ends.
    assert all(asked.offset == ends[asked.partition] for asked in finds)
    assert engine(broker).reader.stats.fetches == 0


def test_a_long_poll_at_the_end_is_answered_by_the_append(broker: Broker) -> None:
    # ENG-37
    ends = produce(broker, 1)
    wait_for_copies(broker, ends)
    empty = fetch(broker, ends, wait_ms=50)
    assert {one.records or b"" for one in empty.values()} == {b""}

    answers: list[dict[int, Any]] = []
    waiting = threading.Thread(
        target=lambda: answers.append(fetch(broker, {0: ends[0]}, wait_ms=int(SECONDS_MAX * 1000)))
    )
    waiting.start()
    partition = engine(broker).partitions.get(copies(broker)[0].place.topic_id, 0)
    until(lambda: len(partition._watchers) > 0)
    before = gets(broker)
    producer = Producer({"bootstrap.servers": broker.bootstrap, "log_level": 0})
    producer.produce("t", b"awaited", partition=0)
    assert producer.flush(SECONDS_MAX) == 0
    waiting.join(SECONDS_MAX)
    assert b"awaited" in bytes(answers[0][0].records)
    # One read of the object, by the filler; the fetch found the copy.
    assert gets(broker) == before + 1
    assert engine(broker).reader.stats.fetches == 0


def test_regions() -> None:
    # ENG-42 partly: objects below, local segments, the tail
    settings = {**SETTINGS, "diskless.local.segments.retention.bytes": "65536"}
    with Broker(settings) as small:
        create_topic(small.bootstrap, "t", PARTITIONS)
        ends: dict[int, int] = {}
        for _ in range(20):
            ends = produce(small, 5, 2_000)
        wait_for_copies(small, ends)
        region = copies(small)[0].region
        assert region is not None
        assert 0 < region.start < region.end == ends[0]
        before = gets(small)
        inside = fetch(small, {0: region.start})[0]
        assert (inside.error_code, inside.high_watermark) == (ErrorCode.NONE, ends[0])
        assert inside.log_start_offset == 0
        assert gets(small) == before
        assert not fetch(small, {0: region.end}, wait_ms=10)[0].records
        assert gets(small) == before
        assert fetch(small, {0: 0})[0].records
        assert gets(small) > before
        beyond = fetch(small, {0: region.end + 1})[0]
        assert beyond.error_code == ErrorCode.OFFSET_OUT_OF_RANGE


def test_readers_beside_a_load_that_moves_the_regions() -> None:
    # ENG-40 partly, ENG-42 partly: no gap and no duplicate where objects end and segments begin
    settings = {**SETTINGS, "diskless.local.segments.retention.bytes": "65536"}
    with Broker(settings) as small:
        create_topic(small.bootstrap, "t", PARTITIONS)
        with Load(small.bootstrap, "t", PARTITIONS) as load:
            for _ in range(4):
                load.wait_for(2_000)
                ends = end_offsets(small.bootstrap, "t", PARTITIONS)
                found = read_all(small.bootstrap, "t", ends, **{"check.crcs": True})
                for index, values in found.items():
                    assert values == load.history.sent[index][: len(values)]
            history = load.finish()
        found = read_all(small.bootstrap, "t", end_offsets(small.bootstrap, "t", PARTITIONS))
        history.check(found)
        stats = engine(small).local.partitions.stats
        assert stats.reads > 0
        # Reads during changes of files found no damage.
        assert (stats.spoiled, stats.disk_errors) == (0, 0)


def test_metrics() -> None:
    with Broker({**SETTINGS, "http.listener": "127.0.0.1:0"}) as shown:
        create_topic(shown.bootstrap, "t", PARTITIONS)
        ends = produce(shown, 10)
        wait_for_copies(shown, ends)
        read_all(shown.bootstrap, "t", ends)
        with urllib.request.urlopen(f"http://{shown.node.http_address}/metrics") as answer:
            text = answer.read().decode()
    values = {
        name.removeprefix("skylog_diskless_local_"): float(value)
        for name, value in re.findall(r"^(skylog_diskless_local_\w+) (\S+)$", text, re.M)
    }
    assert values["partitions"] == values["following_partitions"] == PARTITIONS
    assert values["bytes_total"] == values["bytes_read_total"] == values["stored_bytes"] > 0
    assert values["reads_total"] >= PARTITIONS
    assert values["records_behind"] == values["disk_errors_total"] == 0
    assert 'last_success_age_seconds{stage="local"}' in text


def test_deleted_records_and_topics(broker: Broker) -> None:
    ends = produce(broker, 10)
    wait_for_copies(broker, ends)
    admin = AdminClient({"bootstrap.servers": broker.bootstrap, "log_level": 0})
    for future in admin.delete_records([TopicPartition("t", 0, 7)]).values():
        assert future.result().low_watermark == 7
    found = fetch(broker, {0: 6, 1: 6})
    assert found[0].error_code == ErrorCode.OFFSET_OUT_OF_RANGE
    assert found[1].error_code == ErrorCode.NONE
    assert fetch(broker, {0: 7})[0].log_start_offset == 7

    directory = broker.directory / "diskless-local"
    assert {path.name for path in directory.iterdir()} == {f"t-{n}" for n in range(PARTITIONS)}
    admin.delete_topics(["t"])["t"].result()
    until(lambda: not any(directory.iterdir()))


def test_settings_are_described(broker: Broker) -> None:
    admin = AdminClient({"bootstrap.servers": broker.bootstrap, "log_level": 0})
    resource = ConfigResource(ConfigResource.Type.BROKER, "1")
    (future,) = admin.describe_configs([resource]).values()
    shown = {name: entry.value for name, entry in future.result().items()}
    assert shown["diskless.local.segments.enable"] == "true"


def test_off_by_default() -> None:
    with Broker() as plain:
        create_topic(plain.bootstrap, "t", PARTITIONS)
        ends = produce(plain, 10)
        assert read_all(plain.bootstrap, "t", ends)
        assert engine(plain).local is None
        assert not (plain.directory / "diskless-local").exists()


def lose(directory: Path, _: random.Random) -> None:
    shutil.rmtree(directory)


def lose_one(directory: Path, rng: random.Random) -> None:
    rng.choice(sorted(directory.rglob("*.log"))).unlink()


def damage(directory: Path, rng: random.Random) -> None:
    for path in sorted(directory.rglob("0*")):
        data = bytearray(path.read_bytes())
        for _ in range(len(data) // 500):
            data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
        path.write_bytes(data)


def cut(directory: Path, rng: random.Random) -> None:
    for path in sorted(directory.rglob("0*")):
        path.write_bytes(path.read_bytes()[: rng.randrange(path.stat().st_size + 1)])


def empty(directory: Path, _: random.Random) -> None:
    for path in sorted(directory.rglob("*")):
        if path.is_file():
            path.write_bytes(b"")


def leave(_: Path, __: random.Random) -> None:
    """Leave the files as the crash left them."""


def test_kills_with_local_files_lost_and_damaged(tmp_path: Path) -> None:
    rng = random.Random(36)
    data = tmp_path / "data"
    data.mkdir()
    listeners = f"PLAINTEXT://127.0.0.1:{free_port()},CONTROLLER://127.0.0.1:0"
    settings = {
        **SETTINGS,
        "listeners": listeners,
        "diskless.local.segments.retention.bytes": "65536",
    }
    with BrokerProcess(data, settings) as broker:
        create_topic(broker.address, "t", PARTITIONS)
        with Load(broker.address, "t", PARTITIONS) as load:
            load.wait_for(100)
            for harm in (leave, damage, lose, cut, lose_one, empty):
                broker.kill()
                harm(data / "diskless-local", rng)
                broker.start()
                load.wait_for(rng.randrange(100, 1_000))
            history = load.finish()
        assert history.failed == {}
        for _ in range(2):  # while segments are filled, and perhaps from them
            ends = end_offsets(broker.address, "t", PARTITIONS)
            found = read_all(broker.address, "t", ends, **{"check.crcs": True})
            history.check(found)
            assert found == dict(history.sent)
