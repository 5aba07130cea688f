"""A broker process that kills itself at a named point: ``directory port [point count]``.

The points are before or after functions of skylog, which are patched from here. SIGKILL: no handler
runs, no buffer is written.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from skylog.diskless.coordinator.loading import Loader
from skylog.diskless.coordinator.log import CoordinatorLog
from skylog.diskless.coordinator.machine import CoordinatorMachine
from skylog.diskless.coordinator.snapshots import Snapshots
from skylog.diskless.coordinator.turn import Turn
from skylog.diskless.planes.topic import TopicPlane
from skylog.objects.files import Files
from skylog.testing import Broker

# Name → function, and whether the crash is after it rather than before.
POINTS: dict[str, tuple[type, str, bool]] = {
    "before the put": (Files, "write_new", False),
    "put written, not named": (Files, "write_new", True),
    "put named, not answered": (Files, "rename", True),
    "put done, not committed": (TopicPlane, "commit_part", False),
    "commit judged, not appended": (CoordinatorLog, "append", False),
    "record appended, not at the high watermark": (CoordinatorLog, "append", True),
    "at the high watermark, not applied": (Turn, "_apply", False),
    "in the middle of applying": (CoordinatorMachine, "apply", True),
    "applied, not answered": (Turn, "_apply", True),
    "before the snapshot": (Snapshots, "write", False),
    "snapshot written, log not pruned": (CoordinatorLog, "prune", False),
    "log pruned, old snapshot not removed": (Snapshots, "remove", False),
    "while loading": (Loader, "_replay", False),
}
SETTINGS = {
    "diskless.metadata.topic.num.partitions": "2",
    # Snapshots are frequent.
    "diskless.metadata.snapshot.bytes": "10000",
    "log.level": "ERROR",
}


def end() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def arm(point: str, count: int) -> None:
    """The process ends when the point has been reached for the ``count``-th time."""
    owner, name, after = POINTS[point]
    work: Callable[..., Any] = getattr(owner, name)
    lock, left = threading.Lock(), [count]

    def passed() -> bool:
        with lock:
            left[0] -= 1
            return left[0] == 0

    def wrapped(*arguments: Any, **named: Any) -> Any:
        last = passed()
        if last and not after:
            end()
        result = work(*arguments, **named)
        if last:
            end()
        return result

    setattr(owner, name, wrapped)


def main() -> None:
    directory, port, *point = sys.argv[1:]
    if point:
        arm(point[0], int(point[1]))
    settings = {**SETTINGS, "listeners": f"PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:0"}
    with Broker(settings, directory=Path(directory)):
        print("ready", flush=True)
        threading.Event().wait()


if __name__ == "__main__":
    main()
