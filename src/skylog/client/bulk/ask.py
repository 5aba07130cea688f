"""Requests of skylog's own APIs, with retries.

Any other broker closes the connection on such a request. That looks like a lost connection, so
after a few of these the error asks whether this is skylog.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Final, TypeVar

from skylog.client.cluster import Cluster
from skylog.client.errors import error_of
from skylog.client.metadata import TopicPartition
from skylog.kernel.errors import ErrorCode, KafkaError
from skylog.wire.apis import ApiKey
from skylog.wire.schema import Message

ResultT = TypeVar("ResultT")

_CLOSED_TIMES_MAX: Final = 3
# The request went to the wrong broker, or too early; the caller handles other errors.
ANOTHER_TRY: Final = frozenset(
    {
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.LEADER_NOT_AVAILABLE,
        ErrorCode.REPLICA_NOT_AVAILABLE,
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.REQUEST_TIMED_OUT,
        ErrorCode.NETWORK_EXCEPTION,
        ErrorCode.KAFKA_STORAGE_ERROR,
    }
)


async def leader_of(cluster: Cluster, partition: TopicPartition) -> int:
    """-1, any broker, for a partition without a leader: its response has the error."""
    try:
        _, leader = await cluster.leader(partition)
    except KafkaError as error:
        if error.code in (ErrorCode.NETWORK_EXCEPTION, ErrorCode.REQUEST_TIMED_OUT):
            raise
        return -1
    return leader.leader


async def settled(
    cluster: Cluster,
    count: int,
    ask: Callable[[Sequence[int], list[ResultT | None]], Awaitable[None]],
) -> list[ResultT]:
    """Ask for ``count`` items; retry those that another attempt may get."""
    results: list[ResultT | None] = [None] * count

    async def ask_round() -> None:
        await ask([place for place in range(count) if _is_open(results[place])], results)
        for result in results:
            if _is_open(result):
                raise _error(result) or KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, "no response")

    try:
        await cluster.retry(ask_round)
    except KafkaError:
        if any(result is None for result in results):
            raise
    return [result for result in results if result is not None]


def _is_open(result: object) -> bool:
    error = _error(result)
    return result is None or (error is not None and error.code in ANOTHER_TRY)


def _error(result: Any) -> KafkaError | None:
    if result is None or isinstance(result, KafkaError):
        return result
    return error_of(result.error, result.message)


def code_of(number: int) -> ErrorCode:
    error = error_of(number)
    return ErrorCode.NONE if error is None else error.code


async def request_of_ours(cluster: Cluster, node_id: int, message: Message, wait_ms: int) -> Any:
    """Ask a broker (-1: any). A broker that closes the connection each time is not skylog."""
    closed = 0
    while True:
        connection = await (cluster.any_node() if node_id < 0 else cluster.node(node_id))
        try:
            return await connection.request(message, timeout_ms=wait_ms)
        except KafkaError as error:
            if error.code is not ErrorCode.NETWORK_EXCEPTION or not error.ambiguous:
                raise
            closed += 1
            if closed == _CLOSED_TIMES_MAX:
                raise KafkaError(
                    ErrorCode.UNSUPPORTED_VERSION,
                    f"{connection.address} closes the connection when asked for"
                    f" {ApiKey(message.API_KEY).name}: is this skylog?",
                ) from error
