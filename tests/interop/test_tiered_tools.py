"""Kafka's own scenarios of tiered storage, with its tools and clients, on skylog.

The names are those of Kafka's tests (org.apache.kafka.tiered.storage.integration). Segments hold
one batch, and local segments go as soon as they are copied.
"""

from __future__ import annotations

import itertools
import re
import shutil
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from confluent_kafka import Producer

from tests.interop.clients import Client, Confluent, Program, java_client
from tests.interop.support import JavaTools, Node
from tests.interop.tiered import start_tiered_skylog

pytestmark = [pytest.mark.interop, pytest.mark.timeout(180)]

TINY = {
    "segment.index.bytes": "12",
    "index.interval.bytes": "1",
    "file.delete.delay.ms": "0",
    "remote.storage.enable": "true",
    "local.retention.bytes": "1",
}
SPECS = ("latest", "earliest", "max-timestamp", "earliest-local", "latest-tiered",
         "earliest-pending-upload")  # fmt: skip
WAIT_SECONDS_MAX = 60
_NUMBERS = itertools.count()


def wait(condition: Callable[[], bool], tell: Callable[[], str]) -> None:
    deadline = time.monotonic() + WAIT_SECONDS_MAX
    while not condition():
        assert time.monotonic() < deadline, tell()
        time.sleep(0.05)


@dataclass
class Site:
    """One skylog, Kafka's tools, and the directory of its store."""

    directory: Path
    node: Node
    tool: JavaTools

    def create(self, partitions: int = 1, **changed: str) -> str:
        name = f"tiered{next(_NUMBERS)}"
        configs = {**TINY, **{key.replace("_", "."): value for key, value in changed.items()}}
        given = [part for item in configs.items() for part in ("--config", "=".join(item))]
        self.tool("topics", "--create", "--topic", name, "--partitions", str(partitions), *given)
        return name

    def alter(self, topic: str, *changes: str) -> None:
        self.tool("configs", *self._alter(topic, *changes))

    def refused(self, topic: str, *changes: str) -> str:
        """What the tool says of changes that are not allowed."""
        ran = self.tool.run("configs", *self._alter(topic, *changes))
        assert ran.code != 0
        return ran.text

    def _alter(self, topic: str, *changes: str) -> tuple[str, ...]:
        return (
            "--alter",
            "--entity-type",
            "topics",
            "--entity-name",
            topic,
            "--add-config",
            ",".join(changes),
        )

    def produce(
        self, topic: str, numbers: range, partition: int = 0, at: int | None = None
    ) -> None:
        """A batch for each number."""
        producer = Producer({"bootstrap.servers": self.node.bootstrap, "batch.num.messages": 1})
        at = int(time.time() * 1000) if at is None else at
        for number in numbers:
            producer.produce(topic, b"%d" % number, partition=partition, timestamp=at + number)
        assert producer.flush(30) == 0

    def offset(self, topic: str, spec: str, partition: int = 0) -> int | None:
        """What kafka-get-offsets says; None if there is no such offset."""
        ran = self.tool(
            "get-offsets", "--topic", topic, "--partitions", str(partition), "--time", spec
        )
        found = re.search(rf"^{topic}:{partition}:(-?\d*)$", ran.out, re.MULTILINE)
        return int(found[1]) if found and found[1] else None

    def settle(self, topic: str, spec: str, wanted: int | None, partition: int = 0) -> None:
        wait(
            lambda: self.offset(topic, spec, partition) == wanted,
            lambda: f"{topic} {spec}: {self.offset(topic, spec, partition)}, not {wanted}",
        )

    def remote(self, topic: str, partition: int = 0) -> list[int]:
        """The base offsets of segments in the store."""
        store = self.directory / "remote" / "kafka-tiered-storage"
        return sorted(int(path.name[:20]) for path in store.glob(f"{topic}-{partition}-*/*.log"))

    def local(self, topic: str, partition: int = 0) -> list[int]:
        directory = self.directory / "data" / f"{topic}-{partition}"
        return sorted(int(path.name[:20]) for path in directory.glob("*.log"))

    def await_remote(self, topic: str, wanted: list[int], partition: int = 0) -> None:
        wait(
            lambda: self.remote(topic, partition) == wanted,
            lambda: f"{topic}: {self.remote(topic, partition)}, not {wanted}",
        )

    def start(self) -> None:
        """Again, at the same address."""
        self.node = _start(self.directory, int(self.node.bootstrap.rpartition(":")[2]))


def _start(directory: Path, port: int = 0) -> Node:
    listeners = f"PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:0"
    return start_tiered_skylog(directory, {"listeners": listeners})


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    directory = tmp_path_factory.mktemp("tiered")
    node = _start(directory)
    tool = JavaTools(node.bootstrap, tmp_path_factory.mktemp("tools") / "log")
    made = Site(directory, node, tool)
    yield made
    tool.close()
    assert made.node.process.alive
    made.node.process.stop()


@pytest.fixture(scope="module")
def consumers(site: Site) -> Iterator[Callable[[], list[Client]]]:
    """librdkafka and Java."""
    java: list[Program] = []

    def both() -> list[Client]:
        if not java:
            java.append(java_client(site.node.bootstrap))
        return [Confluent(site.node.bootstrap), java[0]]

    yield both
    for one in java:
        one.close()


def values(client: Client, topic: str, count: int) -> list[bytes | None]:
    return [record.value for record in client.consume(topic, count)]


def numbers(found: range) -> list[bytes]:
    return [b"%d" % number for number in found]


def test_offload_and_consume_from_leader(site: Site, consumers: Callable[[], list[Client]]) -> None:
    topic = site.create()
    site.produce(topic, range(6))
    site.await_remote(topic, [0, 1, 2, 3, 4])
    site.settle(topic, "earliest-local", 5)
    assert site.local(topic) == [5]
    for client in consumers():
        assert values(client, topic, 6) == numbers(range(6))
    ran = site.tool("console-consumer", "--topic", topic, "--from-beginning", "--max-messages", "6")
    assert ran.lines == [f"{number}" for number in range(6)]


def test_list_offsets(site: Site) -> None:
    """All that kafka-get-offsets can ask for, while a topic goes from local to remote."""
    topic = site.create(local_retention_bytes="-2")
    found = [[site.offset(topic, spec) for spec in SPECS]]
    site.produce(topic, range(1))
    found.append([site.offset(topic, spec) for spec in SPECS])
    site.produce(topic, range(1, 4))
    site.await_remote(topic, [0, 1, 2])
    site.settle(topic, "latest-tiered", 2)
    found.append([site.offset(topic, spec) for spec in SPECS])
    site.alter(topic, "local.retention.bytes=1")
    site.settle(topic, "earliest-local", 3)
    found.append([site.offset(topic, spec) for spec in SPECS])
    assert found == [
        [0, 0, None, 0, None, None],
        [1, 0, 0, 0, None, 0],
        [4, 0, 3, 0, 2, 3],
        [4, 0, 3, 3, 2, 3],
    ]


def test_offsets_by_time(site: Site) -> None:
    topic, at = site.create(), int(time.time() * 1000) - 60_000
    for number in range(5):
        site.produce(topic, range(number, number + 1), at=at + 999 * number)
    site.settle(topic, "earliest-local", 4)
    asked = (at - 10, at, at + 500, at + 1000, at + 2500, at + 4000, at + 4001)
    assert [site.offset(topic, str(one)) for one in asked] == [0, 0, 1, 1, 3, 4, None]


def test_roll_and_offload_active_segment(site: Site) -> None:
    """A segment that is not full, but older than local retention."""
    topic = site.create(
        segment_index_bytes="1200", local_retention_ms="1000", local_retention_bytes="-2"
    )
    site.produce(topic, range(3), at=int(time.time() * 1000) - 60_000)
    site.await_remote(topic, [0])
    site.settle(topic, "earliest-local", 3)
    assert site.offset(topic, "latest-tiered") == 2
    assert site.offset(topic, "earliest-pending-upload") is None
    assert values(Confluent(site.node.bootstrap), topic, 3) == numbers(range(3))


def test_offload_and_transactional_consume_from_leader(site: Site) -> None:
    topic = site.create()
    producer = Producer(
        {
            "bootstrap.servers": site.node.bootstrap,
            "transactional.id": topic,
            "batch.num.messages": 1,
        }
    )
    producer.init_transactions(30)
    for number, commit in enumerate((True, False, False, True)):
        producer.begin_transaction()
        for index in range(2):
            producer.produce(topic, b"%d.%d" % (number, index))
        producer.flush()
        if commit:
            producer.commit_transaction(30)
        else:
            producer.abort_transaction(30)
    # Two records and a marker each.
    site.settle(topic, "earliest-local", 11)
    everything = [f"{number}.{index}" for number in range(4) for index in range(2)]
    committed = [one for one in everything if one[0] in "03"]
    for level, wanted in (("read_uncommitted", everything), ("read_committed", committed)):
        ran = site.tool(
            "console-consumer",
            *("--topic", topic, "--from-beginning", "--isolation-level", level),
            *("--max-messages", str(len(wanted))),
        )
        assert ran.lines == wanted
    aborted = [path for path in _files(site, topic) if path.suffix == ".txnindex"]
    assert sorted(int(path.name[:20]) for path in aborted) == [5, 8]


def _files(site: Site, topic: str) -> list[Path]:
    return list((site.directory / "remote" / "kafka-tiered-storage").glob(f"{topic}-0-*/*"))


def test_transactions_with_tiered_store(site: Site) -> None:
    """An open transaction holds copying back, and a reader of committed records too."""
    topic = site.create()
    open_one = Producer(
        {"bootstrap.servers": site.node.bootstrap, "transactional.id": f"{topic}-1"}
    )
    open_one.init_transactions(30)
    site.produce(topic, range(2))
    open_one.begin_transaction()
    open_one.produce(topic, b"open")
    open_one.flush()
    site.produce(topic, range(3, 6))
    site.settle(topic, "latest-tiered", 1)
    assert site.offset(topic, "earliest-pending-upload") == 2
    site.settle(topic, "earliest-local", 2)
    assert site.local(topic) == [2, 3, 4, 5]
    open_one.commit_transaction(30)
    site.settle(topic, "latest-tiered", 5)
    site.settle(topic, "earliest-local", 6)
    ran = site.tool(
        "console-consumer",
        *("--topic", topic, "--from-beginning", "--isolation-level", "read_committed"),
        *("--max-messages", "6"),
    )
    assert ran.lines == ["0", "1", "open", "3", "4", "5"]


def test_partitions_expand(site: Site, consumers: Callable[[], list[Client]]) -> None:
    topic = site.create()
    site.produce(topic, range(3))
    site.await_remote(topic, [0, 1])
    site.tool("topics", "--alter", "--topic", topic, "--partitions", "3")
    for partition in (1, 2):
        site.produce(topic, range(3), partition)
        site.await_remote(topic, [0, 1], partition)
        site.settle(topic, "earliest-local", 2, partition)
    for client in consumers():
        assert values(client, topic, 9) == numbers(range(3)) * 3


def test_delete_topic(site: Site) -> None:
    topic, other = site.create(2), site.create()
    for partition in (0, 1):
        site.produce(topic, range(4), partition)
    site.produce(other, range(3))
    for partition in (0, 1):
        site.await_remote(topic, [0, 1, 2], partition)
    site.tool("topics", "--delete", "--topic", topic)
    for partition in (0, 1):
        site.await_remote(topic, [], partition)
    assert site.remote(other) == [0, 1]
    # One of the same name knows nothing of the old one.
    given = [part for item in TINY.items() for part in ("--config", "=".join(item))]
    site.tool("topics", "--create", "--topic", topic, *given)
    site.produce(topic, range(10, 12))
    site.await_remote(topic, [0])
    assert values(Confluent(site.node.bootstrap), topic, 2) == numbers(range(10, 12))


def test_enable_remote_log_on_topic(site: Site) -> None:
    topic = site.create(remote_storage_enable="false")
    site.produce(topic, range(4))
    assert site.remote(topic) == []
    site.alter(topic, "remote.storage.enable=true")
    site.await_remote(topic, [0, 1, 2])
    site.settle(topic, "earliest-local", 3)
    assert site.offset(topic, "earliest") == 0
    assert values(Confluent(site.node.bootstrap), topic, 4) == numbers(range(4))


def test_disable_remote_log_on_topic(site: Site) -> None:
    topic = site.create()
    site.produce(topic, range(4))
    site.settle(topic, "earliest-local", 3)
    said = site.refused(topic, "remote.storage.enable=false")
    assert "It is invalid to disable remote storage without deleting remote data." in said
    # To read-only first: what is remote can be read, and nothing more is copied.
    site.alter(topic, "remote.log.copy.disable=true", "local.retention.bytes=-2")
    site.produce(topic, range(4, 6))
    assert values(Confluent(site.node.bootstrap), topic, 6) == numbers(range(6))
    assert site.remote(topic) == [0, 1, 2]
    site.alter(topic, "remote.storage.enable=false", "remote.log.delete.on.disable=true")
    site.await_remote(topic, [])
    site.settle(topic, "earliest", 3)
    assert values(Confluent(site.node.bootstrap), topic, 3) == numbers(range(3, 6))


def test_delete_segments_by_retention_size(site: Site) -> None:
    topic = site.create()
    site.produce(topic, range(5))
    site.await_remote(topic, [0, 1, 2, 3])
    site.alter(topic, "retention.bytes=1")
    site.await_remote(topic, [])
    site.settle(topic, "earliest", 4)


def test_delete_segments_by_retention_time(site: Site) -> None:
    topic = site.create()
    site.produce(topic, range(5), at=int(time.time() * 1000) - 60_000)
    site.await_remote(topic, [0, 1, 2, 3])
    site.alter(topic, "retention.ms=1000", "local.retention.ms=1000")
    site.settle(topic, "earliest", 5)
    site.await_remote(topic, [])


def test_delete_segments_due_to_log_start_offset_breach(
    site: Site, consumers: Callable[[], list[Client]], tmp_path: Path
) -> None:
    topic = site.create(segment_index_bytes="24")
    site.produce(topic, range(7))
    site.await_remote(topic, [0, 2, 4])
    site.settle(topic, "earliest-local", 6)
    plan = tmp_path / "delete.json"
    plan.write_text(
        f'{{"version": 1, "partitions": [{{"topic": "{topic}", "partition": 0, "offset": 3}}]}}'
    )
    ran = site.tool("delete-records", "--offset-json-file", str(plan))
    assert "low_watermark: 3" in ran.out
    site.await_remote(topic, [2, 4])
    assert site.offset(topic, "earliest") == 3
    for client in consumers():
        assert values(client, topic, 4) == numbers(range(3, 7))


CHECKPOINTS = (
    "replication-offset-checkpoint",
    "recovery-point-offset-checkpoint",
    "cleaner-offset-checkpoint",
)


@pytest.mark.parametrize(
    "lost",
    [
        pytest.param(CHECKPOINTS, id="offsets"),
        pytest.param(("leader-epoch-checkpoint",), id="epochs"),
        pytest.param(("log-start-offset-checkpoint",), id="log start"),
    ],
)
def test_fetch_from_leader_with_corrupted_checkpoint(site: Site, lost: tuple[str, ...]) -> None:
    """Nothing is lost with these files. Without its epochs Kafka deletes all remote segments."""
    topic = site.create()
    site.produce(topic, range(4))
    site.settle(topic, "earliest-local", 3)
    site.node.process.stop()
    data = site.directory / "data"
    for name in lost:
        (data / name).unlink(missing_ok=True)
        (data / f"{topic}-0" / name).unlink(missing_ok=True)
    site.start()
    copied = [0, 1, 2]
    wait(
        lambda: site.offset(topic, "earliest") == 0 or site.remote(topic) != copied,
        lambda: f"{topic}: {site.offset(topic, 'earliest')}",
    )
    assert site.remote(topic) == copied
    assert values(Confluent(site.node.bootstrap), topic, 4) == numbers(range(4))
    # What the store has does not go either: several rounds of expiry pass while more is copied.
    site.produce(topic, range(4, 8))
    site.await_remote(topic, list(range(7)))
    assert values(Confluent(site.node.bootstrap), topic, 8) == numbers(range(8))


def test_the_leader_lost_its_disk(site: Site) -> None:
    """Unlike Kafka, which then deletes all remote segments and begins at 0 anew."""
    topic = site.create()
    site.produce(topic, range(4))
    site.settle(topic, "earliest-local", 3)
    site.node.process.stop()
    shutil.rmtree(site.directory / "data" / f"{topic}-0")
    site.start()
    # Offset 3 was local only.
    site.settle(topic, "latest", 3)
    assert values(Confluent(site.node.bootstrap), topic, 3) == numbers(range(3))
    site.produce(topic, range(3, 5))
    site.await_remote(topic, [0, 1, 2, 3])
    assert values(Confluent(site.node.bootstrap), topic, 5) == numbers(range(5))


def test_log_dirs_and_topics_show_what_is_local(site: Site) -> None:
    topic = site.create()
    site.produce(topic, range(5))
    site.settle(topic, "earliest-local", 4)
    shown = site.tool("log-dirs", "--describe", "--topic-list", topic).out
    assert re.search(rf'"partition":"{topic}-0","size":(69|70),', shown), shown
    described = site.tool("topics", "--describe", "--topic", topic).out
    assert "remote.storage.enable=true" in described
