"""The outcome of a request between brokers: its result, or an error for each of its items."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import Any, TypeVar

from skylog.kernel.errors import ErrorCode, KafkaError

T = TypeVar("T")


async def outcome_of(work: Awaitable[T], timeout_ms: int) -> T | KafkaError:
    try:
        async with asyncio.timeout(max(timeout_ms, 0) / 1000):
            return await work
    except TimeoutError:
        return KafkaError(ErrorCode.REQUEST_TIMED_OUT, ambiguous=True)
    except KafkaError as error:
        return error


def error_of(outcome: object) -> tuple[ErrorCode, str | None]:
    """Only one code means that the outcome is unknown."""
    if not isinstance(outcome, KafkaError):
        return ErrorCode.NONE, None
    code = ErrorCode.REQUEST_TIMED_OUT if outcome.ambiguous else outcome.code
    return code, str(outcome)


def message_of(outcome: object) -> str | None:
    return str(outcome) if isinstance(outcome, KafkaError) else None


def items(outcome: Any, count: int, result_of: Any) -> Any:
    """Copies an error of the whole request into each item."""
    if isinstance(outcome, KafkaError):
        return [result_of(*error_of(outcome))] * count
    return outcome
