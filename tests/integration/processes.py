"""skylog in a separate process, to be measured, killed and restarted."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Self

MAIN = "from skylog.cli.main import main; main()"
START_SECONDS_MAX = 60
_UP = re.compile(rb"skylog is up at (\S+:\d+);")
DEFAULTS = {
    "http.listener": "",
    "group.initial.rebalance.delay.ms": "0",
    "offsets.topic.num.partitions": "4",
}


def server_command(
    directory: Path, settings: Mapping[str, str] | None = None, before: str = ""
) -> list[str]:
    """A user's command line; ``before`` is Python code that runs in the process first."""
    given = {
        "listeners": "PLAINTEXT://127.0.0.1:0,CONTROLLER://127.0.0.1:0",
        "log.dirs": str(directory),
        **DEFAULTS,
        **(settings or {}),
    }
    overrides = [part for key, value in given.items() for part in ("--override", f"{key}={value}")]
    return [sys.executable, "-c", f"{before}\n{MAIN}", "server", *overrides]


class BrokerProcess:
    """One node; ``with`` kills it at the end."""

    def __init__(
        self,
        directory: Path,
        settings: Mapping[str, str] | None = None,
        *,
        before: str = "",
    ) -> None:
        self.directory = directory
        self.command = server_command(directory, settings, before)
        self.log = directory.with_name(f"{directory.name}.log")
        self._process: subprocess.Popen[bytes] | None = None
        self.address = ""

    def start(self) -> Self:
        """Start and wait until it serves."""
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                self.command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=log,
            )
        assert self._process.stdout is not None
        # The pipe closes when the process ends, so this cannot wait for ever.
        for line in self._process.stdout:
            found = _UP.match(line)
            if found is not None:
                self.address = found[1].decode()
                return self
        raise AssertionError(f"skylog did not start: {self.log.read_text()[-3000:]}")

    @property
    def process(self) -> subprocess.Popen[bytes]:
        assert self._process is not None, "not started"
        return self._process

    def kill(self) -> None:
        """kill -9."""
        self._end(signal.SIGKILL)

    def terminate(self) -> int:
        """SIGTERM; returns the exit code."""
        return self._end(signal.SIGTERM)

    def _end(self, number: signal.Signals) -> int:
        if self.alive:
            self.process.send_signal(number)
        return self.wait()

    def wait(self) -> int:
        """The exit code of a process that ends by itself."""
        process = self.process
        code = process.wait(START_SECONDS_MAX)
        if process.stdout is not None:
            process.stdout.close()
        return code

    @property
    def alive(self) -> bool:
        return self.process.poll() is None

    def rss_bytes(self) -> int:
        """Current resident memory."""
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        found = re.search(r"VmRSS:\s+(\d+) kB", status)
        assert found is not None
        return int(found[1]) * 1024

    def open_files(self) -> int:
        return len(os.listdir(f"/proc/{self.process.pid}/fd"))  # noqa: PTH208 - a path less to make

    def logged(self) -> str:
        return self.log.read_text(errors="replace")

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._end(signal.SIGKILL)
