"""A broker process that consolidates, and kills itself at a named point: ``directory port [point
count]``.

As ``diskless_node.py``, with the points of putting together, copying and pruning.
"""

from __future__ import annotations

import asyncio
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from skylog.diskless.coordinator.log import CoordinatorLog
from skylog.diskless.planes.topic import TopicPlane
from skylog.testing import Broker
from skylog.tiered.consolidation.assembly import Assembly
from skylog.tiered.consolidation.prune import PrunePass
from skylog.tiered.storage import ObjectRemoteStorage
from tests.consolidating import SETTINGS
from tests.integration.diskless_node import end


class Point(NamedTuple):
    """Before or after a function of skylog. ``only``: if it returned something. ``within``: once
    that function was called."""

    owner: type
    name: str
    after: bool = True
    only: bool = False
    within: tuple[type, str] | None = None


POINTS = {
    "assembled, not cut": Point(Assembly, "append"),
    "cut, not copied": Point(Assembly, "cut"),
    "copied, before FINISHED": Point(ObjectRemoteStorage, "_put_all"),
    "FINISHED, assembly files there": Point(Assembly, "release", only=True),
    "manifest read back, not pruned": Point(PrunePass, "_target", only=True),
    "before the prune": Point(TopicPlane, "prune_to", after=False),
    "prune record appended, not at the high watermark": Point(
        CoordinatorLog, "append", within=(TopicPlane, "prune_to")
    ),
    "pruned, WAL object there": Point(TopicPlane, "prune_to"),
    "WAL object gone, not confirmed": Point(TopicPlane, "confirm_deleted", after=False),
}
MORE = {
    "diskless.metadata.topic.num.partitions": "2",
    "diskless.file.cleaner.interval.ms": "100",
    "diskless.commit.age.max.ms": "1000",
    "diskless.coordinator.orphan.scan.grace.period.ms": "2100",
    "log.level": "ERROR",
}


def arm(point: Point, count: int) -> None:
    """The process ends when the point has been reached for the ``count``-th time."""
    entered = threading.Event()
    if point.within is None:
        entered.set()
    else:
        wrap(*point.within, entered.set, lambda _: None)
    lock, left = threading.Lock(), [count]

    def passed() -> None:
        with lock:
            left[0] -= 1
            if left[0] == 0:
                end()

    def before() -> None:
        if not point.after and entered.is_set():
            passed()

    def after(result: Any) -> None:
        if point.after and entered.is_set() and (result or not point.only):
            passed()

    wrap(point.owner, point.name, before, after)


def wrap(owner: type, name: str, before: Callable[[], None], after: Callable[[Any], None]) -> None:
    work: Callable[..., Any] = getattr(owner, name)

    def wrapped(*arguments: Any, **named: Any) -> Any:
        before()
        result = work(*arguments, **named)
        after(result)
        return result

    async def awaited(*arguments: Any, **named: Any) -> Any:
        before()
        result = await work(*arguments, **named)
        after(result)
        return result

    setattr(owner, name, awaited if asyncio.iscoroutinefunction(work) else wrapped)


def main() -> None:
    directory, port, *point = sys.argv[1:]
    if point:
        arm(POINTS[point[0]], int(point[1]))
    listeners = f"PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:0"
    settings = {**SETTINGS, **MORE, "listeners": listeners}
    with Broker(settings, directory=Path(directory)):
        print("ready", flush=True)
        threading.Event().wait()


if __name__ == "__main__":
    main()
