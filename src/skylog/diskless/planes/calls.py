"""Concurrent calls."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterable, Sequence
from typing import Any, TypeVar

from skylog.kernel.errors import KafkaError

ResultT = TypeVar("ResultT")


async def outcomes_of(
    calls: Sequence[Coroutine[Any, Any, ResultT]],
) -> Sequence[ResultT | BaseException]:
    """The result of each. A single call, the most common case, needs no task."""
    outcomes: list[ResultT | BaseException]
    if len(calls) == 1:
        try:
            outcomes = [await calls[0]]
        except KafkaError as error:
            outcomes = [error.without_frames()]
    else:
        outcomes = await asyncio.gather(*calls, return_exceptions=True)
    return outcomes


async def all_done(calls: Iterable[Coroutine[Any, Any, Any]]) -> None:
    """Waits for every call; raises the first error, preferably one of unknown outcome."""
    outcomes = await asyncio.gather(*calls, return_exceptions=True)
    errors = [outcome for outcome in outcomes if isinstance(outcome, BaseException)]
    for error in errors:
        if isinstance(error, KafkaError) and error.ambiguous:
            raise error
    if errors:
        raise errors[0]
