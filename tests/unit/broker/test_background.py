"""Background work: failures are logged, and running tasks can be stopped."""

from __future__ import annotations

import asyncio

import pytest

from skylog.broker.background.tasks import Background


async def test_work_is_done_once_and_a_failure_is_logged(
    capsys: pytest.CaptureFixture[str],
) -> None:
    background, done = Background(), asyncio.Event()

    async def fail() -> None:
        done.set()
        raise ValueError("no such host")

    background.once("limits", fail)
    await done.wait()
    await asyncio.sleep(0)
    written = capsys.readouterr().err
    assert "background work failed" in written
    assert "no such host" in written
    await background.stop()


async def test_work_in_progress_is_stopped() -> None:
    background, began = Background(), asyncio.Event()
    ended = False

    async def wait() -> None:
        nonlocal ended
        began.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended = True

    background.once("waiting", wait)
    await began.wait()
    await background.stop()
    assert ended
