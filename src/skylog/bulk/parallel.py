"""Tasks read by several threads, with batches returned in the order of the tasks.

Decoding runs without the GIL, so threads are enough. Only a limited number of tasks run ahead of
the one being consumed, and each holds a limited number of batches: memory is bounded whatever the
size of the topic and the speed of the consumer.
"""

from __future__ import annotations

import queue
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import islice
from typing import Final, Generic, TypeVar

TaskT = TypeVar("TaskT")
ItemT = TypeVar("ItemT")

_ITEMS_AHEAD: Final = 4
_LOOK_SECONDS: Final = 0.2


class _End:
    """The last item of a task; with the error that ended it, if any."""

    def __init__(self, error: BaseException | None = None) -> None:
        self.error = error


class _Running(Generic[ItemT]):
    """One running task; its items wait here to be consumed."""

    def __init__(self, read: Callable[[], Iterator[ItemT]], stop: threading.Event) -> None:
        self._read = read
        self._stop = stop
        self._items: queue.Queue[ItemT | _End] = queue.Queue(_ITEMS_AHEAD)

    def work(self) -> None:
        """On a thread of the pool."""
        end = _End()
        try:
            for item in self._read():
                if not self._put(item):
                    return
        except BaseException as error:  # noqa: BLE001 - raised by the waiting caller
            end = _End(error)
        self._put(end)

    def _put(self, item: ItemT | _End) -> bool:
        while not self._stop.is_set():
            try:
                self._items.put(item, timeout=_LOOK_SECONDS)
                return True
            except queue.Full:
                continue
        return False

    def items(self) -> Iterator[ItemT]:
        while True:
            item = self._items.get()
            if not isinstance(item, _End):
                yield item
            elif item.error is not None:
                raise item.error
            else:
                return


def in_parallel(
    tasks: Sequence[TaskT], read: Callable[[TaskT], Iterator[ItemT]], threads: int
) -> Iterator[ItemT]:
    """What ``read`` yields for each task, in the order of the tasks."""
    if threads <= 1 or len(tasks) <= 1:
        for task in tasks:
            yield from read(task)
        return
    stop = threading.Event()
    running: deque[_Running[ItemT]] = deque()
    left = iter(tasks)
    with ThreadPoolExecutor(threads, thread_name_prefix="skylog-read") as pool:
        try:
            while True:
                for task in islice(left, threads + 1 - len(running)):
                    running.append(_Running(partial(read, task), stop))
                    pool.submit(running[-1].work)
                if not running:
                    return
                yield from running[0].items()
                running.popleft()
        finally:
            stop.set()
