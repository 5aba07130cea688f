"""Asks coordinators for the offsets of partitions: many that ask at once are one question.

A broker that begins to lead ten thousand partitions would otherwise send as many requests.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from skylog.kernel.errors import KafkaError

if TYPE_CHECKING:
    from skylog.diskless.plane import ControlPlane, LogInfo
    from skylog.tiered.segments import TopicIdPartition

PARTITIONS_MAX: Final = 1000


class LogInfos:
    """All calls come from the event loop."""

    def __init__(self, plane: ControlPlane) -> None:
        self._plane = plane
        self._waiting: dict[TopicIdPartition, asyncio.Future[LogInfo]] = {}
        self._task: asyncio.Task[None] | None = None

    async def ask(self, partition: TopicIdPartition) -> LogInfo:
        """What the coordinator says after this call; raises ``KafkaError``."""
        answer = self._waiting.get(partition)
        if answer is None:
            answer = self._waiting[partition] = asyncio.get_running_loop().create_future()
        if self._task is None:
            self._task = asyncio.ensure_future(self._run())
        return await asyncio.shield(answer)

    async def _run(self) -> None:
        try:
            while self._waiting:
                # Whoever asks from now on is answered by the next question.
                some = dict(list(self._waiting.items())[:PARTITIONS_MAX])
                for partition in some:
                    del self._waiting[partition]
                await self._ask(some)
        finally:
            self._task = None

    async def _ask(self, some: dict[TopicIdPartition, asyncio.Future[LogInfo]]) -> None:
        try:
            infos = await self._plane.log_info(list(some))
        except KafkaError as error:
            for answer in some.values():
                answer.set_exception(error)
                answer.exception()  # those that waited may be gone
        except BaseException:
            for answer in some.values():
                answer.cancel()
            raise
        else:
            for answer, info in zip(some.values(), infos, strict=True):
                answer.set_result(info)
