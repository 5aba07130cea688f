"""Requirements on the local segments of diskless topics that one node can show."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer

from skylog.broker.assembly.diskless_engine import OBJECTS_DIRECTORY
from skylog.diskless.layout import batches_of
from skylog.testing import Broker
from skylog.wire.batch import Batch, split_batches
from skylog.wire.records import decode_records
from tests.integration.cli_support import invoke
from tests.integration.diskless_support import SECONDS_MAX, create_topic, read_all
from tests.integration.diskless_uploader import SETTINGS as BROKERS
from tests.integration.diskless_uploader import Upload, new_topic
from tests.integration.wire_client import Wire
from tests.waiting import until

PARTITIONS = 10
SETTINGS = {
    **BROKERS,
    "diskless.local.segments.enable": "true",
    "diskless.local.segments.retention.bytes": "4194304",
    "diskless.fetch.cache.max.bytes": "0",  # every read of an object goes to the store
}


@pytest.fixture
def broker() -> Iterator[Broker]:
    with Broker(SETTINGS) as running:
        yield running


def engine(broker: Broker) -> Any:
    return broker.node._services.diskless


def gets(broker: Broker) -> int:
    return int(engine(broker).store_stats.operations["get"].requests)


def until_copied(broker: Broker, ends: dict[int, int]) -> dict[int, Path]:
    """Wait until segments are filled; returns their directories."""
    local = engine(broker).local

    def copied() -> bool:
        found = {one.place.index: one.end for one in list(local.partitions) if one.following}
        return found == ends

    until(copied)
    return {one.place.index: Path(one.place.directory) for one in list(local.partitions)}


def values(directory: Path) -> list[tuple[int, bytes | None]]:
    """(offset, value) of all records in the segments of a directory."""
    found = []
    for path in sorted(directory.glob("*.log")):
        for batch in split_batches(path.read_bytes()):
            assert batch.crc_ok()
            found += [(record.offset, record.value) for record in decode_records(batch)]
    return found


def test_one_read_of_an_object_feeds_all_its_partitions(broker: Broker) -> None:
    # ENG-23, ENG-24, ENG-26, ENG-05 partly: one replica
    with Wire(broker.address("BROKERS")) as wire:
        topic_id = new_topic(wire, "many", PARTITIONS)
        upload = Upload()
        for index in range(PARTITIONS):
            upload.add(topic_id, [b"%d" % index], index)
        upload.store(broker)
        asked: list[int] = []
        find = engine(broker).plane.find_batches

        async def noted(requests: Any, *limits: Any) -> Any:
            asked.append(len(requests))
            return await find(requests, *limits)

        engine(broker).plane.find_batches = noted
        before = gets(broker)
        wire.ask(upload.request())
        directories = until_copied(broker, dict.fromkeys(range(PARTITIONS), 1))
    # There are no consumers: the filler fetched by itself, and read the object once.
    assert asked
    assert gets(broker) == before + 1
    for index, directory in directories.items():
        assert values(directory) == [(0, b"%d" % index)]
    ends = dict.fromkeys(range(PARTITIONS), 1)
    assert read_all(broker.bootstrap, "many", ends) == {n: [b"%d" % n] for n in range(PARTITIONS)}
    assert gets(broker) == before + 1


def test_segments_are_kafkas_and_hold_what_objects_hold(broker: Broker) -> None:
    # ENG-27, ENG-50
    create_topic(broker.bootstrap, "rolling")
    size, count, rounds = 100_000, 10, 0
    producer = Producer({"bootstrap.servers": broker.bootstrap, "batch.size": 200_000})
    directory = Path()
    # The size of segments follows from retention; produce until three segments were rolled.
    while len(list(directory.glob("*.log"))) < 4 or rounds == 0:
        for number in range(count):
            producer.produce("rolling", b"%*d" % (size, rounds * count + number), partition=0)
        assert producer.flush(SECONDS_MAX) == 0
        rounds += 1
        assert rounds < 500
        directory = until_copied(broker, {0: rounds * count})[0]
    names = sorted(path.name for path in directory.iterdir())
    bases = [name.removesuffix(".log") for name in names if name.endswith(".log")]
    for base in bases:
        assert {f"{base}.index", f"{base}.timeindex"} <= set(names)
        dumped = invoke("dump", str(directory / f"{base}.log"))
        assert dumped.exit_code == 0, dumped.output
    local = values(directory)
    first = int(bases[0])
    assert local == [(n, b"%*d" % (size, n)) for n in range(first, rounds * count)]
    objects = (broker.directory / OBJECTS_DIRECTORY / "wal").glob("*/*")
    remote = {
        value
        for path in objects
        for _, batch in batches_of(path.read_bytes())
        for value in _values(batch)
    }
    assert {value for _, value in local} <= remote
    assert len(remote) == rounds * count


def _values(batch: Batch) -> list[bytes | None]:
    return [record.value for record in decode_records(batch)]
