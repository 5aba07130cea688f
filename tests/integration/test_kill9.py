"""kill -9 under load: what was acknowledged is there, once and in order.

Killing a process does not lose what it wrote, since the kernel has it. So some tests damage the end
of a file after the kill, as a power failure does to what was not synced: only the damaged end is
lost, and clients learn of it.
"""

from __future__ import annotations

import random
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import confluent_kafka
import confluent_kafka.admin as confluent
import pytest

from skylog.kernel.errors import ErrorCode as Code
from skylog.wire.batch import split_batches
from skylog.wire.messages import (
    fetch_request,
    list_offsets_request,
    offset_for_leader_epoch_request,
    produce_request,
)
from skylog.wire.messages.create_topics_request import CreatableTopic, CreateTopicsRequest
from skylog.wire.messages.metadata_request import MetadataRequest, MetadataRequestTopic
from skylog.wire.records import decode_records, encode_batch
from tests.integration.auth_cases import errors_in
from tests.integration.processes import BrokerProcess
from tests.integration.wire_client import Wire
from tests.ports import free_port

SEED = 9
KILLS = 4
PARTITIONS = 3
TOPIC = "load"
GROUP = "readers"
QUIET: dict[str, Any] = {"log_level": 0, "error_cb": lambda _: None}


def broker_at(tmp_path: Path) -> BrokerProcess:
    """A broker that has the same address whenever it is started."""
    listeners = f"PLAINTEXT://127.0.0.1:{free_port()},CONTROLLER://127.0.0.1:{free_port()}"
    return BrokerProcess(tmp_path / "data", {"listeners": listeners})


class Producing(threading.Thread):
    """Sends numbers in order to every partition, as an idempotent producer."""

    def __init__(self, address: str) -> None:
        super().__init__(daemon=True)
        self._producer = confluent_kafka.Producer(
            {
                "bootstrap.servers": address,
                "enable.idempotence": True,
                "acks": "all",
                "linger.ms": 1,
                "delivery.timeout.ms": 100_000,
                "reconnect.backoff.max.ms": 200,
                "retry.backoff.ms": 20,
                **QUIET,
            }
        )
        self._enough = threading.Event()
        self.acked: dict[int, list[tuple[int, int]]] = defaultdict(list)
        self.failures: list[Any] = []
        self.count = 0

    def run(self) -> None:
        number = 0
        while not self._enough.is_set():
            for partition in range(PARTITIONS):
                self._producer.produce(TOPIC, str(number).encode(), partition=partition,
                                       on_delivery=self._told)  # fmt: skip
            number += 1
            self._producer.poll(0.001)
        assert self._producer.flush(60) == 0

    def _told(self, error: Any, message: Any) -> None:
        if error is not None:
            self.failures.append(error)
        else:
            self.acked[message.partition()].append((message.offset(), int(message.value())))
            self.count += 1

    def wait_for(self, more: int) -> None:
        target = self.count + more
        while self.count < target and not self.failures:
            assert self.is_alive()
            self.join(0.005)

    def stop(self) -> None:
        self._enough.set()
        self.join()


class Consuming(threading.Thread):
    """Reads in a group, commits after each batch, and records which commits were acknowledged."""

    def __init__(self, address: str) -> None:
        super().__init__(daemon=True)
        self._address = address
        self._enough = threading.Event()
        self.seen: dict[int, set[int]] = defaultdict(set)
        self.committed: dict[int, int] = {}
        self.rewinds: list[tuple[int, int, int]] = []

    def run(self) -> None:
        consumer = confluent_kafka.Consumer(
            {
                "bootstrap.servers": self._address,
                "group.id": GROUP,
                "auto.offset.reset": "earliest",
                "enable.auto.commit": False,
                "session.timeout.ms": 6000,
                "reconnect.backoff.max.ms": 200,
                **QUIET,
            }
        )
        consumer.subscribe([TOPIC], on_assign=self._assigned)
        while not self._enough.is_set():
            messages = [m for m in consumer.consume(500, 0.1) if m.error() is None]
            for message in messages:
                self.seen[message.partition()].add(int(message.value()))
            if messages:
                self._commit(consumer)
        consumer.close()

    def _commit(self, consumer: confluent_kafka.Consumer) -> None:
        try:
            told = consumer.commit(asynchronous=False)
        except confluent_kafka.KafkaException:
            return  # the broker was killed; it is unknown whether the commit took effect
        for part in told:
            if part.error is None:
                self.committed[part.partition] = part.offset

    def _assigned(self, consumer: confluent_kafka.Consumer, parts: list[Any]) -> None:
        """Reading resumes at the acknowledged commit, or later."""
        for part in consumer.committed(parts, 20):
            known = self.committed.get(part.partition)
            if known is not None and part.offset < known:
                self.rewinds.append((part.partition, part.offset, known))

    def stop(self) -> None:
        self._enough.set()
        self.join()


class Administering:
    """Creates topics and sets their retention; records what was acknowledged."""

    def __init__(self, address: str) -> None:
        self._client = confluent.AdminClient({"bootstrap.servers": address, **QUIET})
        self.retention: dict[str, str] = {}

    def create(self, name: str, partitions: int = 1) -> None:
        self._client.create_topics([confluent.NewTopic(name, partitions)])[name].result(30)
        self.retention[name] = ""

    def alter(self, name: str, retention_ms: str) -> None:
        entry = confluent.ConfigEntry(
            "retention.ms",
            retention_ms,
            incremental_operation=confluent.AlterConfigOpType.SET,
        )
        resource = confluent.ConfigResource(
            confluent.ResourceType.TOPIC, name, incremental_configs=[entry]
        )
        self._client.incremental_alter_configs([resource])[resource].result(30)
        self.retention[name] = retention_ms

    def check(self) -> None:
        topics = self._client.list_topics(timeout=30).topics
        assert set(self.retention) <= set(topics)
        for name, expected in self.retention.items():
            resource = confluent.ConfigResource(confluent.ResourceType.TOPIC, name)
            found = self._client.describe_configs([resource])[resource].result(30)
            if expected:
                assert found["retention.ms"].value == expected


def test_acknowledged_records_are_there_once_and_in_order(tmp_path: Path) -> None:
    rng = random.Random(SEED)
    with broker_at(tmp_path) as broker:
        admin = Administering(broker.address)
        admin.create(TOPIC, PARTITIONS)
        producing, consuming = Producing(broker.address), Consuming(broker.address)
        producing.start()
        consuming.start()
        for kill in range(KILLS):
            producing.wait_for(rng.randrange(500, 3000))
            admin.create(f"topic-{kill}")
            admin.alter(f"topic-{kill}", str(1_000_000 + kill))
            admin.alter(TOPIC, str(2_000_000 + kill))
            broker.kill()
            broker.start()
            admin.check()
        producing.wait_for(1000)
        producing.stop()
        assert not producing.failures
        stored = everything(broker.address)
        for partition in range(PARTITIONS):
            acked = sorted(producing.acked[partition])
            # Each number once, in order, at the acknowledged offset.
            assert stored[partition] == acked
            assert [value for _, value in acked] == list(range(len(acked)))
        wanted = {partition: len(stored[partition]) for partition in stored}
        while any(len(consuming.seen[p]) < wanted[p] for p in wanted):
            assert consuming.is_alive()
            consuming.join(0.01)
        consuming.stop()
        assert not consuming.rewinds
        assert broker.terminate() == 0


def everything(address: str) -> dict[int, list[tuple[int, int]]]:
    """All records with their offsets, by partition."""
    consumer = confluent_kafka.Consumer(
        {"bootstrap.servers": address, "group.id": "none", "enable.auto.commit": False, **QUIET}
    )
    parts = [confluent_kafka.TopicPartition(TOPIC, number, 0) for number in range(PARTITIONS)]
    left = sum(consumer.get_watermark_offsets(part, 20)[1] for part in parts)
    consumer.assign(parts)
    found: dict[int, list[tuple[int, int]]] = defaultdict(list)
    while left:
        for message in consumer.consume(min(left, 5000), 20):
            assert message.error() is None
            found[message.partition()].append((message.offset(), int(message.value())))
            left -= 1
    consumer.close()
    return found


# The end of a file is damaged


def cut(data: bytes) -> bytes:
    return data[:-7]


def flip(data: bytes) -> bytes:
    return data[:-3] + bytes((data[-3] ^ 1,)) + data[-2:]


def zero(data: bytes) -> bytes:
    return data[:-20] + bytes(20)


def cut_in_header(data: bytes) -> bytes:
    *_, last = split_batches(data)
    return data[: len(data) - last.size + 10]


def and_zeros(data: bytes) -> bytes:
    """As a file system leaves a file that grew before its bytes were written."""
    return data + bytes(4096)


def and_half_a_batch(data: bytes) -> bytes:
    return data + data[: len(data) // 3]


def and_noise(data: bytes) -> bytes:
    return data + random.Random(SEED).randbytes(5000)


Damage = Callable[[bytes], bytes]
LOSES_ONE: list[Damage] = [cut, flip, zero, cut_in_header]
LOSES_NONE: list[Damage] = [and_zeros, and_half_a_batch, and_noise]
RECORDS = 10


class Log:
    """One partition, accessed without a client library."""

    def __init__(self, broker: BrokerProcess, topic: str) -> None:
        self.broker = broker
        self.topic = topic

    def _ask(self, request: Any, version: int) -> Any:
        with Wire(self.broker.address) as wire:
            return wire.ask(request, version)

    def create(self) -> None:
        answer = self._ask(CreateTopicsRequest([CreatableTopic(self.topic, 1, 1)]), 7)
        assert not errors_in(answer)

    def produce(self, value: bytes) -> int:
        m = produce_request
        batch = encode_batch([(b"key", value)], timestamp=time.time_ns() // 1_000_000)
        data = m.TopicProduceData(self.topic, partition_data=[m.PartitionProduceData(0, batch)])
        answer = self._ask(m.ProduceRequest(None, -1, 5000, [data]), 9)
        part = answer.responses[0].partition_responses[0]
        assert part.error_code == 0
        return int(part.base_offset)

    def end(self) -> int:
        m = list_offsets_request
        wanted = m.ListOffsetsPartition(0, timestamp=-1)
        answer = self._ask(
            m.ListOffsetsRequest(-1, 0, [m.ListOffsetsTopic(self.topic, [wanted])]), 7
        )
        return int(answer.topics[0].partitions[0].offset)

    def leader_epoch(self) -> int:
        answer = self._ask(MetadataRequest([MetadataRequestTopic(name=self.topic)]), 12)
        return int(answer.topics[0].partitions[0].leader_epoch)

    def epoch_end(self, epoch: int) -> tuple[int, int]:
        m = offset_for_leader_epoch_request
        wanted = m.OffsetForLeaderPartition(0, -1, epoch)
        topics = [m.OffsetForLeaderTopic(self.topic, [wanted])]
        answer = self._ask(m.OffsetForLeaderEpochRequest(-2, topics), 4)
        part = answer.topics[0].partitions[0]
        assert part.error_code == 0
        return part.leader_epoch, part.end_offset

    def fetch(self, offset: int, last_epoch: int = -1) -> Any:
        m = fetch_request
        wanted = m.FetchPartition(
            0, fetch_offset=offset, last_fetched_epoch=last_epoch, partition_max_bytes=1 << 20
        )
        request = m.FetchRequest(
            max_wait_ms=0, max_bytes=1 << 20, session_epoch=-1,
            topics=[m.FetchTopic(self.topic, partitions=[wanted])],
        )  # fmt: skip
        return self._ask(request, 12).responses[0].partitions[0]

    def values(self) -> list[bytes]:
        found, offset = [], 0
        while offset < self.end():
            for batch in split_batches(self.fetch(offset).records):
                found += [bytes(record.value or b"") for record in decode_records(batch)]
                offset = batch.last_offset + 1
        return found

    def damage(self, how: Damage) -> None:
        (segment,) = (self.broker.directory / f"{self.topic}-0").glob("*.log")
        segment.write_bytes(how(segment.read_bytes()))


def value(number: int) -> bytes:
    return b"%d" % number


@pytest.fixture
def torn(tmp_path: Path) -> Iterator[BrokerProcess]:
    with broker_at(tmp_path) as broker:
        yield broker


def test_only_the_damaged_end_is_lost(torn: BrokerProcess) -> None:
    logs = {}
    for how in LOSES_ONE + LOSES_NONE:
        log = logs[how] = Log(torn, how.__name__)
        log.create()
        for number in range(RECORDS):
            assert log.produce(value(number)) == number
    epochs = {how: log.leader_epoch() for how, log in logs.items()}
    torn.kill()
    for how, log in logs.items():
        log.damage(how)
    torn.start()
    for how, log in logs.items():
        kept = RECORDS - 1 if how in LOSES_ONE else RECORDS
        epoch = epochs[how]
        assert log.end() == kept, how
        assert log.values() == [value(number) for number in range(kept)]
        assert log.leader_epoch() > epoch
        assert log.epoch_end(epoch) == (epoch, kept)
        # A reader that had read the lost record asks for what comes after it.
        answer = log.fetch(RECORDS)
        expected = Code.OFFSET_OUT_OF_RANGE if kept < RECORDS else Code.NONE
        assert answer.error_code == expected
        # Another record replaces the lost one, and the reader learns where the logs diverge.
        for number in range(2):
            assert log.produce(value(100 + number)) == kept + number
        parted = log.fetch(RECORDS, epoch).diverging_epoch
        assert (parted.epoch, parted.end_offset) == ((epoch, kept) if kept < RECORDS else (-1, -1))
        assert log.values()[kept:] == [value(100), value(101)]


def test_the_clean_part_is_unchanged(torn: BrokerProcess) -> None:
    """What was synced before a clean shutdown is not checked again; the next kill still loses
    nothing."""
    log = Log(torn, "topic")
    log.create()
    log.produce(value(0))
    assert torn.terminate() == 0
    for number in range(1, 4):
        torn.start()
        assert log.produce(value(number)) == number
        torn.kill()
    torn.start()
    assert log.values() == [value(number) for number in range(4)]


def test_the_metadata_log_is_torn(torn: BrokerProcess) -> None:
    """Half a batch at its end was never acknowledged."""
    Log(torn, "before").create()
    torn.kill()
    directory = torn.directory / "__cluster_metadata-0"
    *_, segment = sorted(directory.glob("*.log"))
    *_, last = split_batches(segment.read_bytes())
    for rest in (bytes(last.buffer)[:-5], bytes(100), b"\xff" * 61):
        with segment.open("ab") as file:
            file.write(rest)
        torn.start()
        assert Log(torn, "before").end() == 0
        Log(torn, f"after-{len(rest)}").create()
        torn.kill()
        *_, segment = sorted(directory.glob("*.log"))
    torn.start()
    with Wire(torn.address) as wire:
        topics = {topic.name for topic in wire.ask(MetadataRequest(None)).topics}
    assert {"before", "after-100", "after-61"} <= topics
    assert len(topics) == 4
