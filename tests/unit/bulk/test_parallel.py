"""Tasks on threads: items in order, bounded read-ahead, errors and cancellation."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from skylog.bulk import parallel
from skylog.bulk.parallel import in_parallel


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_items_come_in_the_order_of_the_tasks(threads: int) -> None:
    def read(task: int) -> Iterator[tuple[int, int]]:
        return ((task, item) for item in range(task % 7))

    found = list(in_parallel(range(40), read, threads))
    assert found == [(task, item) for task in range(40) for item in range(task % 7)]


def test_tasks_are_read_at_the_same_time() -> None:
    together = threading.Barrier(2)

    def read(task: int) -> Iterator[int]:
        together.wait(60)
        yield task

    assert list(in_parallel([1, 2], read, 2)) == [1, 2]


def test_no_more_is_read_ahead_than_allowed() -> None:
    lock = threading.Lock()
    made = 0

    def read(_task: int) -> Iterator[int]:
        nonlocal made
        while True:
            with lock:
                made += 1
            yield made

    items = in_parallel(range(100), read, 3)
    for _ in range(10):
        next(items)
    items.close()
    # The taken items, and for each thread its queue, the current item and a new one.
    assert made <= 10 + 3 * (parallel._ITEMS_AHEAD + 2)


def test_an_error_comes_in_its_turn() -> None:
    def read(task: int) -> Iterator[int]:
        yield task
        if task == 2:
            raise LookupError("broken")

    items = in_parallel(range(10), read, 3)
    assert [next(items) for _ in range(3)] == [0, 1, 2]
    with pytest.raises(LookupError, match="broken"):
        next(items)


def test_ending_early_closes_what_was_begun() -> None:
    open_now = set()

    def read(task: int) -> Iterator[int]:
        open_now.add(task)
        try:
            while True:
                yield task
        finally:
            open_now.discard(task)

    items = in_parallel(range(10), read, 3)
    next(items)
    items.close()
    assert not open_now
    assert not [one for one in threading.enumerate() if one.name.startswith("skylog-read")]
