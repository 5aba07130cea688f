"""Sending ISR changes to the controller."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from skylog.kernel.errors import ErrorCode, KafkaError
from skylog.kernel.ids import Uuid
from skylog.replication.isr_updates import IsrUpdates
from skylog.replication.partition import Partition
from skylog.wire.messages.alter_partition_response import (
    AlterPartitionResponse,
    PartitionData,
    TopicData,
)
from tests.unit.log.support import open_log
from tests.unit.replication.support import NODE, Host, state
from tests.waiting import eventually

TOPIC_ID = Uuid(b"t" * 16)


class Controller:
    """Answers from a list; the last answer is repeated."""

    def __init__(self) -> None:
        self.requests: list[Any] = []
        self.answers: list[Any] = []
        self.hold = asyncio.Event()
        self.hold.set()

    async def submit(self, request: Any, version: int) -> Any:
        assert version == 3
        self.requests.append(request)
        await self.hold.wait()
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, Exception):
            raise answer
        return answer


class AskingHost(Host):
    updates: IsrUpdates

    def alter_isr(self, partition: Partition, change: Any) -> None:
        self.updates.submit(partition, change)


def agreed(*isr: int, index: int = 0, version: int = 1) -> AlterPartitionResponse:
    data = PartitionData(
        partition_index=index,
        leader_id=NODE,
        leader_epoch=0,
        isr=list(isr),
        partition_epoch=version,
    )
    return AlterPartitionResponse(topics=[TopicData(TOPIC_ID, [data])])


def refused(code: ErrorCode) -> AlterPartitionResponse:
    return AlterPartitionResponse(topics=[TopicData(TOPIC_ID, [PartitionData(0, code)])])


class World:
    def __init__(self, directory: Path) -> None:
        self.controller = Controller()
        self.host = AskingHost(NODE)
        self.updates = self.host.updates = IsrUpdates(NODE, lambda: 11, self.controller)
        self.directory = directory

    def partition(self, index: int = 0) -> Partition:
        log = open_log(self.directory / f"t-{index}")
        made = Partition(self.host, "t", index, TOPIC_ID, log)
        made.update(state(NODE, 0, (NODE, 2), (NODE,)))
        return made


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    made = World(tmp_path)
    yield made
    await made.updates.close()


async def test_a_replica_that_has_caught_up_joins(world: World) -> None:
    world.controller.answers = [agreed(NODE, 2)]
    partition = world.partition()
    partition.fetched_by(2, 0, 0, 12)
    await eventually(lambda: partition.isr == (NODE, 2))
    (request,) = world.controller.requests
    asked = request.topics[0].partitions[0]
    members = [(each.broker_id, each.broker_epoch) for each in asked.new_isr_with_epochs]
    assert (request.broker_id, request.broker_epoch, members) == (NODE, 11, [(NODE, 11), (2, 12)])
    assert (world.updates.expands, world.updates.shrinks, world.updates.failed) == (1, 0, 0)


async def test_it_is_asked_until_there_is_an_answer(world: World) -> None:
    world.controller.answers = [
        KafkaError(ErrorCode.NOT_CONTROLLER),
        ValueError("a bug"),
        AlterPartitionResponse(error_code=ErrorCode.STALE_BROKER_EPOCH),
        refused(ErrorCode.REQUEST_TIMED_OUT),
        agreed(NODE, 2),
    ]
    partition = world.partition()
    partition.fetched_by(2, 0, 0, 12)
    await eventually(lambda: partition.isr == (NODE, 2))
    assert len(world.controller.requests) == 5
    assert world.updates.failed == 4


async def test_waiting_changes_are_sent_together_without_outdated_ones(world: World) -> None:
    world.controller.answers = [agreed(NODE, 2)]
    world.controller.hold.clear()
    first, second, third = (world.partition(index) for index in range(3))
    first.fetched_by(2, 0, 0, 12)
    await eventually(lambda: len(world.controller.requests) == 1)
    second.fetched_by(2, 0, 0, 12)
    third.fetched_by(2, 0, 0, 12)
    second.update(state(NODE, 0, (NODE, 2), (NODE, 2), version=1))
    world.controller.answers = [agreed(NODE, 2), agreed(NODE, 2, index=2)]
    world.controller.hold.set()
    await eventually(lambda: third.isr == (NODE, 2))
    asked = [p.partition_index for p in world.controller.requests[1].topics[0].partitions]
    assert asked == [2]


async def test_a_refusal_is_not_repeated(world: World) -> None:
    world.controller.answers = [refused(ErrorCode.INELIGIBLE_REPLICA)]
    partition = world.partition()
    partition.fetched_by(2, 0, 0, 12)
    await eventually(lambda: world.updates.failed == 1)
    assert partition.isr == (NODE,)
    assert partition.leader is not None
    assert partition.leader.pending is None
    assert len(world.controller.requests) == 1
