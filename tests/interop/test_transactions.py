"""Transactions of real clients: read_committed sees all or nothing."""

from __future__ import annotations

import asyncio
import re
import subprocess
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.interop.clients import await_that
from tests.interop.support import HERE, JavaTools, Node, java, start_skylog
from tests.interop.topics import create_topic, read_topic

pytestmark = [pytest.mark.interop, pytest.mark.filterwarnings("ignore::DeprecationWarning")]

NewTopic = Callable[..., str]
Name = Callable[[str], str]
PROGRAM_SECONDS_MAX = 110
QUIET: dict[str, Any] = {"log_level": 0}


@pytest.fixture(scope="module")
def impatient(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Node]:
    """A node that often checks for expired transactions."""
    node = start_skylog(
        tmp_path_factory.mktemp("impatient"),
        {"transaction.abort.timed.out.transaction.cleanup.interval.ms": "200"},
    )
    yield node
    assert node.process.alive
    node.process.stop()


def run_java(bootstrap: str, *given: str) -> str:
    """The output of a Java program with Kafka's clients."""
    source = str(HERE / "java" / "Transactions.java")
    ran = subprocess.run(
        java(source, bootstrap, *given, level="WARN"),
        capture_output=True,
        text=True,
        timeout=PROGRAM_SECONDS_MAX,
        check=False,
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return ran.stdout


def librdkafka(bootstrap: str, transactional_id: str, **more: Any) -> Any:
    from confluent_kafka import Producer

    given = {key.replace("_", "."): value for key, value in more.items()}
    settings = {"bootstrap.servers": bootstrap, "transactional.id": transactional_id}
    producer = Producer({**settings, **QUIET, **given})
    producer.init_transactions(30)
    return producer


def send(producer: Any, topic: str, *values: str, partition: int = 0) -> None:
    for value in values:
        producer.produce(topic, value.encode(), b"k", partition)
    assert producer.flush(30) == 0


def consume(
    bootstrap: str, topic: str, *, isolation: str = "read_committed", partitions: int = 1
) -> list[str]:
    """Everything that this reader may read now."""
    found = read_topic(bootstrap, topic, partitions, isolation)
    return [message.value().decode() for message in found]


# librdkafka


def test_committed_and_aborted(bootstrap: str, topic: NewTopic, name: Name) -> None:
    subject = topic(partitions=2)
    producer = librdkafka(bootstrap, name("id"))
    for number in range(6):
        producer.begin_transaction()
        send(producer, subject, f"{number}", partition=0)
        send(producer, subject, f"{number}", partition=1)
        if number % 3 == 2:
            producer.abort_transaction(30)
        else:
            producer.commit_transaction(30)
    expected = Counter({"0": 2, "1": 2, "3": 2, "4": 2})
    read = await_that(
        lambda: Counter(consume(bootstrap, subject, partitions=2)) == expected, "what is committed"
    )
    assert read
    everything = consume(bootstrap, subject, isolation="read_uncommitted", partitions=2)
    assert Counter(everything) == expected + Counter({"2": 2, "5": 2})


def test_open_transactions_are_not_read(bootstrap: str, topic: NewTopic, name: Name) -> None:
    subject = topic()
    producer = librdkafka(bootstrap, name("id"))
    producer.begin_transaction()
    send(producer, subject, "open")
    assert consume(bootstrap, subject) == []
    assert consume(bootstrap, subject, isolation="read_uncommitted") == ["open"]
    producer.commit_transaction(30)
    await_that(lambda: consume(bootstrap, subject) == ["open"], "what is committed")


def test_a_second_producer_fences_the_first(bootstrap: str, topic: NewTopic, name: Name) -> None:
    from confluent_kafka import KafkaError, KafkaException

    subject, transactional_id = topic(), name("id")
    first = librdkafka(bootstrap, transactional_id)
    first.begin_transaction()
    send(first, subject, "of the first")
    second = librdkafka(bootstrap, transactional_id)
    with pytest.raises(KafkaException) as caught:
        first.commit_transaction(30)
    assert caught.value.args[0].code() == KafkaError._FENCED, caught.value
    second.begin_transaction()
    send(second, subject, "of the second")
    second.commit_transaction(30)
    await_that(lambda: consume(bootstrap, subject) == ["of the second"], "the second alone")


def test_a_transaction_that_takes_too_long(impatient: Node, name: Name) -> None:
    from confluent_kafka import KafkaException

    subject = create_topic(impatient.bootstrap, name("topic"))
    slow = name("id")
    producer = librdkafka(impatient.bootstrap, slow, transaction_timeout_ms=1_000)
    producer.begin_transaction()
    send(producer, subject, "too slow")
    await_that(lambda: states(impatient.bootstrap)[slow] == "CompleteAbort", "the time-out")
    with pytest.raises(KafkaException):
        producer.commit_transaction(30)
    assert consume(impatient.bootstrap, subject) == []


def states(bootstrap: str) -> dict[str, str]:
    """The state of each transactional id of a node."""
    from skylog.wire.apis import ApiKey
    from tests.interop.wire import Wire

    host, port = bootstrap.rsplit(":", 1)
    wire = Wire((host, int(port)))
    answer = wire.call(ApiKey.LIST_TRANSACTIONS, 0, state_filters=[], producer_id_filters=[])
    wire.close()
    return {one.transactional_id: one.transaction_state for one in answer.transaction_states}


def test_offsets_go_with_the_transaction(bootstrap: str, topic: NewTopic, name: Name) -> None:
    """Consume, transform, produce: after an abort neither records nor offsets count."""
    from confluent_kafka import Consumer, TopicPartition

    source, target, group = topic(), topic(), name("group")
    writer = librdkafka(bootstrap, name("writer"))
    writer.begin_transaction()
    send(writer, source, *(f"{number}" for number in range(20)))
    writer.commit_transaction(30)
    settings = {
        "bootstrap.servers": bootstrap,
        "group.id": group,
        "auto.offset.reset": "earliest",
        "enable.auto.commit": False,
        "isolation.level": "read_committed",
    }
    consumer = Consumer(settings)
    consumer.subscribe([source])
    producer = librdkafka(bootstrap, name("id"))
    records = []
    while len(records) < 20:
        message = consumer.poll(30)
        assert message is not None
        assert message.error() is None
        records.append(message)
    for commit in (False, True):
        producer.begin_transaction()
        send(producer, target, *(f"{record.value().decode()}!" for record in records))
        offset = TopicPartition(source, 0, records[-1].offset() + 1)
        producer.send_offsets_to_transaction([offset], consumer.consumer_group_metadata(), 30)
        if commit:
            producer.commit_transaction(30)
        else:
            producer.abort_transaction(30)
            [committed] = consumer.committed([TopicPartition(source, 0)], 30)
            assert committed.offset < 0
    await_that(
        lambda: (
            consumer.committed([TopicPartition(source, 0)], 30)[0].offset
            == records[-1].offset() + 1
        ),
        "the committed offset",
    )
    consumer.close()
    expected = [f"{number}!" for number in range(20)]
    await_that(lambda: consume(bootstrap, target) == expected, "each record once")


# Java


def test_java_consumes_transforms_and_produces(bootstrap: str, topic: NewTopic, name: Name) -> None:
    source, target, group = topic(partitions=3), topic(partitions=3), name("group")
    writer = librdkafka(bootstrap, name("writer"))
    writer.begin_transaction()
    for number in range(200):
        send(writer, source, f"{number}", partition=number % 3)
    writer.commit_transaction(30)
    out = run_java(bootstrap, "transform", source, target, group, "200")
    assert "transformed 200" in out
    expected = sorted(f"{number}!" for number in range(200))
    await_that(
        lambda: sorted(consume(bootstrap, target, partitions=3)) == expected, "each record once"
    )


def test_java_producers_fence_each_other(bootstrap: str, topic: NewTopic, name: Name) -> None:
    subject = topic()
    out = run_java(bootstrap, "fence", subject, name("id"))
    assert out.splitlines() == ["fenced", "second committed"]
    await_that(lambda: consume(bootstrap, subject) == ["of the second"], "the second alone")


def test_many_partitions_in_a_transaction(bootstrap: str, topic: NewTopic, name: Name) -> None:
    subject = topic(partitions=50)
    assert run_java(bootstrap, "many", subject, name("id"), "20", "50") == "done\n"
    expected = sorted(f"{n}-{i}" for n in range(20) if n % 4 != 3 for i in range(50))
    await_that(lambda: sorted(consume(bootstrap, subject, partitions=50)) == expected, "15 of 20")


def test_a_producer_that_vanishes(impatient: Node, name: Name) -> None:
    subject = create_topic(impatient.bootstrap, name("topic"))
    vanished = name("id")
    assert run_java(impatient.bootstrap, "vanish", subject, vanished, "1000") == "begun\n"
    producer = librdkafka(impatient.bootstrap, name("id"))
    producer.begin_transaction()
    send(producer, subject, "of another")
    producer.commit_transaction(30)
    # The open one had blocked readers.
    await_that(lambda: consume(impatient.bootstrap, subject) == ["of another"], "the time-out")


# aiokafka


async def test_aiokafka(bootstrap: str, topic: NewTopic, name: Name) -> None:
    from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
    from aiokafka.structs import TopicPartition

    source, target, group = topic(), topic(), name("group")
    producer = AIOKafkaProducer(bootstrap_servers=bootstrap, transactional_id=name("id"))
    await producer.start()
    async with producer.transaction():
        await producer.send_and_wait(source, b"one")
    with pytest.raises(ZeroDivisionError):
        async with producer.transaction():
            await producer.send_and_wait(source, b"two")
            raise ZeroDivisionError
    consumer = AIOKafkaConsumer(
        source,
        bootstrap_servers=bootstrap,
        group_id=group,
        auto_offset_reset="earliest",
        enable_auto_commit=False,
        isolation_level="read_committed",
    )
    await consumer.start()
    record = await asyncio.wait_for(consumer.getone(), 60)
    assert record.value == b"one"
    where = TopicPartition(source, 0)
    async with producer.transaction():
        await producer.send_and_wait(target, b"one!")
        await producer.send_offsets_to_transaction({where: record.offset + 1}, group)
    async with asyncio.timeout(60):
        while await consumer.committed(where) != record.offset + 1:
            pass
    await consumer.stop()
    await producer.stop()
    await asyncio.to_thread(
        await_that, lambda: consume(bootstrap, target) == ["one!"], "what is committed"
    )


# kafka-transactions


def test_transactions_are_listed_and_described(
    bootstrap: str, topic: NewTopic, name: Name, kafka_tool: JavaTools
) -> None:
    subject, transactional_id = topic(), name("listed")
    producer = librdkafka(bootstrap, transactional_id)
    producer.begin_transaction()
    send(producer, subject, "open")
    listed = kafka_tool("transactions", "list").out
    assert re.search(rf"^{transactional_id}\s+1\s+\d+\s+Ongoing", listed, re.MULTILINE), listed
    pattern = kafka_tool("transactions", "list", "--transactional-id-pattern", "listed.*").lines
    assert len(pattern) >= 2
    assert all(line.startswith("listed") for line in pattern[1:])
    long_running = kafka_tool("transactions", "list", "--duration-filter", "3600000").out
    assert transactional_id not in long_running
    described = kafka_tool("transactions", "describe", "--transactional-id", transactional_id).out
    assert re.search(rf"Ongoing\s.*{subject}-0", described, re.DOTALL), described
    producer.commit_transaction(30)


def test_a_hanging_transaction_is_found_and_aborted(
    bootstrap: str, topic: NewTopic, name: Name, kafka_tool: JavaTools
) -> None:
    """A partition has an open transaction that no coordinator knows."""
    subject, transactional_id = topic(), name("hanging")
    producer = librdkafka(bootstrap, transactional_id)
    producer.begin_transaction()
    send(producer, subject, "hanging")
    [found] = [
        line
        for line in kafka_tool(
            "transactions", "describe-producers", "--topic", subject, "--partition", "0"
        ).lines
        if re.match(r"\d", line)
    ]
    fields = found.split()
    start_offset = fields[5]
    assert start_offset == "0", found
    kafka_tool(
        "transactions",
        "abort",
        "--topic",
        subject,
        "--partition",
        "0",
        "--start-offset",
        start_offset,
    )
    after = librdkafka(bootstrap, name("after"))
    after.begin_transaction()
    send(after, subject, "after")
    after.commit_transaction(30)
    await_that(lambda: consume(bootstrap, subject) == ["after"], "the hanging one is gone")


def test_no_transaction_hangs(
    bootstrap: str, topic: NewTopic, name: Name, kafka_tool: JavaTools
) -> None:
    subject = topic()
    producer = librdkafka(bootstrap, name("id"))
    producer.begin_transaction()
    send(producer, subject, "open")
    ran = kafka_tool(
        "transactions", "find-hanging", "--broker-id", "1", "--max-transaction-timeout", "0"
    )
    assert subject not in ran.out, "its coordinator knows it"
    producer.abort_transaction(30)


def test_kafka_reads_the_log(tmp_path: Path, name: Name) -> None:
    """kafka-dump-log decodes the coordinator's records."""
    node = start_skylog(tmp_path, {"transaction.state.log.num.partitions": "1"})
    try:
        subject = create_topic(node.bootstrap, "topic")
        producer = librdkafka(node.bootstrap, "dumped")
        producer.begin_transaction()
        send(producer, subject, "a")
        producer.commit_transaction(30)
        producer.begin_transaction()
        send(producer, subject, "b")
        producer.abort_transaction(30)
    finally:
        node.process.stop()
    log = tmp_path / "data" / "__transaction_state-0" / f"{0:020}.log"
    ran = subprocess.run(
        java(
            "org.apache.kafka.tools.DumpLogSegments",
            "--transaction-log-decoder",
            "--files",
            str(log),
            level="OFF",
        ),
        capture_output=True,
        text=True,
        timeout=PROGRAM_SECONDS_MAX,
        check=False,
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    lines = [line for line in ran.stdout.splitlines() if "dumped" in line]
    assert len(lines) >= 5
    text = "\n".join(lines)
    assert '"transactionStatus"' in text or "state=" in text, text
