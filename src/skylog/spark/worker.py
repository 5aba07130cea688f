"""What Python's workers, of executors and of the driver, do once."""

from __future__ import annotations

import ctypes
import functools
import gc
from contextlib import suppress
from typing import Final

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
