"""What Spark's Python workers need besides reading and writing: each is a quirk of others.

Every quirk names the version it was seen in, what it costs to leave it alone, and an environment
variable that turns our answer to it off. ``tests/unit/spark/test_quirks.py`` and
``tests/spark/test_quirks.py`` fail once upstream no longer has it: then it is to be deleted here.

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
    """Something that others do and that is worth an answer."""

    variable: str
    seen_in: str
    what: str
    cost: str

    @property
    def is_answered(self) -> bool:
        """Unless the variable says no; ConfigError for what is neither yes nor no."""
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
    "Megabytes that are freed go back to the kernel, which hands them out again cleared, page by"
    " page",
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
    "Readers that take filters are refused while filter pushdown is off, and are not told whether"
    " it is; it is on where another worker runs",
    "`read.push.filters` has no effect",
)
QUIRKS: Final = (FREEZE_IMPORTS, KEEP_MEMORY, QUICK_ACK, FIND_PUSHDOWN)


@functools.cache
def settle() -> None:
    """When a worker has imported what it needs, before its first task; it has many."""
    answered = [quirk for quirk in QUIRKS if quirk.is_answered]
    if FREEZE_IMPORTS in answered:
        gc.freeze()
    if KEEP_MEMORY in answered:
        keep_freed_buffers()


class SentToWorkers:
    """What Spark sends to a worker with every task."""

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        if QUICK_ACK.is_answered:
            _acknowledge()


def _acknowledge() -> None:
    """Tell the JVM at once that the first packet has arrived.

    A worker has nothing to answer yet, so its system would wait 40 ms for something to send.
    """
    with suppress(OSError, AttributeError):  # not Linux, or not called by a worker
        option, on = socket.TCP_QUICKACK, ctypes.c_int(1)
        received = worker_input().fileno()
        # Not by a socket of Python's: that one may have a time-out, which would hold for Spark's.
        set_option = ctypes.CDLL(None).setsockopt
        set_option(received, socket.IPPROTO_TCP, option, ctypes.byref(on), ctypes.sizeof(on))


def worker_input() -> Any:
    """The file that PySpark's worker, which called us, reads from; it hands it to nobody."""
    frame: FrameType | None = sys._getframe()
    while frame is not None:
        if "infile" in frame.f_code.co_varnames:
            return frame.f_locals.get("infile")
        frame = frame.f_back
    return None


def pushes_filters() -> bool:
    """Whether spark.sql.python.filterPushdown.enabled is on, where a reader is made."""
    if not FIND_PUSHDOWN.is_answered:
        return False
    main = getattr(sys.modules.get("__main__"), "__spec__", None)
    return _PUSHDOWN_WORKER in sys.modules or getattr(main, "name", "") == _PUSHDOWN_WORKER
