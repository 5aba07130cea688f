"""What followers get of remote segments."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from skylog.broker.tiered.remote_tier import StoredTier
from skylog.kernel.clock import ManualClock
from skylog.kernel.errors import ErrorCode, KafkaError
from skylog.kernel.ids import Uuid
from skylog.objects.store import NotFound, ObjectError, Outcome
from skylog.replication.tier_state import RemoteState
from skylog.tiered.counts import TieredCounts
from skylog.tiered.segments import IndexType, TopicIdPartition

TOPIC_ID = Uuid(b"t" * 16)
PARTITION: Any = SimpleNamespace(topic="t", topic_id=TOPIC_ID, index=3)
SEGMENT = SimpleNamespace(id=Uuid(b"s" * 16), start_offset=40, end_offset=59)


class World:
    """Remote logs and their storage."""

    def __init__(self) -> None:
        self.known = True
        self.error: Exception | None = None
        self.indexes = {IndexType.LEADER_EPOCH: b"epochs", IndexType.PRODUCER_SNAPSHOT: b"state"}
        self.asked: list[tuple[int, int]] = []
        self.enabled = False
        self.counts = TieredCounts(ManualClock())
        world: Any = self
        self.tier = StoredTier(world, world, self.counts, lambda: self.enabled)

    def get(self, partition: TopicIdPartition) -> Any:
        assert partition == TopicIdPartition(TOPIC_ID, 3)
        return self if self.known else None

    def segment_for(self, epoch: int, offset: int) -> Any:
        self.asked.append((epoch, offset))
        return SEGMENT if 40 <= offset <= 59 else None

    async def fetch_index(self, segment: Any, kind: IndexType) -> Any:
        assert segment is SEGMENT
        if self.error is not None:
            raise self.error
        return memoryview(self.indexes[kind])


async def test_epochs_and_producers_of_the_segment_are_downloaded() -> None:
    world = World()
    assert await world.tier.state_at(PARTITION, 2, 59) == RemoteState(40, 59, b"epochs", b"state")
    assert world.asked == [(2, 59)]
    assert await world.tier.state_at(PARTITION, 2, 60) is None


async def test_a_remote_log_that_is_not_read_yet_is_waited_for() -> None:
    world = World()
    world.known = False
    with pytest.raises(KafkaError) as raised:
        await world.tier.state_at(PARTITION, 2, 59)
    assert raised.value.code is ErrorCode.REPLICA_NOT_AVAILABLE


@pytest.mark.parametrize(
    "error",
    [NotFound("gone"), ObjectError("slow", Outcome.NOT_DONE), ObjectError("?", Outcome.AMBIGUOUS)],
)
async def test_errors_of_the_store_are_those_of_the_partition(error: Exception) -> None:
    world = World()
    world.error = error
    with pytest.raises(KafkaError) as raised:
        await world.tier.state_at(PARTITION, 2, 59)
    assert raised.value.code is ErrorCode.KAFKA_STORAGE_ERROR


async def test_rebuilt_replicas_are_counted() -> None:
    world = World()
    world.tier.rebuilt("t", None)
    world.tier.rebuilt("t", KafkaError(ErrorCode.KAFKA_STORAGE_ERROR))
    counts = world.counts.of("t")
    assert (counts.aux_state_requests, counts.aux_state_errors) == (2, 1)


async def test_the_setting_of_new_replicas_may_change() -> None:
    world = World()
    assert not world.tier.from_last_tiered_offset
    world.enabled = True
    assert world.tier.from_last_tiered_offset
