"""A Postgres server: a fresh cluster in a temporary directory, on a free port, until we exit.

Postgres refuses to run as root; then it runs as ``postgres`` or ``nobody``.
"""

from __future__ import annotations

import atexit
import functools
import itertools
import os
import shutil
import signal
import subprocess
import tempfile
import time
from pathlib import Path

import asyncpg

from skylog.diskless.plane import TopicPartition
from skylog.kernel.secret import Secret
from tests.ports import free_port

START_SECONDS = 60


def binaries() -> Path:
    """The newest installed server."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda p: int(p.parts[-3]))
    if found:
        return found[-1].parent
    on_path = shutil.which("initdb")
    if on_path is None:
        raise RuntimeError("no Postgres here: tools/interop_setup.sh installs it")
    return Path(on_path).resolve().parent


def _unprivileged() -> str | None:
    if os.geteuid() != 0:
        return None
    known = Path("/etc/passwd").read_text().split("\n")
    return "postgres" if any(line.startswith("postgres:") for line in known) else "nobody"


class Broker:
    """One of the brokers that share the database (``duties.Brokers``): the first does all work."""

    def __init__(self, node_id: int = 0) -> None:
        self._node_id = node_id

    def leads(self, partition: TopicPartition) -> bool:
        return self.is_first()

    def is_first(self) -> bool:
        return self._node_id == 0


class PostgresServer:
    """One server process; each test gets its own schema."""

    def __init__(self) -> None:
        self._bin = binaries()
        self._user = _unprivileged()
        self._directory = Path(tempfile.mkdtemp(prefix="skylog-postgres-"))
        self.port = free_port()
        self._numbers = itertools.count()
        self._process: subprocess.Popen[bytes] | None = None
        if self._user is not None:
            shutil.chown(self._directory, self._user)
        self._run(
            *(str(self._bin / "initdb"), "-D", str(self._directory / "data")),
            *("-U", "skylog", "--auth=trust", "--no-sync", "-E", "UTF8", "--locale=C"),
        )
        self.start()
        atexit.register(self.remove)

    def _run(self, *command: str) -> None:
        subprocess.run(
            command, check=True, capture_output=True, cwd=self._directory, user=self._user
        )

    def start(self) -> None:
        """Start, and wait until the server accepts connections."""
        command = [
            *(str(self._bin / "postgres"), "-D", str(self._directory / "data")),
            *("-p", str(self.port), "-c", "listen_addresses=127.0.0.1"),
            *("-c", f"unix_socket_directories={self._directory}", "-c", "fsync=off"),
            *("-c", "max_connections=100", "-c", "deadlock_timeout=50ms"),
        ]
        with (self._directory / "log").open("ab") as log:
            self._process = subprocess.Popen(
                command, stdout=log, stderr=log, cwd=self._directory, user=self._user
            )
        ready = [str(self._bin / "pg_isready"), "-q", "-h", "127.0.0.1", "-p", str(self.port)]
        until = time.monotonic() + START_SECONDS
        while subprocess.run(ready, check=False).returncode != 0:
            if self._process.poll() is not None or time.monotonic() > until:
                raise RuntimeError((self._directory / "log").read_text()[-2000:])

    def stop(self) -> None:
        """A fast shutdown, which closes open connections at once."""
        if self._process is not None:
            self._process.send_signal(signal.SIGINT)
            self._process.wait(START_SECONDS)
            self._process = None

    def remove(self) -> None:
        self.stop()
        shutil.rmtree(self._directory, ignore_errors=True)

    def address(self, schema: str = "public") -> Secret:
        return Secret(f"postgresql://skylog@127.0.0.1:{self.port}/postgres?search_path={schema}")

    async def create_database(self) -> Secret:
        """A fresh schema, which takes less time than a database, and its connection string."""
        name = f"test_{next(self._numbers)}"
        connection = await asyncpg.connect(self.address().reveal())
        try:
            await connection.execute(f"CREATE SCHEMA {name}")
        finally:
            await connection.close()
        return self.address(name)


@functools.cache
def server() -> PostgresServer:
    """The one that all tests of a process share."""
    return PostgresServer()
