"""The steps of a shutdown."""

from __future__ import annotations

import asyncio

import pytest

from skylog.broker.assembly.undo import Undo


async def test_a_step_that_hangs_does_not_keep_the_others_from_their_turn() -> None:
    done: list[str] = []
    undo = Undo()

    async def last() -> None:
        done.append("last")

    async def hangs() -> None:
        await asyncio.Event().wait()

    async def fails() -> None:
        done.append("fails")
        raise ValueError("told in the end")

    undo.stop_by(last)
    undo.stop_by(hangs, 0.01)
    undo.stop_by(fails)
    async with asyncio.timeout(30):
        with pytest.raises(ValueError, match="told in the end"):
            await undo.aclose()
    assert done == ["fails", "last"]
