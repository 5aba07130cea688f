"""A data directory and a store with remote segments, handed back and forth.

Kafka makes them and skylog goes on, and the other way round: each serves all that the other left,
copies more, and leaves it to the other.
"""

from __future__ import annotations

import re
import subprocess
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from skylog.wire.apis import ApiKey
from tests.interop.scenarios.remote import (
    EARLIEST,
    EARLIEST_LOCAL,
    EARLIEST_PENDING,
    GONE,
    LATEST,
    LATEST_TIERED,
    MAX_TIMESTAMP,
    SETTLE_SECONDS_MAX,
    START_MS,
    TINY,
    listed,
    offset,
    produce,
    settle,
)
from tests.interop.scenarios.transaction_data import batch as transactional
from tests.interop.scenarios.transactions import Producer, warm
from tests.interop.support import Node, java
from tests.interop.tiered import start_tiered_kafka, start_tiered_skylog
from tests.interop.wire import Side, plain
from tests.ports import free_port

pytestmark = [pytest.mark.interop, pytest.mark.timeout(300)]

NAME = "exchange-topic"
PER_SEGMENT = 3
TOPIC = {**TINY, **GONE, "segment_index_bytes": str(12 * PER_SEGMENT)}
STARTS: dict[str, Callable[..., Node]] = {
    "kafka": start_tiered_kafka,
    "skylog": start_tiered_skylog,
}


@dataclass
class Place:
    """A directory, and the one broker that runs on it at a time."""

    directory: Path
    node: Node | None = None
    side: Side | None = None
    settings: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        broker, controller = free_port(), free_port()
        self.settings = {
            "node.id": "1",
            "listeners": f"PLAINTEXT://127.0.0.1:{broker},CONTROLLER://127.0.0.1:{controller}",
            "controller.quorum.bootstrap.servers": f"127.0.0.1:{controller}",
        }

    def run(self, who: str) -> Side:
        """Stop the one that runs, and start the other."""
        self.stop()
        settings = dict(self.settings)
        if who == "skylog":
            # Kafka opens a log directory only if all directories in it are its own.
            settings["diskless.storage.url"] = f"file://{self.directory}/objects"
        self.node = STARTS[who](self.directory, settings)
        self.side = Side(self.node.address, "exchange")
        return self.side

    def stop(self) -> None:
        if self.side is not None:
            self.side.close()
        if self.node is not None:
            assert self.node.process.alive
            self.node.process.stop()
        self.side = self.node = None


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    made = Place(tmp_path)
    yield made
    if made.node is not None:
        made.node.process.stop()


def transact(side: Side, *, commit: bool) -> None:
    """One transaction of two batches by a new producer."""
    producer = Producer(side, f"producer-{commit}").start()
    producer.add("", [(NAME, [0])])
    for sequence in range(2):
        data = transactional(producer, sequence, b"in a transaction")
        write_quietly(side, producer, data)
    producer.end("", commit=commit, version=3)
    producer.settle()


def write_quietly(side: Side, producer: Producer, data: bytes) -> None:
    answer = side.quiet(
        ApiKey.PRODUCE,
        11,
        acks=-1,
        timeout_ms=30_000,
        transactional_id=producer.name,
        topic_data=[{"name": NAME, "partition_data": [{"index": 0, "records": data}]}],
    )
    assert answer.responses[0].partition_responses[0].error_code == 0, answer


def delete_before(side: Side, wanted: int) -> None:
    answer = side.quiet(
        ApiKey.DELETE_RECORDS,
        2,
        topics=[{"name": NAME, "partitions": [{"partition_index": 0, "offset": wanted}]}],
        timeout_ms=30_000,
    )
    assert answer.topics[0].partitions[0].error_code == 0, answer


def grow(side: Side, count: int) -> int:
    """Records, and both kinds of transactions; waits until all but the last segment is remote."""
    warm(side)
    first = offset(side, NAME, LATEST)
    produce(side, NAME, range(first, first + count))
    transact(side, commit=False)
    transact(side, commit=True)
    end = offset(side, NAME, LATEST)
    produce(side, NAME, range(end, end + 1))
    settle_copied(side, end + 1)
    return end + 1


def settle_copied(side: Side, end: int) -> None:
    """All segments but the active one are remote only."""
    settle(side, NAME, latest=end)
    deadline = time.monotonic() + SETTLE_SECONDS_MAX
    while True:
        tiered, local = (offset(side, NAME, at) for at in (LATEST_TIERED, EARLIEST_LOCAL))
        if local == tiered + 1 and end - local <= PER_SEGMENT:
            return
        assert time.monotonic() < deadline, (end, tiered, local)
        time.sleep(0.05)


def seen(side: Side) -> dict[str, Any]:
    """All that a client can ask, by what it asked."""
    found: dict[str, Any] = {}
    times = [START_MS + 500 * step for step in range(-1, 90)]
    specials = (LATEST, EARLIEST, MAX_TIMESTAMP, EARLIEST_LOCAL, LATEST_TIERED, EARLIEST_PENDING)
    for at in (*specials, *times):
        asked = [{"partition_index": 0, "timestamp": at}]
        topics = [{"name": NAME, "partitions": asked}]
        part = plain(listed(side, 11, topics=topics, timeout_ms=30_000))["topics"][0]["partitions"][
            0
        ]
        if at == LATEST:
            del part["leader_epoch"]  # that of the present leader
        found[f"offset at {at}"] = part
    end = found[f"offset at {LATEST}"]["offset"]
    for isolation in (0, 1):
        for start in range(end + 1):
            asked = [{"partition": 0, "fetch_offset": start, "partition_max_bytes": 1 << 20}]
            answer = side.quiet(
                ApiKey.FETCH,
                12,
                max_wait_ms=0,
                max_bytes=1 << 20,
                isolation_level=isolation,
                session_epoch=-1,
                topics=[{"topic": NAME, "partitions": asked}],
            )
            found[f"from {start}, isolation {isolation}"] = plain(answer)["responses"]
    for epoch in range(12):
        asked = [{"partition": 0, "leader_epoch": epoch, "current_leader_epoch": -1}]
        answer = side.quiet(
            ApiKey.OFFSET_FOR_LEADER_EPOCH, 4, topics=[{"topic": NAME, "partitions": asked}]
        )
        ends = plain(answer)["topics"][0]["partitions"][0]
        if ends["end_offset"] not in (end, -1):
            found[f"end of epoch {epoch}"] = ends
    return found


def settle_and_see(side: Side, end: int) -> dict[str, Any]:
    side.await_leader(NAME, 1)
    settle_copied(side, end)
    return seen(side)


def same(who: str, found: dict[str, Any], left: dict[str, Any]) -> None:
    different = {
        key: (found.get(key), left.get(key))
        for key in {**left, **found}
        if found.get(key) != left.get(key)
    }
    assert not different, "\n".join(
        f"{who}, {key}: {now}, was {was}" for key, (now, was) in different.items()
    )


@pytest.mark.parametrize(("first", "second"), [("kafka", "skylog"), ("skylog", "kafka")])
def test_each_goes_on_with_what_the_other_left(place: Place, first: str, second: str) -> None:
    side = place.run(first)
    side.create("topic", **TOPIC)
    grow(side, 8)
    side = place.run(first)
    side.await_leader(NAME, 1)
    end = grow(side, 8)
    delete_before(side, 4)
    settle(side, NAME, earliest=4)
    left = settle_and_see(side, end)
    assert len(bases(place)) > 5

    # Nothing is different for clients; then more is copied, and more is cut.
    for who in (second, first, second):
        side = place.run(who)
        same(who, settle_and_see(side, end), left)
        end = grow(side, 4)
        # Whole segments: where one is cut after its newest record, Kafka's search by time ends.
        delete_before(side, bases(place)[1])
        left = settle_and_see(side, end)
    place.stop()
    check_metadata(place)


def bases(place: Place) -> list[int]:
    """The first offsets of all remote segments."""
    store = place.directory / "remote" / "kafka-tiered-storage"
    return sorted(int(path.name[:20]) for path in store.glob(f"{NAME}-0-*/*.log"))


def check_metadata(place: Place) -> None:
    """Kafka's tool reads all records of the metadata topic."""
    logs = sorted((place.directory / "data").glob("__remote_log_metadata-*/*.log"))
    logs = [path for path in logs if path.stat().st_size]
    assert logs
    command = java(
        "org.apache.kafka.tools.DumpLogSegments",
        "--remote-log-metadata-decoder",
        "--files",
        ",".join(map(str, logs)),
        level="OFF",
    )
    ran = subprocess.run(command, capture_output=True, text=True, timeout=100, check=False)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    payloads = re.findall(r"payload: (.*)$", ran.stdout, re.MULTILINE)
    assert len(payloads) > 20
    assert all(re.match(r"Remote\w+Metadata\w*\{", one) for one in payloads), payloads
    finished = {
        found[1]
        for one in payloads
        if "COPY_SEGMENT_FINISHED" in one and (found := re.search(r" id=([\w-]{22})", one))
    }
    gone = {
        found[1]
        for one in payloads
        if "DELETE_SEGMENT_FINISHED" in one and (found := re.search(r" id=([\w-]{22})", one))
    }
    store = place.directory / "remote" / "kafka-tiered-storage"
    names = {path.name[21:-4] for path in store.glob(f"{NAME}-0-*/*.log")}
    assert names == finished - gone
