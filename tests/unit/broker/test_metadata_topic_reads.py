"""A broker that follows a partition of the metadata topic reads its own records back at once."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from skylog.broker.tiered import metadata_topic
from skylog.broker.tiered.metadata_topic import ClusterMetadataTopic
from skylog.kernel.errors import ErrorCode, KafkaError
from skylog.kernel.executor import InlineExecutor
from skylog.kernel.ids import Uuid
from skylog.replication.partition import Partition
from skylog.tiered.ports import MetadataValue
from skylog.wire.messages.fetch_response import (
    FetchableTopicResponse,
    FetchResponse,
    PartitionData,
)
from skylog.wire.records import encode_batch
from tests.unit.log.support import batch, open_log
from tests.unit.replication.support import Host, state

OWN, LEADER = 1, 2


class World:
    """This broker's replica has a record that it does not know to be committed."""

    def __init__(self, tmp_path: Path, answer: Callable[[], Any]) -> None:
        log = open_log(tmp_path / "m-0")
        self.replica = Partition(Host(OWN), "m", 0, Uuid(b"m" * 16), log)
        self.replica.update(state(LEADER, 3, (OWN, LEADER)))
        log.appender.append([batch(b"record")], 3, 1)
        self._answer = answer
        led = SimpleNamespace(leader=LEADER)
        topic = SimpleNamespace(topic_id=self.replica.topic_id, partitions={0: led})
        ports: Any = SimpleNamespace(
            image=SimpleNamespace(topic=lambda name: topic),
            replicas=SimpleNamespace(get=lambda name, index: self.replica),
            peers=self,
            system=SimpleNamespace(executor=InlineExecutor()),
        )
        self.topic = ClusterMetadataTopic(ports, 1)

    async def send(self, node_id: int, request: Any, **_: Any) -> Any:
        assert node_id == LEADER
        return await self._answer()


async def committed() -> FetchResponse:
    records = encode_batch([(None, b"record")], timestamp=1)
    data = PartitionData(0, high_watermark=1, log_start_offset=0, records=records)
    return FetchResponse(responses=[FetchableTopicResponse("", Uuid(b"m" * 16), [data])])


async def hangs() -> None:
    await asyncio.Event().wait()


async def fails() -> None:
    raise KafkaError(ErrorCode.NETWORK_EXCEPTION)


async def test_the_leader_knows_first_what_is_committed(tmp_path: Path) -> None:
    world = World(tmp_path, committed)
    page = await world.topic.read(0, 0, 1 << 20)
    assert list(page.values) == [MetadataValue(0, b"record")]
    assert (page.next_offset, page.high_watermark) == (1, 1)
    assert world.replica.log.high_watermark == 0


@pytest.mark.parametrize("leader", [hangs, fails])
async def test_a_leader_that_does_not_answer_is_not_waited_for(
    tmp_path: Path, leader: Callable[[], Any]
) -> None:
    """The replica hears of the commit from the next leader, for example."""
    world = World(tmp_path, leader)
    reading = asyncio.ensure_future(world.topic.read(0, 0, 1 << 20))
    for _ in range(10):
        await asyncio.sleep(0)
    assert not reading.done()
    world.replica.follow(1, 0)
    page = await reading
    assert list(page.values) == [MetadataValue(0, b"record")]
    assert asyncio.all_tasks() == {asyncio.current_task()}


async def test_a_leader_tells_no_end_that_may_be_lost_with_its_leadership(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(metadata_topic, "REMOTE_METADATA_FETCH_WAIT_MS", 1)
    world = World(tmp_path, fails)
    world.replica.update(state(OWN, 4, (OWN, LEADER)))
    with pytest.raises(KafkaError, match="not committed up to 1"):
        await world.topic.end_offset(0)


async def test_a_new_leader_tells_its_end_once_all_of_it_is_committed(tmp_path: Path) -> None:
    world = World(tmp_path, fails)
    world.replica.update(state(OWN, 4, (OWN, LEADER)))
    asking = asyncio.ensure_future(world.topic.end_offset(0))
    for _ in range(10):
        await asyncio.sleep(0)
    assert not asking.done()
    world.replica.fetched_by(LEADER, 1, 0, -1)
    assert await asking == 1
