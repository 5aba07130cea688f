"""Commits of one file to several coordinators of one broker share a request (KIP-1164).

The parts of a file become ready together, when its upload is done: those of the same event-loop
iteration are bundled. A later part, whose coordinator was busy with an earlier file, is sent on its
own; none waits for another.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import Any

from skylog.diskless.coordinator.calls import CoordinatorCalls
from skylog.diskless.coordinator.wire import commit_batch, commit_result, failure
from skylog.diskless.plane import CommitResult, FileToCommit
from skylog.kernel.errors import ErrorCode
from skylog.kernel.limits import DISKLESS_COMMIT_TIMEOUT_MS
from skylog.kernel.waiting import end_tasks
from skylog.wire.messages.diskless_commit_file_request import (
    DisklessCommitCoordinator,
    DisklessCommitFileRequest,
)
from skylog.wire.messages.diskless_commit_file_response import DisklessCommitFileResponse


@dataclass(slots=True)
class _Bundle:
    """The parts by coordinator."""

    node_id: int
    parts: dict[int, FileToCommit] = field(default_factory=dict)
    answers: dict[int, asyncio.Future[list[CommitResult]]] = field(default_factory=dict)


class CommitBundles:
    """All calls come from the event loop."""

    def __init__(self, calls: CoordinatorCalls) -> None:
        self._calls = calls
        self._open: dict[tuple[int, str], _Bundle] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    async def commit(
        self, node_id: int, coordinator_id: int, file: FileToCommit
    ) -> list[CommitResult]:
        """The results of one coordinator's part."""
        loop = asyncio.get_running_loop()
        at = (node_id, file.object_key)
        bundle = self._open.get(at)
        if bundle is None or coordinator_id in bundle.parts:
            bundle = self._open[at] = _Bundle(node_id)
            loop.call_soon(self._start, at, bundle)
        bundle.parts[coordinator_id] = file
        answer: asyncio.Future[list[CommitResult]] = loop.create_future()
        bundle.answers[coordinator_id] = answer
        return await answer

    def _start(self, at: tuple[int, str], bundle: _Bundle) -> None:
        if self._open.get(at) is bundle:
            del self._open[at]
        task = asyncio.get_running_loop().create_task(self._send(bundle))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _send(self, bundle: _Bundle) -> None:
        try:
            response = await self._calls.send(
                bundle.node_id,
                list(bundle.parts),
                _request(bundle.parts),
                # A broker answers a connection's requests in order: a wait for one coordinator must
                # not delay another.
                lane=f"commit-{min(bundle.parts)}",
                timeout_ms=DISKLESS_COMMIT_TIMEOUT_MS,
                changes=True,
            )
            outcomes = commit_outcomes(bundle.parts, response)
        except asyncio.CancelledError:
            for answer in bundle.answers.values():
                answer.cancel()
            raise
        except Exception as error:  # noqa: BLE001 - any error: callers wait for it
            outcomes = dict.fromkeys(bundle.parts, error)
        for coordinator_id, outcome in outcomes.items():
            answer = bundle.answers[coordinator_id]
            if answer.done():  # the caller was cancelled
                continue
            if isinstance(outcome, Exception):
                answer.set_exception(outcome)
            else:
                answer.set_result(outcome)

    async def close(self) -> None:
        await end_tasks(self._tasks)


def _request(parts: dict[int, FileToCommit]) -> DisklessCommitFileRequest:
    file = next(iter(parts.values()))
    return DisklessCommitFileRequest(
        file.object_key,
        file.format,
        file.size,
        list(file.coordinator_ids),
        [commit_batch(batch) for part in parts.values() for batch in part.batches],
        uploader_broker_id=file.uploader_broker_id,
        coordinators=[
            DisklessCommitCoordinator(coordinator_id, len(part.batches))
            for coordinator_id, part in parts.items()
        ],
        known_only=file.known_only,
        timeout_ms=DISKLESS_COMMIT_TIMEOUT_MS,
    )


def commit_outcomes(
    parts: dict[int, FileToCommit], response: DisklessCommitFileResponse
) -> dict[int, Any]:
    """Pure: the results, or the error, of each coordinator's part."""
    results = [commit_result(result) for result in response.batches]
    told = {one.coordinator_id: one for one in response.coordinators}
    count = sum(len(part.batches) for part in parts.values())
    outcomes: dict[int, Any] = {}
    first = 0
    for coordinator_id, part in parts.items():
        mine = results[first : first + len(part.batches)]
        first += len(part.batches)
        if coordinator_id not in told or len(results) != count:
            # A refusal of the whole request is only in its items.
            code = mine[0].error if mine else ErrorCode.NONE
            missing = ErrorCode.REQUEST_TIMED_OUT
            outcomes[coordinator_id] = failure(code or missing, mine[0].message if mine else None)
        elif told[coordinator_id].error_code:
            outcomes[coordinator_id] = failure(
                told[coordinator_id].error_code, told[coordinator_id].error_message
            )
        else:
            outcomes[coordinator_id] = mine
    return outcomes
