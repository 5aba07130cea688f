"""Transactions: how many per second, and how fast they copy a topic.

``python -m bench.transactions rate|copy …`` is the client of librdkafka; it prints one figure.
"""

from __future__ import annotations

import argparse
import sys
import time
from typing import Any

from confluent_kafka import Consumer, Producer, TopicPartition

from bench import clients
from bench.clusters import JVM, SIDES, Cluster
from bench.measure import MEGABYTE, Figure, Goal, spent
from bench.plan import Plan, both

GOAL = Goal(0.7, higher_is_better=True)
SIZES = (1, 100)
RATE_SECONDS = 6.0
RATE_SECONDS_QUICK = 2.0
COPY_PARTITIONS = 4
RECORD_BYTES = 1024
# The share of a throughput run's records that is copied.
COPY_SHARE = 5
SOURCE = "bench/java/TransactionLoad.java"
CLIENTS = ("Java", "librdkafka")
CALL_SECONDS_MAX = 60
# Records that a transaction of librdkafka copies, as many as Java's consumer hands out at once.
COPY_BATCH = 2_000
# Java's sender checks whether all records are sent, and then whether there is a commit to send. By
# its source, a transaction may begin between the two checks on a busy machine, and then its commit
# is sent first. The coordinator answers with this error; it may have other causes, too.
OVERTAKEN = "InvalidTxnStateException"
ATTEMPTS = 3


def transactions(plan: Plan) -> list[Figure]:
    """Java's producer, with transactions of version 2, and librdkafka's, without."""
    rates = {
        (client, size): Figure(
            f"transactions, {size} partition{'s' if size > 1 else ''} each, {client}",
            "1/s",
            GOAL,
            note="one after the other, a record of 100 bytes for each partition",
        )
        for client in CLIENTS
        for size in SIZES
    }
    cpu = {
        (client, size): Figure(
            f"broker CPU, {size} partition{'s' if size > 1 else ''} each, {client}",
            "ms/transaction",
            None,
        )
        for client in CLIENTS
        for size in SIZES
    }
    copies = {
        client: Figure(
            f"consume, transform, produce, {client}",
            "MB/s",
            GOAL,
            note="records of 1 KiB, at most 2,000 in a transaction",
        )
        for client in CLIENTS
    }
    seconds = RATE_SECONDS_QUICK if plan.quick else RATE_SECONDS
    with both(plan) as clusters:
        for side in SIDES:
            plan.say(f"warm-up of {side}")
            for client in CLIENTS:
                _rate(plan, clusters[side], client, f"warm-{client}", 1, seconds)
        for number, side in plan.turns():
            plan.say(f"transactions, round {number + 1}, {side}")
            cluster = clusters[side]
            for (client, size), figure in rates.items():
                topic = f"rate-{client}-{size}-{number}"
                rate, busy = _rate(plan, cluster, client, topic, size, seconds)
                figure.add(side, rate)
                cpu[client, size].add(side, busy)
            for client, copied in copies.items():
                copied.add(side, _copy(plan, cluster, client, number) / MEGABYTE)
    return [*rates.values(), *cpu.values(), *copies.values()]


def _rate(
    plan: Plan, cluster: Cluster, client: str, topic: str, size: int, seconds: float
) -> tuple[float, float]:
    """Transactions per second, and the broker's CPU for one in milliseconds."""
    topics = clients.Topics(cluster.bootstrap)
    topics.create([topic], partitions=size)
    rates: list[float] = []
    given = ["rate", cluster.bootstrap, topic, str(size), str(seconds)]
    for left in reversed(range(ATTEMPTS)):
        try:
            took = spent(cluster.pid, lambda: rates.append(_client(plan, client, given)))
        except RuntimeError as error:
            if not left or OVERTAKEN not in str(error):
                raise
            plan.say("a commit of Java's failed with INVALID_TXN_STATE: repeating the run")
        else:
            break
    topics.delete([topic])
    # Includes the warm-up, half as long, and the client's start, which costs a broker little.
    return rates[0], took.cpu_seconds * 1000 / (rates[0] * seconds * 1.5)


def _copy(plan: Plan, cluster: Cluster, client: str, number: int) -> float:
    count = plan.records // COPY_SHARE
    source, target = f"from-{client}-{number}", f"to-{client}-{number}"
    topics = clients.Topics(cluster.bootstrap)
    topics.create([source, target], partitions=COPY_PARTITIONS)
    clients.librdkafka("produce", cluster.bootstrap, source, count, COPY_PARTITIONS)
    found = _client(plan, client, ["copy", cluster.bootstrap, source, target, str(count)])
    topics.delete([source, target])
    return found


def _client(plan: Plan, client: str, given: list[str]) -> float:
    if client == "Java":
        command = ["java", "-Xmx512M", *JVM, "-cp", plan.classpath, SOURCE, *given]
    else:
        command = [sys.executable, "-m", "bench.transactions", *given]
    said = clients.output_of(command, client)
    found = [line for line in said.splitlines() if line.startswith("RESULT ")]
    if not found:
        raise RuntimeError(f"{client} printed no result:\n{said[-2000:]}")
    return float(found[-1].split()[1])


# -- the client's process --------------------------------------------------------------------


def _producer(bootstrap: str, transactional_id: str) -> Producer:
    producer = Producer({"bootstrap.servers": bootstrap, "transactional.id": transactional_id})
    producer.init_transactions(CALL_SECONDS_MAX)
    return producer


def rate(bootstrap: str, topic: str, partitions: int, seconds: float) -> float:
    """One transaction after the other, counted after a warm-up."""
    producer = _producer(bootstrap, f"{topic}-id")
    value = bytes(100)
    for limit in (seconds / 2, seconds):
        done, began = 0, time.perf_counter()
        while time.perf_counter() - began < limit:
            producer.begin_transaction()
            for index in range(partitions):
                producer.produce(topic, value, partition=index)
            producer.commit_transaction(CALL_SECONDS_MAX)
            done += 1
        past = time.perf_counter() - began
    return done / past


def copy(bootstrap: str, source: str, target: str, count: int) -> float:
    """Bytes per second that are read, written again and committed with their offsets."""
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": target,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "isolation.level": "read_committed",
        }
    )
    consumer.subscribe([source])
    producer = _producer(bootstrap, f"{target}-id")
    done, size, began = 0, 0, 0.0
    while done < count:
        records: list[Any] = consumer.consume(COPY_BATCH, 0.2)
        if not records:
            continue
        began = began or time.perf_counter()
        producer.begin_transaction()
        offsets = {}
        for record in records:
            if record.error() is not None:
                raise SystemExit(f"not consumed: {record.error()}")
            value = record.value()
            producer.produce(target, value)
            size += len(value)
            offsets[record.partition()] = record.offset() + 1
        positions = [TopicPartition(source, index, offset) for index, offset in offsets.items()]
        metadata = consumer.consumer_group_metadata()
        producer.send_offsets_to_transaction(positions, metadata, CALL_SECONDS_MAX)
        producer.commit_transaction(CALL_SECONDS_MAX)
        done += len(records)
    past = time.perf_counter() - began
    consumer.close()
    return size / past


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.transactions", description=__doc__)
    parser.add_argument("role", choices=["rate", "copy"])
    parser.add_argument("bootstrap")
    parser.add_argument("topic")
    parser.add_argument("more", nargs=2)
    given = parser.parse_args()
    first, second = given.more
    if given.role == "rate":
        found = rate(given.bootstrap, given.topic, int(first), float(second))
    else:
        found = copy(given.bootstrap, given.topic, first, int(second))
    print(f"RESULT {found}")


if __name__ == "__main__":
    main()
