"""kill −9 of a broker with diskless topics under load: nothing acknowledged is lost or
duplicated."""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from confluent_kafka import Consumer, KafkaException, TopicPartition

from tests.integration.diskless_node import POINTS
from tests.integration.diskless_support import Load, create_topic, end_offsets, read_all
from tests.ports import free_port

ROOT = Path(__file__).parents[2]
PARTITIONS = 3
SECONDS_MAX = 60.0


class Node:
    """A broker process that may be killed and started again at the same address."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self._port = free_port()
        self._process: subprocess.Popen[str] | None = None

    @property
    def bootstrap(self) -> str:
        return f"127.0.0.1:{self._port}"

    def start(self, *point: str, may_die: bool = False) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.integration.diskless_node",
             str(self.directory), str(self._port), *point],
            stdout=subprocess.PIPE,
            text=True,
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": f"{ROOT / 'src'}:{ROOT}"},
        )  # fmt: skip
        assert self._process.stdout is not None
        ready = self._process.stdout.readline()
        assert may_die or ready == "ready\n"

    def kill(self) -> None:
        if self._process is not None:
            self._process.send_signal(signal.SIGKILL)
            self.wait_dead()

    def wait_dead(self) -> None:
        """Wait until the process is dead."""
        assert self._process is not None
        assert self._process.wait(SECONDS_MAX) == -signal.SIGKILL
        assert self._process.stdout is not None
        self._process.stdout.close()
        self._process = None


@contextmanager
def node(directory: Path) -> Iterator[Node]:
    one = Node(directory)
    try:
        yield one
    finally:
        one.kill()


def check_everything(bootstrap: str, load: Load) -> None:
    history = load.finish()
    assert history.failed == {}
    found = read_all(bootstrap, "t", end_offsets(bootstrap, "t", PARTITIONS))
    history.check(found)
    # The producer retried everything: all that it sent is there.
    assert found == dict(history.sent)


def test_a_crash_at_each_named_point(tmp_path: Path) -> None:
    # DC-29, DC-42 partly, DC-50 partly, ENG-14, ENG-32 partly
    with node(tmp_path) as broker:
        broker.start()
        create_topic(broker.bootstrap, "t", PARTITIONS)
        with Load(broker.bootstrap, "t", PARTITIONS) as load:
            load.wait_for(50)
            broker.kill()
            for number, point in enumerate(POINTS):
                broker.start(point, str(1 + number % 2), may_die=True)
                broker.wait_dead()
            broker.start()
            load.wait_for(50)
            check_everything(broker.bootstrap, load)


def caches(directory: Path) -> list[Path]:
    return sorted((directory / "diskless-coordinators").rglob("state.sqlite*"))


def delete(path: Path, _: Path) -> None:
    path.unlink()


def corrupt(path: Path, _: Path) -> None:
    """Every page but the first has garbage in its middle."""
    data = bytearray(path.read_bytes())
    for at in range(4096 + 2048, len(data), 4096):
        data[at : at + 64] = b"\xa5" * 64
    path.write_bytes(data)


def overwrite(path: Path, _: Path) -> None:
    path.write_bytes(b"no database" * 1_000)


def make_stale(path: Path, old: Path) -> None:
    """As it was before the load began."""
    path.unlink()
    saved = old / path.relative_to(old.parent / "data")
    if saved.exists():
        shutil.copy(saved, path)


DAMAGES: list[Callable[[Path, Path], None]] = [delete, corrupt, overwrite, make_stale]


class Group:
    """A member of a group that commits what it has read, and is replaced after each crash."""

    def __init__(self, bootstrap: str) -> None:
        self._settings = {
            "bootstrap.servers": bootstrap,
            "group.id": "readers",
            "enable.auto.commit": False,
            "auto.offset.reset": "earliest",
            "session.timeout.ms": 6_000,
            "log_level": 0,
        }
        self.read: dict[int, list[bytes]] = {index: [] for index in range(PARTITIONS)}

    def go_on(self, count: int) -> None:
        """Read some more records, from the last commit on, and commit."""
        consumer = Consumer(self._settings)
        consumer.subscribe(["t"])
        deadline = time.monotonic() + SECONDS_MAX
        while count > 0:
            assert time.monotonic() < deadline
            for message in consumer.consume(count, 0.5):
                assert message.error() is None
                values = self.read[message.partition()]
                assert message.offset() == len(values)
                values.append(message.value())
                count -= 1
        ends = [TopicPartition("t", index, len(v)) for index, v in self.read.items()]
        while True:
            try:
                consumer.commit(offsets=ends, asynchronous=False)
                break
            except KafkaException:
                assert time.monotonic() < deadline
        consumer.close()


def test_kills_at_random_moments_with_a_damaged_cache(tmp_path: Path) -> None:
    # DC-26, DC-29, ENG-32 partly
    rng = random.Random(26)
    data, old = tmp_path / "data", tmp_path / "old"
    data.mkdir()
    with node(data) as broker:
        broker.start()
        create_topic(broker.bootstrap, "t", PARTITIONS)
        group = Group(broker.bootstrap)
        with Load(broker.bootstrap, "t", PARTITIONS) as load:
            load.wait_for(20)
            broker.kill()
            shutil.copytree(data, old)
            for damage in DAMAGES:
                broker.start()
                load.wait_for(rng.randrange(20, 1_000))
                group.go_on(60)
                broker.kill()
                for path in caches(data):
                    damage(path, old)
            broker.start()
            load.wait_for(50)
            check_everything(broker.bootstrap, load)
        found = read_all(broker.bootstrap, "t", end_offsets(broker.bootstrap, "t", PARTITIONS))
        for partition, values in group.read.items():
            assert found[partition][: len(values)] == values
