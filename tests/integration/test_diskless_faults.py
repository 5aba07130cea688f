"""Diskless topics over a failing object store: no loss, no duplicates, no corruption."""

from __future__ import annotations

import random
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import KafkaError, Producer

from skylog.kernel.clock import Clock
from skylog.kernel.errors import ErrorCode
from skylog.kernel.rng import Random
from skylog.kernel.settings.storage import StorageSettings
from skylog.objects.faulty import Faults, FaultyStore
from skylog.objects.keys import ObjectKey
from skylog.objects.open import open_store
from skylog.objects.retrying import RetryingStore, RetryPolicy
from skylog.objects.store import ObjectStore, Payload
from skylog.testing import Broker
from skylog.wire.messages import fetch_request
from tests.integration.diskless_support import Load, create_topic, end_offsets, read_all
from tests.integration.wire_client import Wire
from tests.waiting import until

PARTITIONS = 3
SETTINGS = {
    "diskless.metadata.topic.num.partitions": "2",
    "diskless.fetch.cache.max.bytes": "0",  # every read goes to the store
    "log.level": "FATAL",
}
SECONDS_MAX = 60.0


class WatchedStore(FaultyStore):
    """Counts faults, and can delay puts."""

    def __init__(self, inner: ObjectStore, rng: Random) -> None:
        super().__init__(inner, rng)
        self.holding: set[threading.Event] = set()

    async def put(self, key: ObjectKey, data: Payload, *, if_absent: bool = False) -> None:
        while any(not event.is_set() for event in self.holding):
            await self._sleep(0.01)
        await super().put(key, data, if_absent=if_absent)


@pytest.fixture
def stores(monkeypatch: pytest.MonkeyPatch) -> list[WatchedStore]:
    """The stores of the brokers that are started from now on."""
    opened: list[WatchedStore] = []

    def faulty(
        url: str, settings: StorageSettings, *, clock: Clock, rng: Random, **more: Any
    ) -> ObjectStore:
        inner = open_store(url, settings, clock=clock, rng=rng, **more)
        store = WatchedStore(inner, random.Random(1))
        opened.append(store)
        policy = RetryPolicy(pause_seconds=0.01, pause_seconds_max=0.1, attempts_max=4)
        return RetryingStore(store, policy, clock=clock, rng=rng)

    monkeypatch.setattr("skylog.broker.assembly.diskless_engine.open_store", faulty)
    return opened


@pytest.fixture
def broker(stores: list[WatchedStore]) -> Iterator[Broker]:
    with Broker(SETTINGS) as running:
        create_topic(running.bootstrap, "t", PARTITIONS)
        yield running


@pytest.fixture
def store(broker: Broker, stores: list[WatchedStore]) -> WatchedStore:
    return stores[0]


def check(broker: Broker, load: Load, store: WatchedStore) -> None:
    """Everything that was sent has been acknowledged, and is there once and in order."""
    store.faults, store.down = Faults(), False
    history = load.finish()
    assert history.failed == {}
    found = read_all(broker.bootstrap, "t", end_offsets(broker.bootstrap, "t", PARTITIONS))
    history.check(found)
    assert found == dict(history.sent)


def test_an_outage(broker: Broker, store: WatchedStore) -> None:
    # ENG-14: no acknowledgement before the upload; DC-47 partly
    with Load(broker.bootstrap, "t", PARTITIONS) as load:
        load.wait_for(50)
        store.down = True

        def nobody_is_answered() -> bool:
            before, seen = load.history.acknowledged_count, store.injected["down"]
            until(lambda: store.injected["down"] >= seen + 8)
            return load.history.acknowledged_count == before

        # Commits of earlier uploads are completed.
        until(nobody_is_answered)
        store.down = False
        load.wait_for(200)
        check(broker, load, store)


@pytest.mark.parametrize(
    "faults",
    [
        Faults(after=0.4, unclear=0.2),
        Faults(throttled=0.5),
        Faults(before=0.6),
        Faults(latency=1.0, latency_seconds_max=0.3),
        Faults(before=0.1, after=0.1, unclear=0.1, throttled=0.1, refused=0.1, latency=0.3),
    ],
    ids=["ambiguous", "throttled", "failing", "slow", "all"],
)
def test_puts_that_fail(broker: Broker, store: WatchedStore, faults: Faults) -> None:
    # ENG-18, DC-12 partly
    with Load(broker.bootstrap, "t", PARTITIONS) as load:
        load.wait_for(50)
        store.faults = faults
        kinds = [
            name
            for name in ("before", "after", "unclear", "throttled", "refused", "latency")
            if getattr(faults, name) > 0
        ]
        until(lambda: all(store.injected[kind] >= 2 for kind in kinds))
        load.wait_for(100)
        check(broker, load, store)


@pytest.mark.parametrize("fault", ["truncated", "corrupted", "before"])
def test_reads_that_fail(broker: Broker, store: WatchedStore, fault: str) -> None:
    # V8: bytes that are wrong are never served
    with Load(broker.bootstrap, "t", PARTITIONS) as load:
        load.wait_for(500)
        history = load.finish()
    store.faults = Faults(**{fault: 0.3})
    ends = end_offsets(broker.bootstrap, "t", PARTITIONS)
    more = {"fetch.error.backoff.ms": 1, "fetch.message.max.bytes": 400, "check.crcs": True}
    found = read_all(broker.bootstrap, "t", ends, **more)
    history.check(found)
    assert found == dict(history.sent)
    assert store.injected[fault] > 0


def objects(broker: Broker) -> list[Path]:
    return [
        path for path in (broker.directory / "diskless-objects/wal").rglob("*") if path.is_file()
    ]


def produce(broker: Broker, topic: str, partition: int, value: bytes) -> None:
    errors: list[KafkaError | None] = []
    producer = Producer({"bootstrap.servers": broker.bootstrap, "log_level": 0})
    producer.produce(topic, value, partition=partition, on_delivery=lambda e, _: errors.append(e))
    assert producer.flush(SECONDS_MAX) == 0
    assert errors == [None]


def fetch(broker: Broker, topic: str, offset: int = 0) -> dict[int, Any]:
    """One raw fetch of all partitions, by partition."""
    wanted = [
        fetch_request.FetchPartition(index, fetch_offset=offset, partition_max_bytes=1 << 20)
        for index in range(PARTITIONS)
    ]
    request = fetch_request.FetchRequest(
        max_wait_ms=0,
        min_bytes=0,
        max_bytes=1 << 24,
        topics=[fetch_request.FetchTopic(topic=topic, partitions=wanted)],
        session_epoch=-1,
    )
    with Wire(broker.bootstrap) as wire:
        answer = wire.ask(request, 12)
    return {one.partition_index: one for one in answer.responses[0].partitions}


def test_a_damaged_object_affects_only_its_partitions(broker: Broker) -> None:
    # ENG-40 partly
    for partition in range(PARTITIONS):
        produce(broker, "t", partition, b"first of %d" % partition)
        produce(broker, "t", partition, b"second of %d" % partition)
    holding = {
        value: path
        for path in objects(broker)
        for value in (b"second of 0", b"first of 1")
        if value in path.read_bytes()
    }
    damaged = holding[b"second of 0"]
    damaged.write_bytes(damaged.read_bytes().replace(b"second of 0", b"second of 9"))
    holding[b"first of 1"].unlink()

    answers = fetch(broker, "t")
    assert [answers[index].error_code for index in range(PARTITIONS)] == [
        ErrorCode.NONE,  # the undamaged prefix is served
        ErrorCode.KAFKA_STORAGE_ERROR,
        ErrorCode.NONE,
    ]
    assert b"first of 0" in bytes(answers[0].records)
    assert b"second of" not in bytes(answers[0].records)
    assert b"second of 2" in bytes(answers[2].records)
    answers = fetch(broker, "t", 1)
    assert [answers[index].error_code for index in range(PARTITIONS)] == [
        ErrorCode.CORRUPT_MESSAGE,
        ErrorCode.NONE,
        ErrorCode.NONE,
    ]


def test_refused_records_are_not_there(broker: Broker, store: WatchedStore) -> None:
    # V6
    outcomes: dict[bytes, KafkaError | None] = {}
    producer = Producer(
        {"bootstrap.servers": broker.bootstrap, "retries": 0, "linger.ms": 0, "log_level": 0}
    )
    store.faults = Faults(refused=0.5)
    for number in range(60):
        producer.produce(
            "t",
            b"%d" % number,
            partition=number % PARTITIONS,
            on_delivery=lambda error, message: outcomes.update({message.value(): error}),
        )
        producer.flush(SECONDS_MAX)
    store.faults = Faults()
    ends = end_offsets(broker.bootstrap, "t", PARTITIONS)
    found = {v for values in read_all(broker.bootstrap, "t", ends).values() for v in values}
    assert found == {value for value, error in outcomes.items() if error is None}
    assert 0 < len(found) < 60
    # The broker deletes its refused files.
    assert len(objects(broker)) == len(found)


def test_late_acknowledgements(broker: Broker, store: WatchedStore) -> None:
    """The client times out and retries, while the first attempt is still in progress."""
    # DC-11 partly
    more = {"request.timeout.ms": 300, "socket.timeout.ms": 1_000}
    with Load(broker.bootstrap, "t", PARTITIONS, per_second=500, **more) as load:
        load.wait_for(20)
        for _ in range(2):
            held = threading.Event()
            store.holding.add(held)
            timed_out = threading.Event()
            timed_out.wait(0.7)  # longer than the client's timeout
            held.set()
            load.wait_for(50)
        check(broker, load, store)
