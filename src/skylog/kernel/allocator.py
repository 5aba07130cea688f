"""How the C library's allocator treats the large buffers that records travel in.

By default every buffer of a megabyte is fetched from the kernel and given back, and the kernel
clears its pages each time: more work than reading and sending the records themselves. A process
that uses buffers of the same sizes all the time keeps some of what it has freed.
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


def keep_freed_buffers(*, arenas_max: int | None = None) -> None:
    """Tell the allocator once, before the first buffer; does nothing where there is no mallopt."""
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is None:
        return
    mallopt(_MMAP_THRESHOLD, _HEAP_BUFFER_BYTES_MAX)
    mallopt(_TRIM_THRESHOLD, _KEPT_BYTES_MAX)
    if arenas_max is not None:
        mallopt(_ARENA_MAX, arenas_max)
