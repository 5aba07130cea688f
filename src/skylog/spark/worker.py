"""What Python's workers, of executors and of the driver, do besides reading and writing."""

from __future__ import annotations

import ctypes
import functools
import gc
import socket
import sys
from contextlib import suppress
from types import FrameType
from typing import Any, Final

# Parameters of glibc's mallopt, and what it allows at most for the second of them.
_M_TRIM_THRESHOLD: Final = -1
_M_MMAP_THRESHOLD: Final = -3
_MMAP_BYTES: Final = 32 * 1024 * 1024
_KEPT_BYTES: Final = 64 * 1024 * 1024


@functools.cache
def settle() -> None:
    """When a worker has imported what it needs, before its first task; it has many."""
    _keep_imports()
    _keep_memory()


def _keep_imports() -> None:
    """Leave what is imported by now out of garbage collections.

    Spark collects garbage after every task of a worker. With Spark's, Arrow's and our modules that
    takes 20 to 40 ms, as long as it takes to read tens of megabytes.
    """
    gc.freeze()


def _keep_memory() -> None:
    """Have the C library keep megabytes that are freed for the next read of that size.

    Else it gives them back, and the kernel hands them out anew, page by page and cleared: that
    takes twice as long as to fill them.
    """
    with suppress(AttributeError):  # not glibc
        mallopt = ctypes.CDLL(None).mallopt
        mallopt(_M_MMAP_THRESHOLD, _MMAP_BYTES)
        mallopt(_M_TRIM_THRESHOLD, _KEPT_BYTES)


class SentToWorkers:
    """What Spark sends to a worker with every task."""

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        _acknowledge()


def _acknowledge() -> None:
    """Tell the JVM at once that what it sent has arrived.

    It sends what is to be done and then of what, each in a packet of its own, and the system keeps
    the second one back until the first is acknowledged (Nagle's algorithm). A worker has nothing
    to answer yet, so its system would acknowledge only after 40 ms: in every task.
    """
    with suppress(OSError, AttributeError):  # not Linux, or not called by a worker
        option, on = socket.TCP_QUICKACK, ctypes.c_int(1)
        received = _worker_input().fileno()
        # Not by a socket of Python's: that one may have a time-out, which would hold for Spark's.
        set_option = ctypes.CDLL(None).setsockopt
        set_option(received, socket.IPPROTO_TCP, option, ctypes.byref(on), ctypes.sizeof(on))


def _worker_input() -> Any:
    """The file that PySpark's worker, which called us, reads from; it hands it to nobody."""
    frame: FrameType | None = sys._getframe()
    while frame is not None:
        if "infile" in frame.f_code.co_varnames:
            return frame.f_locals.get("infile")
        frame = frame.f_back
    return None
