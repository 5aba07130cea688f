"""Checkpoints during idle time, and between turns when that is not enough."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from typing import Any, TypeVar

import pytest

from skylog.diskless.coordinator.checkpoints import Checkpoints
from skylog.kernel.executor import InlineExecutor
from skylog.kernel.limits import DISKLESS_CHECKPOINT_PAGES_MAX, DISKLESS_TURNS_PER_CHECKPOINT

T = TypeVar("T")


class Counted(InlineExecutor):
    runs = 0

    async def run(self, work: Callable[[], T]) -> T:
        self.runs += 1
        return await super().run(work)


class State:
    def __init__(self, pages: int | None) -> None:
        self.pages = pages

    def checkpoint(self) -> int:
        if self.pages is None:
            raise sqlite3.OperationalError("disk is full")
        return self.pages


@pytest.mark.parametrize(
    ("pages", "quiet"),
    [(DISKLESS_CHECKPOINT_PAGES_MAX, 1), (DISKLESS_CHECKPOINT_PAGES_MAX - 1, 0), (None, 0)],
)
async def test_a_long_write_ahead_log_is_brought_in_order_between_turns(
    pages: int | None, quiet: int
) -> None:
    beside, between = Counted(), Counted()
    checkpoints, state = Checkpoints(0, beside), State(pages)
    as_state: Any = state
    for turn in range(DISKLESS_TURNS_PER_CHECKPOINT):
        assert beside.runs == 0, turn
        checkpoints.turn_is_over(as_state, changed=False)
        checkpoints.turn_is_over(as_state, changed=True)
        await checkpoints.between_turns(as_state, between)
    await checkpoints.settled()
    assert (beside.runs, between.runs) == (1, 0)
    for _ in range(3):  # once, though its size stays until the next write
        await checkpoints.between_turns(as_state, between)
    assert (beside.runs, between.runs) == (1, quiet)
