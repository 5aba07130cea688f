"""The word count of Kafka Streams: its internal topics, its state, and every word counted once."""

from __future__ import annotations

import struct
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from pathlib import Path

import pytest
from confluent_kafka import (
    Producer,
)

from tests.interop.support import Node, Process, await_equal, java_program, start_skylog
from tests.interop.topics import create_topic, partitions_of, read_topic

# Three programs in sequence, and the machine may be busy.
pytestmark = [pytest.mark.interop, pytest.mark.timeout(400)]

DEMO = "org.apache.kafka.streams.examples.wordcount.WordCountDemo"
INPUT, OUTPUT = "streams-plaintext-input", "streams-wordcount-output"
PARTITIONS = 2
LINES = [
    "all streams lead to Kafka",
    "hello Kafka Streams",
    "join Kafka summit",
    "to be or not to be",
]
SECONDS_MAX = 100
STORE = "streams-wordcount-KSTREAM-AGGREGATE-STATE-STORE-0000000003"


@pytest.fixture
def node(tmp_path: Path) -> Iterator[Node]:
    """The demo's topics have fixed names, so each test has its own node."""
    running = start_skylog(tmp_path / "skylog")
    yield running
    assert running.process.alive
    running.process.stop()


def create_topics(bootstrap: str, of_input: Mapping[str, str] | None = None) -> None:
    create_topic(bootstrap, INPUT, PARTITIONS, of_input)
    create_topic(bootstrap, OUTPUT, PARTITIONS)


def say(bootstrap: str, lines: Iterable[str]) -> None:
    producer = Producer({"bootstrap.servers": bootstrap, "enable.idempotence": True})
    for number, line in enumerate(lines):
        producer.produce(INPUT, line.encode(), partition=number % PARTITIONS)
    assert producer.flush(SECONDS_MAX) == 0


def word_count(directory: Path, bootstrap: str, **settings: object) -> Process:
    """The demo as a user runs it; its state survives from one run to the next."""
    given = {
        "bootstrap.servers": bootstrap,
        "state.dir": directory / "state",
        # Streams does not leave its group: the next run waits until the session of the last one
        # expires.
        "main.consumer.session.timeout.ms": 6000,
        "main.consumer.heartbeat.interval.ms": 1000,
        **{key.replace("_", "."): value for key, value in settings.items()},
    }
    return java_program(directory, DEMO, given)


def updates(bootstrap: str) -> dict[str, list[int]]:
    """All counts of each word so far, in their order."""
    found: dict[str, list[int]] = {}
    for message in read_topic(bootstrap, OUTPUT, PARTITIONS):
        [count] = struct.unpack(">q", message.value())
        found.setdefault(message.key().decode(), []).append(count)
    return found


def words(lines: Iterable[str]) -> list[str]:
    return [word for line in lines for word in line.lower().split()]


def counted(lines: Iterable[str]) -> dict[str, list[int]]:
    """Every word counted once: one update for each of its occurrences."""
    return {word: list(range(1, n + 1)) for word, n in Counter(words(lines)).items()}


def test_word_count(node: Node, tmp_path: Path) -> None:
    create_topics(node.bootstrap)
    lines = LINES * 25
    say(node.bootstrap, lines)
    with word_count(tmp_path, node.bootstrap) as demo:
        await_equal(demo, lambda: updates(node.bootstrap), counted(lines))
        lines += LINES
        say(node.bootstrap, LINES)
        await_equal(demo, lambda: updates(node.bootstrap), counted(lines))

    topics = partitions_of(node.bootstrap)
    internal = {name: partitions for name, partitions in topics.items() if STORE in name}
    assert internal == {f"{STORE}-changelog": PARTITIONS, f"{STORE}-repartition": PARTITIONS}


@pytest.mark.parametrize("source", ["classic", "diskless"])
def test_exactly_once_through_a_kill(source: str, node: Node, tmp_path: Path) -> None:
    """Uncommitted output of a killed run is never read; the next run produces it again."""
    create_topics(node.bootstrap, {"diskless.enable": str(source == "diskless").lower()})
    run = partial(
        word_count,
        tmp_path,
        node.bootstrap,
        processing_guarantee="exactly_once_v2",
        # Streams deletes counted records; here they are needed for the check.
        repartition_purge_interval_ms=600_000,
    )
    dirty = partial(
        read_topic, node.bootstrap, f"{STORE}-repartition", PARTITIONS, "read_uncommitted"
    )
    lines = LINES * 5
    say(node.bootstrap, lines)
    with run() as demo:
        await_equal(demo, lambda: updates(node.bootstrap), counted(lines))
    committed = counted(lines)
    assert len(dirty()) == len(words(lines))

    # This one would commit only after the test: its output is in an open transaction.
    lines += LINES * 5
    say(node.bootstrap, LINES * 5)
    never = {"commit_interval_ms": 600_000, "producer_transaction_timeout_ms": 700_000}
    with run(**never) as demo:
        await_equal(demo, lambda: len(dirty()), len(words(lines)))
        demo.kill()
    assert updates(node.bootstrap) == committed

    lines += LINES
    say(node.bootstrap, LINES)
    with run() as demo:
        await_equal(demo, lambda: updates(node.bootstrap), counted(lines))
    assert len(dirty()) == len(words(lines)) + len(words(LINES * 5)), "written twice, read once"
