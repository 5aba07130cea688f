"""Real clients behind one interface: produce, consume, join a group, administer.

Those in other languages are programs that exchange lines of JSON (go/, js/, java/); those in Python
run in this process.
"""

from __future__ import annotations

import base64
import json
import os
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any, Protocol

from tests.interop.support import CACHE, HERE, java

WAIT_SECONDS_MAX = 40
KAFKAJS = "kafkajs-2.2.4"


@dataclass(frozen=True)
class Record:
    """What a producer sends and a consumer must get, byte for byte."""

    partition: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...] = ()
    offset: int = field(default=-1, compare=False)


class ClientError(Exception):
    """An error of a client in another language."""


class Member(Protocol):
    """A member of a group, which consumes in the background."""

    def look(self) -> tuple[list[int], list[Record]]:
        """Its partitions, and the records since the last call."""
        ...

    def commit(self) -> None: ...

    def leave(self) -> None: ...


class Client(Protocol):
    """A Kafka client library."""

    def produce(
        self, topic: str, records: Sequence[Record], codec: str = "none", **more: Any
    ) -> list[int]: ...

    def consume(self, topic: str, count: int, millis: int | None = None) -> list[Record]: ...

    def join(self, topic: str, group: str, **more: Any) -> Member: ...

    def close(self) -> None: ...


def await_that(condition: Callable[[], Any], what: str) -> Any:
    """Polls a condition until it is true: foreign code has no event to wait for."""
    deadline = time.monotonic() + WAIT_SECONDS_MAX
    while time.monotonic() < deadline:
        found = condition()
        if found:
            return found
        time.sleep(0.02)
    raise AssertionError(f"not in {WAIT_SECONDS_MAX} s: {what}")


# -- in other languages ------------------------------------------------------------------------


def _text(data: bytes | None) -> str | None:
    return None if data is None else base64.b64encode(data).decode()


def _bytes(text: str | None) -> bytes | None:
    return None if text is None else base64.b64decode(text)


def _to_json(record: Record) -> dict[str, Any]:
    return {
        "partition": record.partition,
        "timestamp": record.timestamp,
        "key": _text(record.key),
        "value": _text(record.value),
        "headers": [{"key": key, "value": _text(value)} for key, value in record.headers],
    }


def _from_json(found: dict[str, Any]) -> Record:
    headers = tuple((h["key"], _bytes(h["value"])) for h in found["headers"] or ())
    return Record(
        found["partition"],
        found["timestamp"],
        _bytes(found["key"]),
        _bytes(found["value"]),
        headers,
        found["offset"],
    )


class Program:
    """A client in another language."""

    def __init__(self, command: list[str], **environment: str) -> None:
        self._members = 0
        self._child = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, **environment},
        )

    def __call__(self, do: str, **values: Any) -> Any:
        """Run one command; raises ClientError with the client's message."""
        assert self._child.stdin is not None
        assert self._child.stdout is not None
        given = {name: value for name, value in values.items() if value is not None}
        self._child.stdin.write(json.dumps({"do": do, **given}) + "\n")
        self._child.stdin.flush()
        line = self._child.stdout.readline()
        assert line, "the client's process ended"
        answer = json.loads(line)
        if "error" in answer:
            raise ClientError(answer["error"])
        return answer["ok"]

    def produce(
        self, topic: str, records: Sequence[Record], codec: str = "none", **more: Any
    ) -> list[int]:
        sent = [_to_json(record) for record in records]
        found: list[int] = self("produce", topic=topic, records=sent, codec=codec, **more)
        return found

    def consume(self, topic: str, count: int, millis: int | None = None) -> list[Record]:
        return [_from_json(one) for one in self("consume", topic=topic, count=count, millis=millis)]

    def join(self, topic: str, group: str, **more: Any) -> Member:
        self._members += 1
        name = f"member{self._members}"
        self("join", topic=topic, group=group, member=name, **more)
        return ProgramMember(self, name)

    def close(self) -> None:
        """May be called twice."""
        if self._child.returncode is None:
            self._child.kill()
            self._child.communicate()


@dataclass
class ProgramMember:
    program: Program
    name: str

    def look(self) -> tuple[list[int], list[Record]]:
        seen = self.program("look", member=self.name)
        return seen["partitions"], [_from_json(one) for one in seen["records"]]

    def commit(self) -> None:
        self.program("commit", member=self.name)

    def leave(self) -> None:
        self.program("leave", member=self.name)


def franz_go(bootstrap: str) -> Program:
    return Program([str(CACHE / "franz-go-client"), bootstrap])


def kafkajs(bootstrap: str) -> Program:
    modules = str(CACHE / KAFKAJS / "node_modules")
    return Program(["node", str(HERE / "js" / "client.js"), bootstrap], NODE_PATH=modules)


def java_client(bootstrap: str) -> Program:
    source = str(HERE / "java" / "Client.java")
    return Program(java(source, bootstrap, heap="512m", level="OFF"))


# -- in Python ---------------------------------------------------------------------------------


class ThreadMember:
    """A member whose consumer is used by one thread, which polls and executes requests."""

    def __init__(
        self,
        poll: Callable[[], list[Record]],
        partitions: Callable[[], list[int]],
        commit: Callable[[], None],
        close: Callable[[], None],
    ) -> None:
        self._poll, self._partitions = poll, partitions
        self._commit, self._close = commit, close
        self._records: list[Record] = []
        self._owned: list[int] = []
        self._wishes: list[tuple[Callable[[], None], threading.Event]] = []
        self._lock = threading.Lock()
        self._leaving = False
        self._failure: BaseException | None = None
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        try:
            while not self._leaving:
                found = self._poll()
                with self._lock:
                    self._records += found
                    self._owned = self._partitions()
                    wishes, self._wishes = self._wishes, []
                for wish, done in wishes:
                    wish()
                    done.set()
        except BaseException as error:  # noqa: BLE001 - told to whoever looks next
            self._failure = error
        finally:
            self._close()

    def look(self) -> tuple[list[int], list[Record]]:
        if self._failure is not None:
            raise self._failure
        with self._lock:
            found, self._records = self._records, []
            return sorted(self._owned), found

    def commit(self) -> None:
        done = threading.Event()
        with self._lock:
            self._wishes.append((self._commit, done))
        while not done.wait(0.1):
            assert self._thread.is_alive(), self._failure

    def leave(self) -> None:
        self._leaving = True
        self._thread.join(WAIT_SECONDS_MAX)
        assert not self._thread.is_alive()


class Confluent:
    """librdkafka."""

    def __init__(self, bootstrap: str) -> None:
        self.bootstrap = bootstrap

    def produce(
        self, topic: str, records: Sequence[Record], codec: str = "none", **more: Any
    ) -> list[int]:
        from confluent_kafka import Producer

        given = {
            "bootstrap.servers": self.bootstrap,
            "compression.type": codec,
            "linger.ms": 20,
            "message.timeout.ms": 20_000,
            "message.max.bytes": 4_000_000,
        }
        acks = more.get("acks")
        given |= {"enable.idempotence": True} if acks is None else {"acks": acks}
        producer = Producer(given)
        offsets: dict[int, int] = {}
        errors: list[Any] = []

        def delivered(index: int, error: Any, message: Any) -> None:
            if error is not None:
                errors.append(error)
            else:
                offsets[index] = message.offset()

        for index, record in enumerate(records):
            producer.produce(
                topic,
                partition=record.partition,
                key=record.key,
                value=record.value,
                timestamp=record.timestamp,
                headers=list(record.headers),
                on_delivery=lambda error, message, index=index: delivered(index, error, message),
            )
        assert producer.flush(WAIT_SECONDS_MAX) == 0
        if errors:
            raise ClientError(str(errors[0]))
        return [offsets[index] for index in range(len(records))]

    def _consumer(self, group: str, **more: Any) -> Any:
        from confluent_kafka import Consumer

        given = {
            "bootstrap.servers": self.bootstrap,
            "group.id": group,
            "enable.auto.commit": False,
            "auto.offset.reset": "earliest",
            "heartbeat.interval.ms": 200,
            "session.timeout.ms": 10_000,
            "fetch.wait.max.ms": 50,
            **more,
        }
        return Consumer(given)

    def consume(self, topic: str, count: int, millis: int | None = None) -> list[Record]:
        from confluent_kafka import TopicPartition

        consumer = self._consumer("not a group")
        partitions = consumer.list_topics(topic, 10).topics[topic].partitions
        where = [
            TopicPartition(topic, index, 0 if millis is None else millis) for index in partitions
        ]
        if millis is not None:
            where = consumer.offsets_for_times(where, 10)
        consumer.assign(where)
        found: list[Record] = []
        await_that(lambda: found.extend(_polled(consumer)) or len(found) >= count, "all records")
        consumer.close()
        return sorted(found, key=lambda one: (one.partition, one.offset))

    def join(
        self,
        topic: str,
        group: str,
        assignor: str = "range",
        instance: str | None = None,
        **more: Any,
    ) -> Member:
        extra = {"group.instance.id": instance} if instance else {}
        consumer = self._consumer(group, **{"partition.assignment.strategy": assignor, **extra})
        consumer.subscribe([topic])
        return ThreadMember(
            lambda: _polled(consumer),
            lambda: [one.partition for one in consumer.assignment()],
            lambda: _ignore_no_offset(lambda: consumer.commit(asynchronous=False)),
            consumer.close,
        )

    def close(self) -> None:
        pass


def _ignore_no_offset(commit: Callable[[], Any]) -> None:
    from confluent_kafka import KafkaError, KafkaException

    try:
        commit()
    except KafkaException as error:
        if error.args[0].code() != KafkaError._NO_OFFSET:
            raise


def _polled(consumer: Any) -> list[Record]:
    found = []
    for message in consumer.consume(500, 0.05):
        if message.error():
            raise ClientError(str(message.error()))
        headers = tuple(message.headers() or ())
        found.append(
            Record(
                message.partition(),
                message.timestamp()[1],
                message.key(),
                message.value(),
                headers,
                message.offset(),
            )
        )
    return found


class KafkaPython:
    """kafka-python."""

    def __init__(self, bootstrap: str) -> None:
        self.bootstrap = bootstrap

    def produce(
        self, topic: str, records: Sequence[Record], codec: str = "none", **more: Any
    ) -> list[int]:
        from kafka import KafkaProducer

        acks = more.get("acks")
        given = (
            {"enable_idempotence": True}
            if acks is None
            else {"acks": int(acks), "enable_idempotence": False}
        )
        producer = KafkaProducer(
            bootstrap_servers=self.bootstrap,
            linger_ms=20,
            max_request_size=4_000_000,
            compression_type=None if codec == "none" else codec,
            **given,
        )
        try:
            sent = [
                producer.send(
                    topic,
                    record.value,
                    record.key,
                    list(record.headers),
                    record.partition,
                    record.timestamp,
                )
                for record in records
            ]
            return [one.get(WAIT_SECONDS_MAX).offset for one in sent]
        finally:
            producer.close(5)

    def _consumer(self, **more: Any) -> Any:
        from kafka import KafkaConsumer

        return KafkaConsumer(
            bootstrap_servers=self.bootstrap,
            enable_auto_commit=False,
            auto_offset_reset="earliest",
            fetch_max_wait_ms=50,
            # If it misses a new topic's metadata, it soon refreshes it.
            metadata_max_age_ms=1_000,
            **more,
        )

    @staticmethod
    def _polled(consumer: Any) -> list[Record]:
        return [
            Record(m.partition, m.timestamp, m.key, m.value, tuple(m.headers), m.offset)
            # A poll that ends while the group is joined loses the assignment: kafka-python 3.0.12.
            for messages in consumer.poll(1000).values()
            for m in messages
        ]

    def consume(self, topic: str, count: int, millis: int | None = None) -> list[Record]:
        from kafka import TopicPartition

        consumer = self._consumer(group_id=None)
        where = [TopicPartition(topic, index) for index in consumer.partitions_for_topic(topic)]
        consumer.assign(where)
        consumer.seek_to_beginning(*where)
        if millis is not None:
            for one, found_at in consumer.offsets_for_times(dict.fromkeys(where, millis)).items():
                if found_at is None:
                    consumer.seek_to_end(one)
                else:
                    consumer.seek(one, found_at.offset)
        found: list[Record] = []
        await_that(
            lambda: found.extend(self._polled(consumer)) or len(found) >= count, "all records"
        )
        consumer.close()
        return sorted(found, key=lambda one: (one.partition, one.offset))

    def join(
        self,
        topic: str,
        group: str,
        assignor: str = "range",
        instance: str | None = None,
        **more: Any,
    ) -> Member:
        from kafka.coordinator.assignors.range import RangePartitionAssignor
        from kafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor
        from kafka.coordinator.assignors.sticky.sticky_assignor import StickyPartitionAssignor

        assignors = {
            "range": RangePartitionAssignor,
            "roundrobin": RoundRobinPartitionAssignor,
            "sticky": StickyPartitionAssignor,
        }
        extra = {"group_instance_id": instance} if instance else {}
        consumer = self._consumer(
            group_id=group,
            heartbeat_interval_ms=200,
            session_timeout_ms=10_000,
            partition_assignment_strategy=[assignors[assignor]],
            **extra,
        )
        consumer.subscribe([topic])
        return ThreadMember(
            lambda: self._polled(consumer),
            lambda: [one.partition for one in consumer.assignment()],
            consumer.commit,
            consumer.close,
        )

    def close(self) -> None:
        pass


class AioKafka:
    """aiokafka, on its own event loop."""

    def __init__(self, bootstrap: str) -> None:
        import asyncio

        self.bootstrap = bootstrap
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()

    def run(self, coroutine: Any) -> Any:
        import asyncio

        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result(WAIT_SECONDS_MAX)

    def close(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def produce(
        self, topic: str, records: Sequence[Record], codec: str = "none", **more: Any
    ) -> list[int]:
        found: list[int] = self.run(self._produce(topic, records, codec, more.get("acks")))
        return found

    async def _produce(
        self, topic: str, records: Sequence[Record], codec: str, acks: str | None
    ) -> list[int]:
        from aiokafka import AIOKafkaProducer

        given: dict[str, Any] = (
            {"enable_idempotence": True} if acks is None else {"acks": int(acks)}
        )
        producer = AIOKafkaProducer(
            bootstrap_servers=self.bootstrap,
            linger_ms=20,
            max_request_size=4_000_000,
            compression_type=None if codec == "none" else codec,
            **given,
        )
        await producer.start()
        try:
            sent = [
                await producer.send(
                    topic,
                    record.value,
                    record.key,
                    record.partition,
                    record.timestamp,
                    list(record.headers),
                )
                for record in records
            ]
            answers = [await one for one in sent]
            return [answer.offset for answer in answers if answer is not None]
        finally:
            await producer.stop()

    def consume(self, topic: str, count: int, millis: int | None = None) -> list[Record]:
        found: list[Record] = self.run(self._consume(topic, count, millis))
        return sorted(found, key=lambda one: (one.partition, one.offset))

    async def _consume(self, topic: str, count: int, millis: int | None) -> list[Record]:
        from aiokafka import TopicPartition

        consumer = await self._started(group_id=None)
        try:
            where = [
                TopicPartition(topic, index) for index in await self._partitions(consumer, topic)
            ]
            consumer.assign(where)
            await consumer.seek_to_beginning(*where)
            if millis is not None:
                for one, at in (
                    await consumer.offsets_for_times(dict.fromkeys(where, millis))
                ).items():
                    if at is None:
                        await consumer.seek_to_end(one)
                    else:
                        consumer.seek(one, at.offset)
            found: list[Record] = []
            while len(found) < count:
                found += await self._polled(consumer)
            return found
        finally:
            await consumer.stop()

    @staticmethod
    async def _partitions(consumer: Any, topic: str) -> set[int]:
        await consumer._client._wait_on_metadata(topic)
        partitions: set[int] = consumer.partitions_for_topic(topic)
        return partitions

    async def _started(self, *topics: str, **more: Any) -> Any:
        from aiokafka import AIOKafkaConsumer

        consumer = AIOKafkaConsumer(
            *topics,
            bootstrap_servers=self.bootstrap,
            enable_auto_commit=False,
            auto_offset_reset="earliest",
            fetch_max_wait_ms=50,
            **more,
        )
        await consumer.start()
        return consumer

    @staticmethod
    async def _polled(consumer: Any) -> list[Record]:
        return [
            Record(m.partition, m.timestamp, m.key, m.value, tuple(m.headers), m.offset)
            for messages in (await consumer.getmany(timeout_ms=50)).values()
            for m in messages
        ]

    def join(
        self,
        topic: str,
        group: str,
        assignor: str = "range",
        instance: str | None = None,
        **more: Any,
    ) -> Member:
        from aiokafka.coordinator.assignors.range import RangePartitionAssignor
        from aiokafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor
        from aiokafka.coordinator.assignors.sticky.sticky_assignor import StickyPartitionAssignor

        assignors = {
            "range": RangePartitionAssignor,
            "roundrobin": RoundRobinPartitionAssignor,
            "sticky": StickyPartitionAssignor,
        }
        extra = {"group_instance_id": instance} if instance else {}
        consumer = self.run(
            self._started(
                topic,
                group_id=group,
                heartbeat_interval_ms=200,
                session_timeout_ms=10_000,
                partition_assignment_strategy=[assignors[assignor]],
                **extra,
            )
        )
        return ThreadMember(
            lambda: self.run(self._polled(consumer)),  # type: ignore[no-any-return]
            lambda: [one.partition for one in consumer.assignment()],
            lambda: self.run(consumer.commit()),  # type: ignore[no-any-return]
            lambda: self.run(consumer.stop()),  # type: ignore[no-any-return]
        )


CLIENTS: dict[str, Callable[[str], Client]] = {
    "java": java_client,
    "librdkafka": Confluent,
    "aiokafka": AioKafka,
    "kafka-python": KafkaPython,
    "franz-go": franz_go,
    "kafkajs": kafkajs,
}
CODECS = {name: ["none", "gzip", "snappy", "lz4", "zstd"] for name in CLIENTS}
# The others need additional native modules.
CODECS["kafkajs"] = ["none", "gzip", "snappy"]
CODECS["kafka-python"] = ["none", "gzip", "lz4", "zstd"]


@contextmanager
def members(*joined: Member) -> Iterator[list[Member]]:
    """Members that always leave at the end."""
    present = list(joined)
    try:
        yield present
    finally:
        for member in present:
            with suppress(Exception):
                member.leave()


def kcat(bootstrap: str, *arguments: str, stdin: bytes = b"") -> bytes:
    """Run kcat, which must succeed."""
    ran = subprocess.run(
        ["kcat", "-b", bootstrap, *arguments],
        input=stdin,
        capture_output=True,
        timeout=60,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr.decode()
    return ran.stdout
