"""Nodes to test against, and Kafka's command line tools."""

from __future__ import annotations

import base64
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import IO, Self

from tests.ports import free_port

HERE = Path(__file__).parent
CACHE = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "skylog"
JARS = os.environ.get("SKYLOG_KAFKA_JARS", str(CACHE / "kafka-4.3.1" / "lib"))
# Kafka's tests: among them the remote storage in a local directory.
TEST_JARS = str(Path(JARS).parent / "test-lib")
START_SECONDS_MAX = 100

SKYLOG = "from skylog.cli.main import main; main()"
# Settings of both brokers, so that only their behaviour can differ.
COMMON = {
    "offsets.topic.num.partitions": "4",
    "offsets.topic.replication.factor": "1",
    "group.initial.rebalance.delay.ms": "0",
    "log.retention.check.interval.ms": "600000",
    # Tests change the node's disk on purpose.
    "auto.create.topics.enable": "true",
}


class Process:
    """A child process whose output goes to a file, and which ends with the test."""

    def __init__(self, command: list[str], log: Path) -> None:
        self.log = log
        with log.open("wb") as output:
            self._child = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT
            )

    def await_line(self, pattern: str) -> re.Match[str]:
        """The first match in the output; a process that is too slow is killed."""
        deadline = time.monotonic() + START_SECONDS_MAX
        while time.monotonic() < deadline:
            text = self.log.read_text(errors="replace")
            found = re.search(pattern, text)
            if found:
                return found
            if self._child.poll() is not None:
                raise AssertionError(f"the process ended: {text[-3000:]}")
            time.sleep(0.05)
        self.kill()
        raise AssertionError(f"no {pattern!r} in {START_SECONDS_MAX} s: {text[-3000:]}")

    @property
    def alive(self) -> bool:
        return self._child.poll() is None

    def kill(self) -> None:
        """SIGKILL."""
        self._child.kill()
        self._child.wait()

    def stop(self) -> None:
        self._child.terminate()
        try:
            self._child.wait(20)
        except subprocess.TimeoutExpired:
            self.kill()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()


@dataclass
class Node:
    """A running broker."""

    bootstrap: str
    process: Process

    @property
    def address(self) -> tuple[str, int]:
        host, port = self.bootstrap.rsplit(":", 1)
        return host, int(port)


def start_skylog(directory: Path, settings: Mapping[str, str] | None = None) -> Node:
    """skylog in a separate process, as a user starts it."""
    given = {
        "listeners": "PLAINTEXT://127.0.0.1:0,CONTROLLER://127.0.0.1:0",
        "http.listener": "",
        "log.dirs": str(directory / "data"),
        **COMMON,
        **(settings or {}),
    }
    overrides = [part for k, v in given.items() for part in ("--override", f"{k}={v}")]
    directory.mkdir(parents=True, exist_ok=True)
    process = Process([sys.executable, "-c", SKYLOG, "server", *overrides], directory / "log")
    return Node(process.await_line(r"skylog is up at (\S+:\d+);")[1], process)


def start_kafka(directory: Path, settings: Mapping[str, str] | None = None) -> Node:
    """Apache Kafka with one node, on a fresh directory or on one that it or skylog has left."""
    broker, controller = free_port(), free_port()
    given = {
        "process.roles": "broker,controller",
        "node.id": "1",
        "listeners": f"PLAINTEXT://127.0.0.1:{broker},CONTROLLER://127.0.0.1:{controller}",
        "controller.listener.names": "CONTROLLER",
        "controller.quorum.bootstrap.servers": f"127.0.0.1:{controller}",
        "log.dirs": str(directory / "data"),
        "transaction.state.log.replication.factor": "1",
        "transaction.state.log.min.isr": "1",
        **COMMON,
        **(settings or {}),
    }
    directory.mkdir(parents=True, exist_ok=True)
    config = directory / "server.properties"
    config.write_text("".join(f"{key}={value}\n" for key, value in given.items()))
    if not (Path(given["log.dirs"]) / "meta.properties").exists():
        formatted = subprocess.run(
            java("kafka.tools.StorageTool", "format", *FORMAT, "-c", str(config)),
            capture_output=True,
            text=True,
            check=False,
        )
        assert formatted.returncode == 0, formatted.stdout + formatted.stderr
    process = Process(java("kafka.Kafka", str(config), heap="512m"), directory / "log")
    process.await_line(r"Kafka Server started")
    return Node(given["listeners"].partition("://")[2].partition(",")[0], process)


CLUSTER = "5L6g3nShT-eMCtK--X86sw"
FORMAT = ("--standalone", "-t", CLUSTER)


def java(main_class: str, *arguments: str, heap: str = "256m", level: str = "INFO") -> list[str]:
    quick = ["-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", f"-Xmx{heap}"]
    # Kafka's test jars would bring their own configuration of logging.
    quick.append(f"-Dlog4j2.configurationFile={HERE / 'java' / 'log4j2.properties'}")
    quick.append(f"-Dorg.apache.logging.log4j.level={level}")
    return ["java", *quick, "-cp", f"{JARS}/*:{TEST_JARS}/*", main_class, *arguments]


def java_program(directory: Path, main_class: str, settings: Mapping[str, object]) -> Process:
    """A program of Kafka's that is configured by a properties file."""
    number = len(list(directory.glob("run-*.log")))
    config = directory / f"run-{number}.properties"
    config.write_text("".join(f"{key}={value}\n" for key, value in settings.items()))
    return Process(java(main_class, str(config)), directory / f"run-{number}.log")


def await_equal(program: Process, look: Callable[[], object], expected: object) -> None:
    """Poll until a program, which must keep running, has done what is expected."""
    deadline = time.monotonic() + START_SECONDS_MAX
    while (found := look()) != expected:
        log = program.log.read_text(errors="replace")
        assert program.alive, log[-3000:]
        assert time.monotonic() < deadline, f"{found}\n{log[-3000:]}"
        time.sleep(0.2)


TOOLS = {
    "topics": "org.apache.kafka.tools.TopicCommand",
    "configs": "kafka.admin.ConfigCommand",
    "api-versions": "org.apache.kafka.tools.BrokerApiVersionsCommand",
    "consumer-groups": "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand",
    "groups": "org.apache.kafka.tools.GroupsCommand",
    "console-producer": "org.apache.kafka.tools.ConsoleProducer",
    "console-consumer": "org.apache.kafka.tools.consumer.ConsoleConsumer",
    "get-offsets": "org.apache.kafka.tools.GetOffsetShell",
    "delete-records": "org.apache.kafka.tools.DeleteRecordsCommand",
    "log-dirs": "org.apache.kafka.tools.LogDirsCommand",
    "metadata-quorum": "org.apache.kafka.tools.MetadataQuorumCommand",
    "features": "org.apache.kafka.tools.FeatureCommand",
    "cluster": "org.apache.kafka.tools.ClusterTool",
    "leader-election": "org.apache.kafka.tools.LeaderElectionCommand",
    "reassign-partitions": "org.apache.kafka.tools.reassign.ReassignPartitionsCommand",
    "acls": "org.apache.kafka.tools.AclCommand",
    "producer-perf": "org.apache.kafka.tools.ProducerPerformance",
    "consumer-perf": "org.apache.kafka.tools.ConsumerPerformance",
    "verifiable-producer": "org.apache.kafka.tools.VerifiableProducer",
    "verifiable-consumer": "org.apache.kafka.tools.VerifiableConsumer",
    "transactions": "org.apache.kafka.tools.TransactionsCommand",
    "client-metrics": "org.apache.kafka.tools.ClientMetricsCommand",
    "end-to-end": "org.apache.kafka.tools.EndToEndLatency",
}


@dataclass
class Ran:
    """The result of a tool."""

    code: int
    out: str
    err: str

    @property
    def text(self) -> str:
        return self.out + self.err

    @property
    def lines(self) -> list[str]:
        return self.out.splitlines()


class JavaTools:
    """Kafka's tools, one after the other in one JVM (see java/Tools.java)."""

    def __init__(self, bootstrap: str, log: Path, ready: Callable[[], None] = lambda: None) -> None:
        """``ready`` runs before each tool, which may ask any broker."""
        self.bootstrap = bootstrap
        self._ready = ready
        command = java(str(HERE / "java" / "Tools.java"), heap="512m", level="OFF")
        with log.open("wb") as errors:
            self._child = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors
            )

    def run(self, tool: str, *arguments: str, stdin: str = "", server: bool = True) -> Ran:
        """Run a tool, which may fail."""
        self._ready()
        where = ["--bootstrap-server", self.bootstrap] if server else []
        # kafka-cluster takes it after the sub-command, others anywhere.
        ordered = [*arguments, *where] if tool == "cluster" else [*where, *arguments]
        fields = [TOOLS[tool], stdin, *ordered]
        pipe_in, pipe_out = self._child.stdin, self._child.stdout
        assert pipe_in is not None
        assert pipe_out is not None
        pipe_in.write(b" ".join(base64.b64encode(f.encode()) or b"-" for f in fields) + b"\n")
        pipe_in.flush()
        return _ran(pipe_out)

    def __call__(self, tool: str, *arguments: str, stdin: str = "", server: bool = True) -> Ran:
        """Run a tool that must succeed."""
        ran = self.run(tool, *arguments, stdin=stdin, server=server)
        assert ran.code == 0, ran.text
        return ran

    def alone(self, tool: str, *arguments: str) -> Ran:
        """Run a tool that must succeed in its own JVM, because it acts when its JVM ends."""
        command = java(TOOLS[tool], "--bootstrap-server", self.bootstrap, *arguments, level="OFF")
        ran = subprocess.run(command, capture_output=True, text=True, timeout=100, check=False)
        assert ran.returncode == 0, ran.stdout + ran.stderr
        return Ran(ran.returncode, ran.stdout, ran.stderr)

    def close(self) -> None:
        self._child.kill()
        self._child.wait()
        for pipe in (self._child.stdin, self._child.stdout):
            if pipe is not None:
                pipe.close()


def _ran(pipe: IO[bytes]) -> Ran:
    line = pipe.readline()
    assert line, "the JVM ended"
    code, *texts = line.split()
    out, err = ("" if t == b"-" else base64.b64decode(t).decode() for t in texts)
    return Ran(int(code), out, re.sub(r"(null\n)?Tools\$Exited\n(\tat .*\n)+", "", err).strip())
