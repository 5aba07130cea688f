"""Names the test whose event loop closes before its connections.

The garbage collector would find them, too, but during some later test.
"""

from __future__ import annotations

from asyncio import selector_events
from collections.abc import Generator
from typing import Any
from weakref import WeakSet

import pytest

# Real clients leave theirs to the garbage collector.
MARKER = "foreign_clients"
_MADE = "transports made"
_left: list[str] = []


def watch() -> None:
    """From now on, record connections that are open when their loop closes."""
    transport, loops = selector_events._SelectorTransport, selector_events.BaseSelectorEventLoop  # type: ignore[attr-defined]
    make, close = transport.__init__, loops.close

    def made(self: Any, loop: Any, *arguments: Any, **named: Any) -> None:
        # Each loop has its own set, because loops run in different threads.
        loop.__dict__.setdefault(_MADE, WeakSet()).add(self)
        make(self, loop, *arguments, **named)

    def closed(self: Any) -> None:
        close(self)
        every = tuple(self.__dict__.get(_MADE, ()))
        _left.extend(repr(one) for one in every if getattr(one, "_sock", None) is not None)

    transport.__init__, loops.close = made, closed


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item: pytest.Item) -> Generator[None, object, object]:
    result = yield
    left = _left.copy()
    _left.clear()
    foreign = item.get_closest_marker(MARKER) or item.get_closest_marker("interop")
    assert foreign or not left, f"connections that were not closed: {left}"
    return result
