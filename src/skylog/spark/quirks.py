"""Workarounds for quirks of PySpark, the JVM and glibc in Spark's Python workers.

Every quirk names the version it was seen in, its cost, and an environment variable that turns the
workaround off. ``tests/unit/spark/test_quirks.py`` and ``tests/spark/test_quirks.py`` fail once
upstream no longer has it: then the workaround is deleted here.

Spark loads this module in every process, so it imports little.
"""

from __future__ import annotations

import ctypes
import functools
import gc
import os
import socket
import sys
from contextlib import suppress
from dataclasses import dataclass
from types import FrameType
from typing import Any, Final

from skylog.kernel.allocator import keep_freed_buffers
from skylog.kernel.errors import ConfigError

_PUSHDOWN_WORKER: Final = "pyspark.sql.worker.data_source_pushdown_filters"


@dataclass(frozen=True)
class Quirk:
    """Upstream behaviour that needs a workaround."""

    variable: str
    seen_in: str
    what: str
    cost: str

    @property
    def is_answered(self) -> bool:
        """True unless the variable is false; ConfigError for other values."""
        text = os.environ.get(self.variable, "true")
        match text.strip().lower():
            case "true":
                return True
            case "false":
                return False
        raise ConfigError(f"variable {self.variable} is {text!r}; allowed are true and false")


FREEZE_IMPORTS: Final = Quirk(
    "SKYLOG_SPARK_FREEZE_IMPORTS",
    "PySpark 4.3.0",
    "A worker collects garbage after every task, and walks all imported modules each time",
    "20 to 40 ms per task, as long as it takes to read tens of megabytes",
)
KEEP_MEMORY: Final = Quirk(
    "SKYLOG_SPARK_KEEP_MEMORY",
    "glibc 2.36",
    "Freed megabytes go back to the kernel, which clears them, page by page, before it hands them"
    " out again",
    "Twice the time it takes to fill them",
)
QUICK_ACK: Final = Quirk(
    "SKYLOG_SPARK_QUICK_ACK",
    "PySpark 4.3.0 on Linux",
    "The JVM sends a task in two packets and leaves Nagle's algorithm on, so that the second waits"
    " for the acknowledgement of the first",
    "40 ms per task",
)
FIND_PUSHDOWN: Final = Quirk(
    "SKYLOG_SPARK_FIND_PUSHDOWN",
    "PySpark 4.3.0",
    "Readers that take filters are refused while filter pushdown is off, and cannot ask whether it"
    " is; only the worker that Spark runs for a pushdown shows that it is on",
    "`read.push.filters` has no effect",
)
QUIRKS: Final = (FREEZE_IMPORTS, KEEP_MEMORY, QUICK_ACK, FIND_PUSHDOWN)


@functools.cache
def settle() -> None:
    """Called once a worker has imported what it needs, before the first of its many tasks."""
    answered = [quirk for quirk in QUIRKS if quirk.is_answered]
    if FREEZE_IMPORTS in answered:
        gc.freeze()
    if KEEP_MEMORY in answered:
        keep_freed_buffers()


class SentToWorkers:
    """Base of objects that Spark sends to a worker with every task."""

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        if QUICK_ACK.is_answered:
            _acknowledge()


def _acknowledge() -> None:
    """Tell the JVM at once that the first packet has arrived.

    The worker has nothing to send yet, so its system would delay the acknowledgement for 40 ms.
    """
    with suppress(OSError, AttributeError):  # not Linux, or not called by a worker
        option, on = socket.TCP_QUICKACK, ctypes.c_int(1)
        received = worker_input().fileno()
        # Not through a Python socket: its timeout would also apply to Spark's.
        set_option = ctypes.CDLL(None).setsockopt
        set_option(received, socket.IPPROTO_TCP, option, ctypes.byref(on), ctypes.sizeof(on))


def worker_input() -> Any:
    """The file that the calling PySpark worker reads from; PySpark does not expose it."""
    frame: FrameType | None = sys._getframe()
    while frame is not None:
        if "infile" in frame.f_code.co_varnames:
            return frame.f_locals.get("infile")
        frame = frame.f_back
    return None


def pushes_filters() -> bool:
    """Whether spark.sql.python.filterPushdown.enabled is on where a reader is created."""
    if not FIND_PUSHDOWN.is_answered:
        return False
    main = getattr(sys.modules.get("__main__"), "__spec__", None)
    return _PUSHDOWN_WORKER in sys.modules or getattr(main, "name", "") == _PUSHDOWN_WORKER
