"""Does a node grow? Topics are created and deleted, clients reconnect; memory and files are
measured.

    python -m bench.soak [--minutes 2] [--override NAME=VALUE] [--json FILE]

A node is started with small caches, so that they are full after the warm-up, the first quarter of
the time. The verdict is about the rest: the slope of a line through the minimum of every few
seconds, because memory that the garbage collector has not reached yet is no leak. The exit code is
1 if the node grows, or if it or a client failed.
"""

from __future__ import annotations

import argparse
import contextlib
import itertools
import json
import re
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, NamedTuple

from confluent_kafka import Consumer, KafkaException, Producer
from confluent_kafka.admin import AdminClient, NewTopic

MEBIBYTE: Final = 1 << 20
SAMPLE_SECONDS: Final = 0.5
# The minimum of this many samples counts.
GROUP: Final = 8
WARM_UP: Final = 0.25
# Allowed growth per minute. Caches fill up, allocators add noise, indexes are opened when logs have
# grown; but each minute has hundreds of topics and clients, so a leak is larger.
RESIDENT_PER_MINUTE_MAX: Final = 4 * MEBIBYTE
FILES_PER_MINUTE_MAX: Final = 20.0
PARTITIONS: Final = 3
SETTINGS: Final = {
    "listeners": "PLAINTEXT://127.0.0.1:0,CONTROLLER://127.0.0.1:0",
    "http.listener": "",
    "log.level": "WARN",
    "group.initial.rebalance.delay.ms": "0",
    "offsets.topic.num.partitions": "4",
    "diskless.metadata.topic.num.partitions": "4",
    "diskless.fetch.cache.max.bytes": str(8 * MEBIBYTE),
    "diskless.metadata.snapshot.bytes": str(MEBIBYTE),
    "diskless.commit.age.max.ms": "1000",
    "diskless.coordinator.orphan.scan.grace.period.ms": "2001",
    "diskless.coordinator.orphan.scan.interval.ms": "5000",
    "diskless.file.cleaner.interval.ms": "1000",
    "diskless.retention.check.interval.ms": "1000",
}
_UP: Final = re.compile(rb"skylog is up at (\S+:\d+);")


class Sample(NamedTuple):
    seconds: float
    resident_bytes: int
    files: int
    threads: int


class Growth(NamedTuple):
    """Per minute: the slope of a line through the samples after the warm-up."""

    resident_bytes: float
    files: float

    @property
    def steady(self) -> bool:
        return self.resident_bytes <= RESIDENT_PER_MINUTE_MAX and self.files <= FILES_PER_MINUTE_MAX


def growth(samples: Sequence[Sample]) -> Growth:
    """Pure: how much a process grows."""
    rest = samples[int(len(samples) * WARM_UP) :]
    lows = [
        Sample(
            statistics.mean(one.seconds for one in group),
            min(one.resident_bytes for one in group),
            min(one.files for one in group),
            0,
        )
        for at in range(0, len(rest), GROUP)
        if len(group := rest[at : at + GROUP]) == GROUP
    ]
    if len(lows) < 3:
        raise ValueError(f"{len(samples)} samples are too few for a verdict")
    minutes = [one.seconds / 60 for one in lows]
    return Growth(
        statistics.linear_regression(minutes, [one.resident_bytes for one in lows]).slope,
        statistics.linear_regression(minutes, [one.files for one in lows]).slope,
    )


def look(pid: int, began: float) -> Sample:
    status = Path(f"/proc/{pid}/status").read_text()
    numbers = dict(re.findall(r"^(VmRSS|Threads):\s+(\d+)", status, re.MULTILINE))
    files = sum(1 for _ in Path(f"/proc/{pid}/fd").iterdir())
    resident = int(numbers["VmRSS"]) * 1024
    return Sample(time.monotonic() - began, resident, files, int(numbers["Threads"]))


@dataclass
class Load:
    """Clients of all kinds, each in its own thread, until ``stop``."""

    bootstrap: str
    stop: threading.Event = field(default_factory=threading.Event)
    counts: dict[str, int] = field(default_factory=dict)
    failures: list[str] = field(default_factory=list)
    threads: list[threading.Thread] = field(default_factory=list)

    def start(self) -> None:
        for work in (self.produce, self.produce, self.consume, self.come_and_go, self.knock):
            thread = threading.Thread(target=self._run, args=(work,), name=work.__name__)
            thread.start()
            self.threads.append(thread)

    def join(self) -> None:
        self.stop.set()
        for thread in self.threads:
            thread.join()

    def _run(self, work: Callable[[int], None]) -> None:
        for turn in itertools.count():
            if self.stop.is_set():
                return
            try:
                work(turn)
                self.counts[work.__name__] = self.counts.get(work.__name__, 0) + 1
            except (KafkaException, AssertionError) as error:
                self.failures.append(f"{work.__name__}: {error!r}")

    def _client(self, **more: object) -> dict[str, object]:
        return {"bootstrap.servers": self.bootstrap, "log_level": 0, **more}

    def produce(self, turn: int) -> None:
        """Producers that connect, send for a while and close; every second one is idempotent."""
        producer = Producer(self._client(**{"enable.idempotence": turn % 2 == 0, "linger.ms": 5}))
        for number in range(500):
            producer.produce("kept", b"x" * 1000, partition=number % PARTITIONS)
            producer.poll(0)
        assert producer.flush(30) == 0, "records were not acknowledged"

    def consume(self, turn: int) -> None:
        """Members that join, read, commit and leave; groups are deleted, too."""
        consumer = Consumer(
            self._client(**{"group.id": f"group-{turn % 5}", "auto.offset.reset": "earliest"})
        )
        try:
            consumer.subscribe(["kept"])
            deadline = time.monotonic() + 30
            received = 0
            while received < 500 and time.monotonic() < deadline and not self.stop.is_set():
                received += sum(m.error() is None for m in consumer.consume(500, 0.2))
        finally:
            consumer.close()

    def come_and_go(self, turn: int) -> None:
        """A diskless topic from its creation to its deletion."""
        admin = AdminClient(self._client())
        name = f"short-{turn}"
        wanted = NewTopic(name, PARTITIONS, 1, config={"diskless.enable": "true"})
        for future in admin.create_topics([wanted]).values():
            future.result(30)
        producer = Producer(self._client())
        for partition in range(PARTITIONS):
            producer.produce(name, b"y" * 100, partition=partition)
        assert producer.flush(30) == 0, "records were not acknowledged"
        for future in admin.delete_topics([name]).values():
            future.result(30)

    def knock(self, _turn: int) -> None:
        """Connections that end in different ways."""
        host, _, port = self.bootstrap.rpartition(":")
        for data in (b"", b"\0\0\0\x10garbage", b"\0\0\x10\0" + bytes(100)):
            with contextlib.suppress(OSError), socket.create_connection((host, int(port)), 5) as s:
                s.sendall(data)
        time.sleep(0.05)


def start(directory: str, settings: Sequence[str]) -> tuple[subprocess.Popen[bytes], str]:
    given = [f"{name}={value}" for name, value in SETTINGS.items()]
    given += [f"log.dirs={directory}", *settings]
    overrides = [part for one in given for part in ("--override", one)]
    main = "from skylog.cli.main import main; main()"
    process = subprocess.Popen(
        [sys.executable, "-c", main, "server", *overrides], stdout=subprocess.PIPE
    )
    assert process.stdout is not None
    for line in process.stdout:
        found = _UP.match(line)
        if found is not None:
            return process, found[1].decode()
    raise SystemExit("the node did not start")


def watch(process: subprocess.Popen[bytes], seconds: float) -> list[Sample]:
    began = time.monotonic()
    samples: list[Sample] = []
    while time.monotonic() < began + seconds:
        time.sleep(SAMPLE_SECONDS)
        if process.poll() is not None:
            raise SystemExit(f"the node ended with {process.returncode}")
        samples.append(look(process.pid, began))
        if len(samples) % 20 == 0:
            one = samples[-1]
            mebibytes = one.resident_bytes / MEBIBYTE
            print(
                f"{one.seconds:6.0f} s  {mebibytes:7.1f} MiB resident  {one.files:4} files"
                f"  {one.threads:3} threads",
                flush=True,
            )
    return samples


def run(minutes: float, settings: Sequence[str]) -> tuple[list[Sample], Load]:
    with tempfile.TemporaryDirectory(prefix="skylog-soak-") as directory:
        process, bootstrap = start(directory, settings)
        try:
            load = Load(bootstrap)
            kept = NewTopic(
                "kept",
                PARTITIONS,
                1,
                config={"diskless.enable": "true", "retention.bytes": str(MEBIBYTE)},
            )
            admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": 0})
            for future in admin.create_topics([kept]).values():
                future.result(30)
            load.start()
            try:
                samples = watch(process, minutes * 60)
            finally:
                load.join()
            return samples, load
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(60)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n\n")[0])
    parser.add_argument("--minutes", type=float, default=2.0)
    parser.add_argument("--override", action="append", default=[], metavar="NAME=VALUE")
    parser.add_argument("--json", type=Path, metavar="FILE", help="keep every sample")
    arguments = parser.parse_args()
    samples, load = run(arguments.minutes, arguments.override)
    if arguments.json is not None:
        arguments.json.write_text(json.dumps([one._asdict() for one in samples]))
    found = growth(samples)
    print("done:", ", ".join(f"{name} {count}" for name, count in sorted(load.counts.items())))
    for failure in load.failures[:10]:
        print("failed:", failure)
    print(
        f"{'steady' if found.steady else 'GROWS'}: {found.resident_bytes / MEBIBYTE:+.2f} MiB"
        f" (at most {RESIDENT_PER_MINUTE_MAX / MEBIBYTE:g}) and {found.files:+.1f} files"
        f" (at most {FILES_PER_MINUTE_MAX:g}) in a minute"
    )
    return 0 if found.steady and not load.failures else 1


if __name__ == "__main__":
    sys.exit(main())
