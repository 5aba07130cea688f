"""What clients of a classic partition wait for: its other replicas."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING

from skylog.broker.partitions.port import Appended, Deleted
from skylog.kernel.errors import ErrorCode, KafkaError
from skylog.kernel.waiting import all_done

if TYPE_CHECKING:
    from skylog.replication.partition import Partition


class Replicating:
    """Batches that were appended here and that other in-sync replicas do not have yet."""

    __slots__ = ("_asked", "done")

    waits = False

    def __init__(
        self, asked: Sequence[tuple[Appended, asyncio.Future[None]]], _number: int
    ) -> None:
        self._asked = asked
        self.done = all_done([wait for _, wait in asked])

    def results(self) -> list[Appended]:
        return [self._result(*one) for one in self._asked]

    @staticmethod
    def _result(appended: Appended, wait: asyncio.Future[None]) -> Appended:
        if not wait.done():
            wait.cancel()
            return Appended(ErrorCode.REQUEST_TIMED_OUT)
        error = wait.exception()
        if error is None:
            return appended
        if not isinstance(error, KafkaError):
            raise error  # a bug: the batch must not count as written
        return Appended(error.code)


async def until_deleted(
    asked: Sequence[tuple[Partition, Deleted, asyncio.Future[None]]], seconds: float
) -> list[Deleted]:
    """Wait for the followers; those that are too slow are named."""
    await asyncio.wait([wait for _, _, wait in asked], timeout=seconds)
    results = []
    for replica, deleted, wait in asked:
        if not wait.done():
            wait.cancel()
            results.append(deleted._replace(error=ErrorCode.REQUEST_TIMED_OUT))
        elif isinstance(error := wait.exception(), KafkaError):
            results.append(deleted._replace(error=error.code))
        else:
            results.append(Deleted(replica.low_watermark))
    return results
