"""How the C library's allocator treats the large buffers that requests and answers are made of.

By default every buffer of a megabyte is fetched from the kernel and given back, and the kernel
clears its pages each time: more work than reading and sending the records themselves. A broker
uses buffers of the same sizes all the time, so it keeps some of what it has freed.
"""

from __future__ import annotations

import ctypes
from typing import Final

# mallopt's parameters, from malloc.h.
_TRIM_THRESHOLD: Final = -1
_MMAP_THRESHOLD: Final = -3
_ARENA_MAX: Final = -8
# The largest buffer that comes from the heap; the most that glibc allows.
_HEAP_BUFFER_BYTES_MAX: Final = 32 * 1024 * 1024
# How much freed memory is kept at the end of the heap.
_KEPT_BYTES_MAX: Final = 64 * 1024 * 1024
# Heaps. Threads that share the interpreter's lock hardly meet in one, and each more of them keeps
# freed memory of its own: with glibc's default a reader of old objects took twice the memory.
_ARENAS: Final = 1


def keep_freed_buffers() -> None:
    """Tell the allocator once, before the first buffer; does nothing where there is no mallopt."""
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(_MMAP_THRESHOLD, _HEAP_BUFFER_BYTES_MAX)
        mallopt(_TRIM_THRESHOLD, _KEPT_BYTES_MAX)
        mallopt(_ARENA_MAX, _ARENAS)
