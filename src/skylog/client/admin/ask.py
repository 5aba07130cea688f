"""Requests to the controller, with retries."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from skylog.client.cluster import Cluster
from skylog.client.errors import error_of
from skylog.kernel.errors import ErrorCode, KafkaError
from skylog.wire.schema import Message

# The broker is not the controller now.
_ELSEWHERE = frozenset(
    {ErrorCode.NOT_CONTROLLER, ErrorCode.NETWORK_EXCEPTION, ErrorCode.REQUEST_TIMED_OUT}
)


async def ask_controller(
    cluster: Cluster,
    request: Message,
    errors: Callable[[Any], Iterable[int]],
    *,
    version_min: int = 0,
    timeout_ms: int = 0,
) -> Any:
    """The controller's response; retried with another broker if this one is not the controller."""

    async def ask() -> Any:
        try:
            connection = await cluster.controller()
            answer = await connection.request(
                request, version_min=version_min, timeout_ms=timeout_ms
            )
            if ErrorCode.NOT_CONTROLLER in errors(answer):
                raise KafkaError(ErrorCode.NOT_CONTROLLER, f"{connection.address}")
            return answer
        except KafkaError as error:
            if error.code in _ELSEWHERE:
                await cluster.refresh(())
            raise

    return await cluster.retry(ask)


async def ask_any(cluster: Cluster, request: Message, *, version_min: int = 0) -> Any:
    """Any broker's response."""

    async def ask() -> Any:
        return await (await cluster.any_node()).request(request, version_min=version_min)

    return await cluster.retry(ask)


def outcome(number: int, message: str | None) -> KafkaError | None:
    """The error in a response, with the broker's own message if there is one."""
    return error_of(number, message or None)
