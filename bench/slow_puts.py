"""A node whose object store delays each put, and has nothing at hand, like a bucket.

``python -m bench.slow_puts MILLISECONDS server …``: all arguments but the first are skylog's.
"""

from __future__ import annotations

import asyncio
import sys
from typing import Any

from skylog.broker.assembly import diskless_engine as diskless
from skylog.cli.main import main
from skylog.objects.keys import ObjectKey
from skylog.objects.open import open_store
from skylog.objects.store import ObjectStore, Payload


class SlowPuts:
    """``inner``, with puts delayed by some milliseconds."""

    at_hand = None  # every read is a request

    def __init__(self, inner: ObjectStore, put_ms: float) -> None:
        self._inner = inner
        self._put_seconds = put_ms / 1000

    async def put(self, key: ObjectKey, data: Payload, *, if_absent: bool = False) -> None:
        await asyncio.sleep(self._put_seconds)
        await self._inner.put(key, data, if_absent=if_absent)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)


def run() -> None:
    put_ms = float(sys.argv.pop(1))

    def slow(*arguments: Any, **more: Any) -> Any:
        return SlowPuts(open_store(*arguments, **more), put_ms)

    diskless.open_store = slow  # type: ignore[attr-defined]
    main()


if __name__ == "__main__":
    run()
