"""What the Python workers of executors do once."""

from __future__ import annotations

import functools
import gc


@functools.cache
def keep_imports() -> None:
    """Leave what is imported by now out of garbage collections.

    Spark collects garbage after every task of a worker. With Spark's, Arrow's and our modules that
    takes some 40 ms, as long as it takes to read tens of megabytes.
    """
    gc.freeze()
