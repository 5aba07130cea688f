"""skylog and Apache Kafka as separate processes, each as shipped."""

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
from contextlib import ExitStack
from pathlib import Path
from typing import Self

ROOT = Path(__file__).resolve().parent.parent
BYTECODE = Path(tempfile.gettempdir()) / "skylog-bench-bytecode"
CLUSTER_ID = "4L6g3nShT-eMCtK--X86sw"
STOP_SECONDS_MAX = 60
START_SECONDS_MAX = 120

# The options of kafka-run-class.sh for every JVM, and of kafka-server-start.sh for brokers.
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

# config/server.properties of the distribution, except addresses and the directory.
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


def free_ports(count: int) -> list[int]:
    """All are bound at the same time, so that they differ."""
    with ExitStack() as held:
        found = []
        for _ in range(count):
            probe = held.enter_context(socket.socket())
            probe.bind(("127.0.0.1", 0))
            found.append(int(probe.getsockname()[1]))
        return found


def environment() -> dict[str, str]:
    """For skylog's processes: this tree; bytecode is kept, as after an installation."""
    found = {**os.environ, "PYTHONPATH": f"{ROOT / 'src'}:{ROOT}"}
    found.pop("PYTHONDONTWRITEBYTECODE", None)
    return {**found, "PYTHONPYCACHEPREFIX": str(BYTECODE)}


class Cluster(ABC):
    """A cluster of one node, or one node of a larger one; ``with`` stops it and removes its data.

    ``ports`` are the broker's and the controller's, if other nodes must know them beforehand.
    """

    name: str

    def __init__(
        self, settings: Mapping[str, str] | None = None, ports: tuple[int, int] | None = None
    ) -> None:
        self.directory = Path(tempfile.mkdtemp(prefix=f"bench-{self.name}-"))
        self.settings = dict(settings or {})
        broker, controller = ports or free_ports(2)
        self._ports = broker, controller
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
        """Prepare the first start."""

    @abstractmethod
    def command(self) -> list[str]: ...

    def spawn(self) -> None:
        """Start the process; it may not serve yet."""
        self._process = subprocess.Popen(
            self.command(),
            stdout=self._output,
            stderr=subprocess.STDOUT,
            cwd=self.directory,
            env=environment(),
        )

    def check_alive(self) -> None:
        if self._process is not None and self._process.poll() is not None:
            said = (self.directory / "output.txt").read_text(errors="replace")
            raise RuntimeError(f"{self.name} ended by itself:\n{said[-4000:]}")

    def wait_ready(self) -> None:
        """Wait until the broker's port accepts connections."""
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

    @property
    def votes_with_others(self) -> bool:
        """Whether this is one of several nodes, which are formatted with the same voters."""
        return "controller.quorum.voters" in self.settings

    def restart(self) -> None:
        """Restart the node, so that its memory is empty."""
        self.end()
        self.spawn()
        self.wait_ready()

    def kill(self) -> None:
        """kill -9, and wait for the end of the process."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def end(self) -> None:
        """Shut it down cleanly; it may be started again."""
        if self._process is not None:
            self._process.terminate()
            try:
                self._process.wait(STOP_SECONDS_MAX)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
            self._process = None

    def stop(self) -> None:
        self.end()
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
    """With its embedded defaults, except addresses, the directory and ``settings``. With ``put_ms``
    its object store is like a bucket: nothing is at hand, and each put takes that much longer."""

    name = "skylog"

    def __init__(
        self,
        settings: Mapping[str, str] | None = None,
        put_ms: int | None = None,
        ports: tuple[int, int] | None = None,
    ) -> None:
        super().__init__(settings, ports)
        self._put_ms = put_ms
        (self._http_port,) = free_ports(1)

    @property
    def metrics_url(self) -> str:
        return f"http://127.0.0.1:{self._http_port}/metrics"

    def prepare(self) -> None:
        """A single node formats its directory when it first starts."""
        if self.votes_with_others:
            command = self._program("format", "--cluster-id", CLUSTER_ID)
            subprocess.run(
                command,
                check=True,
                stdout=self._output,
                stderr=subprocess.STDOUT,
                env=environment(),
            )

    def wait_ready(self) -> None:
        """Its metrics are served a little later than its broker."""
        super().wait_ready()
        self._wait_port(self._http_port)

    def command(self) -> list[str]:
        return self._program("server")

    def _program(self, *command: str) -> list[str]:
        broker, controller = self._ports
        overrides = {
            "listeners": f"PLAINTEXT://127.0.0.1:{broker},CONTROLLER://127.0.0.1:{controller}",
            "log.dirs": str(self.directory / "data"),
            "http.listener": f"127.0.0.1:{self._http_port}",
            **self.settings,
        }
        arguments = [f"--override={key}={value}" for key, value in overrides.items()]
        entry = ["-c", "from skylog.cli.main import main; main()"]
        if self._put_ms is not None:
            entry = ["-m", "bench.slow_puts", str(self._put_ms)]
        return [sys.executable, *entry, *command, *arguments]


class Kafka(Cluster):
    """Apache Kafka in combined mode, with its shipped properties and heap, and ``settings``."""

    name = "kafka"

    def __init__(
        self,
        classpath: str,
        settings: Mapping[str, str] | None = None,
        ports: tuple[int, int] | None = None,
    ) -> None:
        super().__init__(settings, ports)
        self._classpath = classpath
        self._properties = self.directory / "server.properties"

    def prepare(self) -> None:
        broker, controller = self._ports
        properties = KAFKA_PROPERTIES.format(
            broker=broker, controller=controller, directory=self.directory / "data"
        )
        properties += "".join(f"{key}={value}\n" for key, value in self.settings.items())
        self._properties.write_text(properties)
        options = ["format", "-t", CLUSTER_ID, "-c", str(self._properties)]
        if not self.votes_with_others:
            options.append("--standalone")
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
