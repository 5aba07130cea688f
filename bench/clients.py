"""The load: librdkafka in a separate process, and Kafka's performance tools.

``python -m bench.clients produce|consume|latency|acks …`` is that process; it prints one JSON line.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from bench.clusters import JVM, ROOT
from bench.measure import MEGABYTE

RECORD_BYTES = 1024
PARTITIONS = 4
LATENCY_RATE = 1000
# 20 MB/s in records that a client in Python can send one by one.
FAST_RATE = 2_000
FAST_RECORD_BYTES = 10_000
# 50 MB/s of them.
FASTER_RATE = 5_000
MEBIBYTE = 1 << 20
CLIENT_SECONDS_MAX = 600
CONSUMED_AT_ONCE = 10_000
# The heap that kafka-producer-perf-test.sh and kafka-consumer-perf-test.sh ask for.
TOOL_HEAP = "-Xmx512M"
# The share of records that Kafka's producer tool sends as a warm-up.
JAVA_WARMUP_SHARE = 5
PLAIN: Mapping[str, Any] = {}
# By default librdkafka fetches nothing for a second once 64 MB wait for the application, so a
# broker that is faster than the application looks slow. With this setting it fetches again at once.
EAGER: Mapping[str, Any] = {"fetch.queue.backoff.ms": 5}
EAGER_NOTE = "fetch.queue.backoff.ms=5"


# -- called by the bench ---------------------------------------------------------------------


def librdkafka(
    role: str,
    bootstrap: str,
    topic: str,
    count: int,
    partitions: int = PARTITIONS,
    *,
    niceness: int = 0,
    seconds_max: float = CLIENT_SECONDS_MAX,
) -> dict[str, float]:
    """Run a client of librdkafka and return its measurements."""
    command = [sys.executable, "-m", "bench.clients", role, bootstrap, topic, str(count)]
    command += ["--partitions", str(partitions)]
    if niceness:
        command = ["nice", "-n", str(niceness), *command]
    result: dict[str, float] = json.loads(output_of(command, role, seconds_max).splitlines()[-1])
    return result


def output_of(command: list[str], name: str, seconds_max: float = CLIENT_SECONDS_MAX) -> str:
    """The output of a client process."""
    done = subprocess.run(
        command,
        check=False,
        capture_output=True,
        text=True,
        cwd=ROOT,
        timeout=seconds_max,
    )
    if done.returncode:
        raise RuntimeError(f"{name} failed:\n{done.stdout[-2000:]}\n{done.stderr[-2000:]}")
    return done.stdout


def _tool(classpath: str, name: str, arguments: list[str]) -> str:
    # Without a configuration, log4j would write about itself to the output with the figures.
    command = ["java", TOOL_HEAP, *JVM, "-cp", classpath, f"org.apache.kafka.tools.{name}"]
    return output_of([*command, *arguments], name)


def java_produce(
    classpath: str,
    bootstrap: str,
    topic: str,
    count: int,
    settings: Mapping[str, str] | None = None,
) -> float:
    """MB/s of ProducerPerformance, without its own warm-up."""
    given = {"bootstrap.servers": bootstrap, "acks": "all", **(settings or {})}
    with tempfile.TemporaryDirectory(prefix="bench-") as directory:
        config = Path(directory) / "producer.properties"
        config.write_text("".join(f"{key}={value}\n" for key, value in given.items()))
        output = _tool(
            classpath,
            "ProducerPerformance",
            ["--topic", topic, "--num-records", str(count), "--record-size", str(RECORD_BYTES),
             "--throughput", "-1", "--warmup-records", str(count // JAVA_WARMUP_SHARE),
             "--command-config", str(config)],
        )  # fmt: skip
    rates = re.findall(r"\(([\d.]+) MB/sec\)", output)
    if not rates:
        raise RuntimeError(f"ProducerPerformance printed no result:\n{output[-2000:]}")
    return float(rates[-1]) * MEBIBYTE / MEGABYTE


def java_consume(classpath: str, bootstrap: str, topic: str, count: int) -> float:
    """MB/s of ConsumerPerformance while it fetches, without the time of joining its group."""
    output = _tool(
        classpath,
        "ConsumerPerformance",
        ["--bootstrap-server", bootstrap, "--topic", topic, "--num-records", str(count),
         "--hide-header", "--timeout", "60000"],
    )  # fmt: skip
    lines = [line.split(", ") for line in output.splitlines() if line.count(", ") >= 9]
    if not lines or int(lines[-1][4]) < count:
        raise RuntimeError(f"ConsumerPerformance did not get {count} records:\n{output[-2000:]}")
    return float(lines[-1][8]) * MEBIBYTE / MEGABYTE


class Topics:
    """Creates and deletes topics, and waits until that is done."""

    def __init__(self, bootstrap: str) -> None:
        self._admin = AdminClient({"bootstrap.servers": bootstrap})

    def create(
        self, names: list[str], partitions: int = PARTITIONS, replicas: int = 1, **configs: str
    ) -> None:
        new = [NewTopic(name, partitions, replicas, config=configs) for name in names]
        for future in self._admin.create_topics(new, request_timeout=60).values():
            future.result()

    def delete(self, names: list[str]) -> None:
        for future in self._admin.delete_topics(names, request_timeout=60).values():
            future.result()


# -- the client's process --------------------------------------------------------------------


def _fail(error: Any) -> None:
    if error is not None:
        raise SystemExit(f"not delivered: {error}")


def produce(bootstrap: str, topic: str, count: int, partitions: int) -> dict[str, float]:
    """Send as fast as the client's queue allows; ends when everything is acknowledged."""
    undelivered: list[KafkaError] = []

    def delivered(error: KafkaError | None, _: Any) -> None:
        if error is not None:
            undelivered.append(error)

    producer = Producer({"bootstrap.servers": bootstrap, "acks": "all"})
    value = os.urandom(RECORD_BYTES)
    for partition in range(partitions):
        producer.produce(topic, value, partition=partition)
    producer.flush()
    started = time.perf_counter()
    for index in range(count):
        while True:
            try:
                producer.produce(topic, value, partition=index % partitions, on_delivery=delivered)
                break
            except BufferError:
                producer.poll(0.01)
    producer.flush()
    seconds = time.perf_counter() - started
    if undelivered:
        raise SystemExit(f"{len(undelivered)} records not delivered: {undelivered[0]}")
    return {"mb_per_second": count * RECORD_BYTES / seconds / MEGABYTE}


def consume(
    bootstrap: str, topic: str, count: int, partitions: int, settings: Mapping[str, Any] = PLAIN
) -> dict[str, float]:
    """Read ``count`` records from the beginning; the time starts with the first."""
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "bench", **settings})
    consumer.assign([TopicPartition(topic, i, OFFSET_BEGINNING) for i in range(partitions)])
    first = consumer.consume(1, 60)
    started = time.perf_counter()
    seen = 0
    while first and seen < count - 1:
        messages = consumer.consume(CONSUMED_AT_ONCE, 30)
        if not messages:
            break
        for message in messages:
            _fail(message.error())
        seen += len(messages)
    seconds = time.perf_counter() - started
    consumer.close()
    if seen < count - 1:
        raise SystemExit(f"only {seen} of {count} records came")
    return {"mb_per_second": seen * RECORD_BYTES / seconds / MEGABYTE}


def latency(bootstrap: str, topic: str, count: int, partitions: int) -> dict[str, float]:
    """From the time when a record was due until the application has it, in ms.

    The schedule waits for nothing, so a stall counts for all records that it delays.
    """
    delays: list[float] = []
    ready = threading.Event()

    def receive() -> None:
        consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "bench"})
        consumer.assign([TopicPartition(topic, i, OFFSET_BEGINNING) for i in range(partitions)])
        while len(delays) < count:
            message = consumer.poll(30)
            if message is None:
                break
            _fail(message.error())
            value = message.value() or b""
            due = int.from_bytes(value[:8], "big")
            if due:
                delays.append((time.perf_counter_ns() - due) / 1e6)
            else:
                ready.set()
        consumer.close()

    producer = Producer({"bootstrap.servers": bootstrap, "acks": "all", "linger.ms": 0})
    receiver = threading.Thread(target=receive)
    receiver.start()
    rest = os.urandom(RECORD_BYTES - 8)
    while not ready.wait(0.05):  # records of time zero until the consumer receives them
        producer.produce(topic, bytes(8) + rest, partition=0)
        producer.flush()
    started = time.perf_counter_ns()
    for index in range(count):
        due = started + index * 1_000_000_000 // LATENCY_RATE
        while (wait := due - time.perf_counter_ns()) > 0:
            producer.poll(0)
            time.sleep(wait / 1e9)
        producer.produce(topic, due.to_bytes(8, "big") + rest, partition=index % partitions)
    producer.flush()
    receiver.join()
    if len(delays) < count:
        raise SystemExit(f"only {len(delays)} of {count} records came")
    settled = delays[count // 5 :]
    ranks = statistics.quantiles(settled, n=100)
    return {"p50_ms": ranks[49], "p99_ms": ranks[98]}


def acks(
    bootstrap: str,
    topic: str,
    count: int,
    partitions: int,
    rate: int = LATENCY_RATE,
    record_bytes: int = RECORD_BYTES,
) -> dict[str, float]:
    """From the time when a record was due until it was acknowledged, in ms."""
    delays: list[float] = []
    producer = Producer({"bootstrap.servers": bootstrap, "acks": "all", "linger.ms": 0})
    value = os.urandom(record_bytes)
    for partition in range(partitions):
        producer.produce(topic, value, partition=partition)
    producer.flush()
    started = time.perf_counter_ns()
    for index in range(count):
        due = started + index * 1_000_000_000 // rate
        while (wait := due - time.perf_counter_ns()) > 0:
            producer.poll(min(wait / 1e9, 0.001))

        def acknowledged(error: KafkaError | None, _: Any, due: int = due) -> None:
            _fail(error)
            delays.append((time.perf_counter_ns() - due) / 1e6)

        producer.produce(topic, value, partition=index % partitions, on_delivery=acknowledged)
    producer.flush()
    ranks = statistics.quantiles(delays[count // 5 :], n=100)
    return {"p50_ms": ranks[49], "p99_ms": ranks[98]}


def main() -> None:
    parser = argparse.ArgumentParser()
    roles: dict[str, Callable[..., dict[str, float]]] = {
        "produce": produce,
        "consume": consume,
        "consume-eagerly": partial(consume, settings=EAGER),
        "latency": latency,
        "acks": acks,
        "acks-fast": partial(acks, rate=FAST_RATE, record_bytes=FAST_RECORD_BYTES),
        "acks-faster": partial(acks, rate=FASTER_RATE, record_bytes=FAST_RECORD_BYTES),
    }
    parser.add_argument("role", choices=roles)
    parser.add_argument("bootstrap")
    parser.add_argument("topic")
    parser.add_argument("count", type=int)
    parser.add_argument("--partitions", type=int, default=PARTITIONS)
    given = parser.parse_args()
    role = roles[given.role]
    print(json.dumps(role(given.bootstrap, given.topic, given.count, given.partitions)))


if __name__ == "__main__":
    main()
