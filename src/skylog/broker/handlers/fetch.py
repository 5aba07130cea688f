"""Fetch: read what moved, within the budget, in the session's order; wait when there is too little.

The whole answer is made in one go from the page cache. Only when a read would touch the disk does
it move to a thread, and only when there is nothing to say does the request wait.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable

from skylog.broker.handlers.fetch_found import Collected
from skylog.broker.handlers.fetch_remote import RemoteRead, fetch_remote
from skylog.broker.handlers.fetch_work import Fetch, Read, Steps
from skylog.broker.net.context import RequestContext
from skylog.kernel.errors import KafkaError
from skylog.wire.messages.fetch_request import FetchRequest
from skylog.wire.messages.fetch_response import FetchResponse


def fetch(
    context: RequestContext, request: FetchRequest
) -> FetchResponse | Awaitable[FetchResponse]:
    """Handle a Fetch request."""
    session, incremental = context.services.fetch_sessions.open(request, context.version)
    work = Fetch(context, request, session, incremental=incremental)
    steps = work.collect()
    waits: Awaitable[FetchResponse] | None = None
    try:
        try:
            read = next(steps)
        except StopIteration as done:
            found: Collected = done.value
            if work.enough(found):
                return work.respond(found)
            waits = _wait(work, found)
        else:
            waits = _fetch_slowly(work, steps, read)
    finally:
        if waits is None:
            work.release()
    return waits


async def _finish(work: Fetch, steps: Steps, read: Read | RemoteRead) -> Collected:
    """Go through steps of which at least one must wait for the disk, on a thread."""
    run = work.context.services.executor.run
    try:
        while True:
            try:
                data = await (
                    fetch_remote(work.context, read) if isinstance(read, RemoteRead) else run(read)
                )
            except KafkaError as error:
                read = steps.throw(error)
            else:
                read = steps.send(data)
    except StopIteration as done:
        found: Collected = done.value
        return found


async def _collect(work: Fetch, before: Collected) -> Collected:
    steps = work.collect(before)
    try:
        read = next(steps)
    except StopIteration as done:
        found: Collected = done.value
        return found
    return await _finish(work, steps, read)


async def _fetch_slowly(work: Fetch, steps: Steps, read: Read | RemoteRead) -> FetchResponse:
    try:
        found = await _finish(work, steps, read)
        if work.enough(found):
            return work.respond(found)
        return await _wait(work, found)
    finally:
        work.release()


async def _wait(work: Fetch, found: Collected) -> FetchResponse:
    """Park until enough bytes have come, something else happened, or the time is up.

    A client that is gone waits for nothing.
    """
    loop = asyncio.get_running_loop()
    connection = work.context.connection
    deadline = loop.time() + work.request.max_wait_ms / 1000
    woken = asyncio.Event()
    wake = woken.set
    connection.when_ended = wake
    try:
        while True:
            woken.clear()
            if connection.ended:
                wake()
            work.session.wait(work.seen + work.bytes_min - found.read_bytes, wake)
            timer = loop.call_at(deadline, wake)
            try:
                await woken.wait()
            finally:
                timer.cancel()
            if not work.superseded:
                found = await _collect(work, found)
            if work.enough(found) or connection.ended or loop.time() >= deadline:
                return work.respond(found)
    finally:
        connection.when_ended = None
        work.session.stop_waiting(wake)
        work.release()
