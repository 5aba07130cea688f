"""Questions for the offsets of partitions: one for many, and never an old answer."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from skylog.broker.tiered.log_infos import PARTITIONS_MAX, LogInfos
from skylog.diskless.plane import ControlPlane, LogInfo, TopicPartition
from skylog.kernel.errors import ErrorCode, KafkaError
from skylog.kernel.ids import Uuid
from skylog.tiered.segments import TopicIdPartition
from tests.waiting import eventually

TOPIC_ID = Uuid(b"0123456789abcdef")


class Plane:
    """Answers with the number of the question."""

    def __init__(self) -> None:
        self.asked: list[int] = []
        self.go = asyncio.Event()
        self.error: KafkaError | None = None

    async def log_info(self, partitions: Sequence[TopicPartition]) -> list[LogInfo]:
        self.asked.append(len(partitions))
        number = len(self.asked)
        await self.go.wait()
        if self.error is not None:
            raise self.error
        return [LogInfo(ErrorCode.NONE, index, number, 0, 0) for _, index in partitions]


def infos_of(plane: Plane) -> LogInfos:
    real: ControlPlane = plane  # type: ignore[assignment]
    return LogInfos(real)


def key(index: int) -> TopicIdPartition:
    return TopicIdPartition(TOPIC_ID, index)


async def test_many_that_ask_at_once_are_one_question() -> None:
    plane = Plane()
    infos = infos_of(plane)
    count = PARTITIONS_MAX + 500
    asking = [asyncio.ensure_future(infos.ask(key(index))) for index in range(count)]
    plane.go.set()
    answers = await asyncio.gather(*asking)
    assert [one.log_start_offset for one in answers] == list(range(count))
    assert plane.asked == [PARTITIONS_MAX, 500]


async def test_whoever_asks_later_gets_a_later_answer() -> None:
    plane = Plane()
    infos = infos_of(plane)
    first = asyncio.ensure_future(infos.ask(key(0)))
    await eventually(lambda: plane.asked)
    second = asyncio.ensure_future(infos.ask(key(0)))
    await asyncio.sleep(0)
    plane.go.set()
    assert [one.high_watermark for one in await asyncio.gather(first, second)] == [1, 2]


async def test_an_error_is_for_those_who_asked() -> None:
    plane = Plane()
    infos = infos_of(plane)
    plane.go.set()
    plane.error = KafkaError(ErrorCode.REQUEST_TIMED_OUT)
    with pytest.raises(KafkaError):
        await infos.ask(key(0))
    plane.error = None
    assert (await infos.ask(key(0))).high_watermark == 2


async def test_one_that_gives_up_does_not_fail_the_others() -> None:
    plane = Plane()
    infos = infos_of(plane)
    one, other = (asyncio.ensure_future(infos.ask(key(0))) for _ in range(2))
    await eventually(lambda: plane.asked)
    one.cancel()
    plane.go.set()
    assert (await other).high_watermark == 1
    assert plane.asked == [1]
