"""Spark sessions as the bench sees them: of this project's PySpark, and of the one with Spark's
Kafka source, each in a separate process (``spark_process.py``)."""

from __future__ import annotations

import contextlib
import functools
import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from bench.clusters import ROOT

STOP_SECONDS_MAX = 60
# Both sides alike: two tasks at a time, all else as Spark ships it.
SETTINGS = {
    "spark.master": "local[2]",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.session.timeZone": "UTC",
}

# From util-linux; its child processes stay on that core as well.
ON_ONE_CORE = ("taskset", "--cpu-list", "0")


@functools.cache
def kafka_source() -> Path:
    """PySpark 4.0.0 with its Kafka source, fetched on first use."""
    done = subprocess.run(
        [ROOT / "tools" / "bench_spark_setup.sh"],
        check=True,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHON": sys.executable},
    )
    return Path(done.stdout.strip())


class Spark:
    """A session that runs one query after the other."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process
        self.version: str = self._answer()["spark"]

    @property
    def pid(self) -> int:
        """The driver's; the JVM and Python's workers are its descendants."""
        return self._process.pid

    def ask(self, **asked: Any) -> dict[str, Any]:
        if self._process.stdin is not None:
            self._process.stdin.write(json.dumps(asked) + "\n")
            self._process.stdin.flush()
        return self._answer()

    def _answer(self) -> dict[str, Any]:
        # The JVM writes messages to the same pipe.
        lines = (line for line in self._process.stdout or () if line.startswith("{"))
        line = next(lines, None)
        if line is None:
            raise RuntimeError(f"Spark ended by itself: {self._process.wait()}")
        answer: dict[str, Any] = json.loads(line)
        if "error" in answer:
            raise RuntimeError(f"Spark failed:\n{answer['error'][:4000]}")
        return answer


@contextlib.contextmanager
def spark(
    side: str, settings: Mapping[str, str] | None = None, *, one_core: bool = False
) -> Iterator[Spark]:
    """A new session: skylog's source, or Spark's Kafka source in a separate environment."""
    python, given = Path(sys.executable), {**SETTINGS, **(settings or {})}
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    if side != "skylog":
        base = kafka_source()
        python = base / "venv" / "bin" / "python"
        given["spark.jars"] = ",".join(str(jar) for jar in sorted((base / "lib").glob("*.jar")))
        del environment["PYTHONPATH"]
    environment |= {"PYSPARK_PYTHON": str(python), "PYSPARK_DRIVER_PYTHON": str(python)}
    environment.pop("SPARK_HOME", None)
    process = subprocess.Popen(
        [
            *(ON_ONE_CORE if one_core else ()),
            python,
            ROOT / "bench" / "spark_process.py",
            json.dumps(given),
        ],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env=environment,
    )
    try:
        yield Spark(process)
    finally:
        if process.stdin is not None:
            process.stdin.close()
        try:
            process.wait(STOP_SECONDS_MAX)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
