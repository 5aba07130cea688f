"""skylog and Apache Kafka as processes of their own, each as its makers ship it."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from abc import ABC, abstractmethod
from collections.abc import Mapping
from pathlib import Path
from typing import Self

ROOT = Path(__file__).resolve().parent.parent
BYTECODE = Path(tempfile.gettempdir()) / "skylog-bench-bytecode"
CLUSTER_ID = "4L6g3nShT-eMCtK--X86sw"
STOP_SECONDS_MAX = 60
START_SECONDS_MAX = 120

# What kafka-run-class.sh gives every JVM, and kafka-server-start.sh the broker's.
JVM = (
    "-server",
    "-XX:+UseG1GC",
    "-XX:MaxGCPauseMillis=20",
    "-XX:InitiatingHeapOccupancyPercent=35",
    "-XX:+ExplicitGCInvokesConcurrent",
    "-XX:MaxInlineLevel=15",
    "-Djava.awt.headless=true",
)
BROKER_HEAP = ("-Xmx1G", "-Xms1G")

# config/server.properties of the distribution, but for addresses and the directory.
KAFKA_PROPERTIES = """\
process.roles=broker,controller
node.id=1
controller.quorum.bootstrap.servers=127.0.0.1:{controller}
listeners=PLAINTEXT://127.0.0.1:{broker},CONTROLLER://127.0.0.1:{controller}
inter.broker.listener.name=PLAINTEXT
advertised.listeners=PLAINTEXT://127.0.0.1:{broker},CONTROLLER://127.0.0.1:{controller}
controller.listener.names=CONTROLLER
num.network.threads=3
num.io.threads=8
socket.send.buffer.bytes=102400
socket.receive.buffer.bytes=102400
socket.request.max.bytes=104857600
log.dirs={directory}
num.partitions=1
num.recovery.threads.per.data.dir=2
offsets.topic.replication.factor=1
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
log.retention.hours=168
log.segment.bytes=1073741824
log.retention.check.interval.ms=300000
"""


def kafka_classpath() -> str:
    """Kafka's jars, fetched on first use."""
    base = subprocess.run(
        [ROOT / "tools" / "kafka_jars.sh"], check=True, capture_output=True, text=True
    )
    return f"{base.stdout.strip()}/lib/*"


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class Cluster(ABC):
    """A cluster of one node; ``with`` stops it and removes its data."""

    name: str

    def __init__(self) -> None:
        self.directory = Path(tempfile.mkdtemp(prefix=f"bench-{self.name}-"))
        self._ports = free_port(), free_port()
        self._process: subprocess.Popen[bytes] | None = None
        self._output = (self.directory / "output.txt").open("wb")

    @property
    def bootstrap(self) -> str:
        return f"127.0.0.1:{self._ports[0]}"

    @property
    def pid(self) -> int:
        if self._process is None:
            raise RuntimeError(f"{self.name} is not running")
        return self._process.pid

    @abstractmethod
    def prepare(self) -> None:
        """What must happen once before the first start."""

    @abstractmethod
    def command(self) -> list[str]: ...

    def spawn(self) -> None:
        """Start the process; it may not answer yet."""
        environment = {**os.environ, "PYTHONPATH": f"{ROOT / 'src'}:{ROOT}"}
        # As after an installation: bytecode is kept, here beside this run's other files.
        environment.pop("PYTHONDONTWRITEBYTECODE", None)
        environment["PYTHONPYCACHEPREFIX"] = str(BYTECODE)
        self._process = subprocess.Popen(
            self.command(),
            stdout=self._output,
            stderr=subprocess.STDOUT,
            cwd=self.directory,
            env=environment,
        )

    def check_alive(self) -> None:
        if self._process is not None and self._process.poll() is not None:
            said = (self.directory / "output.txt").read_text(errors="replace")
            raise RuntimeError(f"{self.name} ended by itself:\n{said[-4000:]}")

    def wait_ready(self) -> None:
        """Until the broker's port takes connections."""
        self._wait_port(self._ports[0])

    def _wait_port(self, port: int) -> None:
        deadline = time.monotonic() + START_SECONDS_MAX
        while time.monotonic() < deadline:
            self.check_alive()
            try:
                socket.create_connection(("127.0.0.1", port), timeout=1).close()
            except OSError:
                time.sleep(0.02)
            else:
                return
        raise RuntimeError(f"{self.name} did not come up in {START_SECONDS_MAX} s")

    def restart(self) -> None:
        """The same node with nothing in its memory."""
        self._end()
        self.spawn()
        self.wait_ready()

    def _end(self) -> None:
        if self._process is not None:
            self._process.terminate()
            try:
                self._process.wait(STOP_SECONDS_MAX)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
            self._process = None

    def stop(self) -> None:
        self._end()
        self._output.close()
        shutil.rmtree(self.directory, ignore_errors=True)

    def __enter__(self) -> Self:
        try:
            self.prepare()
            self.spawn()
            self.wait_ready()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()


class Skylog(Cluster):
    """With its embedded defaults; only addresses and the directory are given, and what
    ``settings`` says. A put into its object store takes ``put_ms`` longer than it would."""

    name = "skylog"

    def __init__(self, settings: Mapping[str, str] | None = None, put_ms: int = 0) -> None:
        super().__init__()
        self._settings = settings or {}
        self._put_ms = put_ms
        self._http_port = free_port()

    @property
    def metrics_url(self) -> str:
        return f"http://127.0.0.1:{self._http_port}/metrics"

    def prepare(self) -> None:
        """Nothing: it formats its directory when it first starts."""

    def wait_ready(self) -> None:
        """Its metrics come a little after its broker."""
        super().wait_ready()
        self._wait_port(self._http_port)

    def command(self) -> list[str]:
        broker, controller = self._ports
        overrides = {
            "listeners": f"PLAINTEXT://127.0.0.1:{broker},CONTROLLER://127.0.0.1:{controller}",
            "log.dirs": str(self.directory / "data"),
            "http.listener": f"127.0.0.1:{self._http_port}",
            **self._settings,
        }
        arguments = [f"--override={key}={value}" for key, value in overrides.items()]
        entry = ["-c", "from skylog.cli.main import main; main()"]
        if self._put_ms:
            entry = ["-m", "bench.slow_puts", str(self._put_ms)]
        return [sys.executable, *entry, "server", *arguments]


class Kafka(Cluster):
    """Apache Kafka in combined mode, with its shipped properties and heap, and ``settings``."""

    name = "kafka"

    def __init__(self, classpath: str, settings: Mapping[str, str] | None = None) -> None:
        super().__init__()
        self._classpath = classpath
        self._settings = settings or {}
        self._properties = self.directory / "server.properties"

    def prepare(self) -> None:
        broker, controller = self._ports
        properties = KAFKA_PROPERTIES.format(
            broker=broker, controller=controller, directory=self.directory / "data"
        )
        properties += "".join(f"{key}={value}\n" for key, value in self._settings.items())
        self._properties.write_text(properties)
        options = ["format", "--standalone", "-t", CLUSTER_ID, "-c", str(self._properties)]
        subprocess.run(
            ["java", "-cp", self._classpath, "kafka.tools.StorageTool", *options],
            check=True,
            stdout=self._output,
            stderr=subprocess.STDOUT,
        )

    def command(self) -> list[str]:
        return ["java", *BROKER_HEAP, *JVM, "-cp", self._classpath, "kafka.Kafka",
                str(self._properties)]  # fmt: skip


SIDES = ("skylog", "kafka")


def new_cluster(side: str, classpath: str) -> Cluster:
    return Skylog() if side == "skylog" else Kafka(classpath)
