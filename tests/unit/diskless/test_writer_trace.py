"""The steps of a file: upload, commit, and then all acknowledgements."""

from __future__ import annotations

import asyncio
from typing import Any

from skylog.diskless.plane import CommitResult, FileToCommit
from skylog.kernel.errors import ErrorCode
from tests.unit.diskless.engine import Engine, item

WAIT_SECONDS = 30


class Traced:
    """An engine whose store and plane record when they start and end."""

    def __init__(self) -> None:
        self.trace: list[str] = []
        self.commit_gate = asyncio.Event()
        self.committing = asyncio.Event()

    async def start(self) -> Engine:
        engine = await Engine().start()
        put, commit = engine.memory.put, engine.plane.commit_file

        async def traced_put(key: Any, data: Any, **more: Any) -> None:
            self.trace.append("upload begins")
            await put(key, data, **more)
            self.trace.append("upload ends")

        async def traced_commit(file: FileToCommit, **more: Any) -> list[CommitResult]:
            self.trace.append("commit begins")
            self.committing.set()
            await self.commit_gate.wait()
            results = await commit(file, **more)
            self.trace.append("commit ends")
            return results

        engine.memory.put = traced_put  # type: ignore[method-assign]
        engine.plane.commit_file = traced_commit  # type: ignore[method-assign]
        return engine


async def test_the_producers_of_a_file_are_answered_together_and_last() -> None:
    # ENG-52, ENG-53
    traced = Traced()
    engine = await traced.start()
    requests = [engine.writer.submit(number, [item(b"v", number)]) for number in range(2)]
    for number, request in enumerate(requests):
        request.done.add_done_callback(lambda _, n=number: traced.trace.append(f"told {n}"))  # type: ignore[misc]
    async with asyncio.timeout(WAIT_SECONDS):
        await traced.committing.wait()
        for _ in range(20):  # an early acknowledgement would have happened by now
            await asyncio.sleep(0)
        assert not any(request.done.done() for request in requests)
        traced.commit_gate.set()
        await asyncio.gather(*(request.done for request in requests))
    await engine.writer.close()
    assert traced.trace == [
        *("upload begins", "upload ends", "commit begins", "commit ends"),
        *("told 0", "told 1"),
    ]
    assert len(engine.plane.commits) == 1
    assert [one.results()[0].error for one in requests] == [ErrorCode.NONE] * 2
