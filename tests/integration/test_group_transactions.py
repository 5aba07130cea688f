"""Offsets that are committed in transactions: pending, then valid or dropped, also after a
fail-over."""

from __future__ import annotations

import asyncio
import random
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from skylog.groups.coordinator import GroupCoordinator
from skylog.groups.requests import ClientContext, ExpireOffsets, Request
from skylog.groups.settings import GroupSettings
from skylog.kernel.errors import ErrorCode, KafkaError
from skylog.kernel.ids import Uuid
from skylog.log.producers import Marker, TransactionEnd
from skylog.replicated.machine import InTransaction
from skylog.wire.messages.delete_groups_request import DeleteGroupsRequest
from skylog.wire.messages.join_group_request import JoinGroupRequest, JoinGroupRequestProtocol
from skylog.wire.messages.offset_commit_request import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from skylog.wire.messages.offset_delete_request import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from skylog.wire.messages.offset_fetch_request import (
    OffsetFetchRequest,
    OffsetFetchRequestTopic,
)
from tests.integration.test_topic_log import CLOCK, led_partition, started

GROUP = "group"
TOPIC_ID = Uuid(b"t" * 16)
CONTEXT = ClientContext(7, "client", "127.0.0.1")
UNSTABLE = int(ErrorCode.UNSTABLE_OFFSET_COMMIT)


class World:
    """A group coordinator on one real partition, which can be restarted."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.partition = led_partition(directory)
        self.coordinator: GroupCoordinator

    async def start(self) -> World:
        self.coordinator = await started(self.partition)
        return self

    async def restart(self, *, clean: bool = True) -> None:
        await self.coordinator.close()
        if clean:
            self.partition.log.close()
        self.partition = led_partition(self.directory)
        await self.start()

    async def commit(
        self,
        offset: int,
        producer_id: int | None = None,
        *,
        epoch: int = 0,
        partition: int = 0,
        member_id: str = "",
        generation: int = -1,
    ) -> ErrorCode:
        place = OffsetCommitRequestPartition(partition, offset)
        request = OffsetCommitRequest(
            GROUP, generation, member_id, topics=[OffsetCommitRequestTopic("t", TOPIC_ID, [place])]
        )
        transaction = None
        if producer_id is not None:
            transaction = InTransaction(producer_id, epoch, is_verified=False)
        found = await self.coordinator.offset_commit(request, CONTEXT, transaction)
        return ErrorCode(found.topics[0].partitions[0].error_code)

    async def end(self, producer_id: int, *, commit: bool, epoch: int = 0) -> None:
        end = TransactionEnd(producer_id, epoch, Marker(0, commit))
        await self.coordinator.end_transaction(0, end)

    async def fetch(self, *, stable: bool, partition: int = 0) -> tuple[int, int]:
        """The offset and the error."""
        asked = [OffsetFetchRequestTopic("t", [partition])]
        request = OffsetFetchRequest(GROUP, asked, require_stable=stable)
        found = (await self.coordinator.offset_fetch(request, CONTEXT)).topics[0].partitions[0]
        return found.committed_offset, found.error_code

    async def fetch_all(self, *, stable: bool) -> dict[int, tuple[int, int]]:
        request = OffsetFetchRequest(GROUP, None, require_stable=stable)
        found = (await self.coordinator.offset_fetch(request, CONTEXT)).topics
        return {
            p.partition_index: (p.committed_offset, p.error_code)
            for topic in found
            for p in topic.partitions
        }

    async def delete_offset(self) -> None:
        place = OffsetDeleteRequestTopic("t", [OffsetDeleteRequestPartition(0)])
        await self.coordinator.offset_delete(OffsetDeleteRequest(GROUP, [place]), CONTEXT)

    async def delete_group(self) -> int:
        found = await self.coordinator.delete_groups(DeleteGroupsRequest([GROUP]), CONTEXT)
        return int(found.results[0].error_code)


@pytest.fixture
async def world(tmp_path: Path) -> Any:
    found = await World(tmp_path).start()
    yield found
    await found.coordinator.close()


@pytest.mark.parametrize("restart", [False, True])
@pytest.mark.parametrize("commit", [False, True])
async def test_pending_offsets_become_valid_or_are_forgotten(
    world: World, commit: bool, restart: bool
) -> None:
    await world.commit(5)
    assert await world.commit(9, 77) is ErrorCode.NONE
    if restart:
        await world.restart()
    assert await world.fetch(stable=False) == (5, 0)
    assert await world.fetch(stable=True) == (-1, UNSTABLE)
    assert await world.fetch_all(stable=True) == {0: (-1, UNSTABLE)}
    assert await world.fetch(stable=True, partition=1) == (-1, 0)
    await world.end(77, commit=commit)
    if restart:
        await world.restart(clean=False)
    assert await world.fetch(stable=True) == (9 if commit else 5, 0)
    assert await world.fetch_all(stable=False) == {0: (9 if commit else 5, 0)}


async def test_a_transaction_is_all_or_nothing(world: World) -> None:
    for partition in range(3):
        await world.commit(10 + partition, 77, partition=partition)
    assert await world.fetch_all(stable=False) == {}
    await world.end(77, commit=True)
    assert await world.fetch_all(stable=False) == {0: (10, 0), 1: (11, 0), 2: (12, 0)}


async def test_the_latest_record_counts_and_not_the_latest_marker(world: World) -> None:
    await world.commit(1, 77)
    await world.commit(2, 78)
    await world.commit(3)
    await world.end(77, commit=True)
    assert await world.fetch(stable=False) == (3, 0)
    assert await world.fetch(stable=True) == (-1, UNSTABLE)
    await world.end(78, commit=True)
    assert await world.fetch(stable=True) == (3, 0)
    await world.commit(4, 77)
    await world.commit(5, 78)
    await world.end(78, commit=True)
    await world.end(77, commit=True)
    assert await world.fetch(stable=True) == (5, 0)
    await world.restart()
    assert await world.fetch(stable=True) == (5, 0)


async def test_a_tombstone_takes_what_is_pending_too(world: World) -> None:
    await world.commit(1, 77)
    await world.delete_offset()
    assert await world.fetch(stable=True) == (-1, 0)
    await world.end(77, commit=True)
    assert await world.fetch(stable=True) == (-1, 0)
    await world.restart()
    assert await world.fetch_all(stable=True) == {}


async def test_a_deleted_group_takes_what_is_pending_too(world: World) -> None:
    await world.commit(1, 77)
    assert await world.delete_group() == 0
    await world.end(77, commit=True)
    await world.restart()
    assert await world.fetch_all(stable=False) == {}
    assert await world.delete_group() == ErrorCode.GROUP_ID_NOT_FOUND


async def test_deleted_topics_take_what_is_pending_too(world: World) -> None:
    await world.commit(1, 77)
    world.coordinator.topics_deleted([("t", TOPIC_ID)])
    await world.coordinator.loaded()
    await world.end(77, commit=True)
    assert await world.fetch_all(stable=False) == {}


async def test_nothing_expires_while_a_transaction_is_open(world: World) -> None:
    await world.commit(5)
    await world.commit(9, 77)
    CLOCK.advance(GroupSettings().offsets_retention_ms)
    expire: Any = ExpireOffsets()
    await world.coordinator.submit(GROUP, expire)
    assert await world.fetch(stable=False) == (5, 0)
    await world.end(77, commit=False)
    await world.coordinator.submit(GROUP, expire)
    assert await world.fetch_all(stable=False) == {}


# -- who may commit ------------------------------------------------------------------------------


async def test_a_group_without_members_checks_no_member(world: World) -> None:
    assert await world.commit(1, 77, generation=0) is ErrorCode.ILLEGAL_GENERATION
    assert await world.commit(1, 77) is ErrorCode.NONE
    assert await world.commit(1, 77, member_id="whoever") is ErrorCode.NONE
    assert await world.commit(1, 77, generation=3) is ErrorCode.UNKNOWN_MEMBER_ID


async def test_named_members_are_checked(world: World) -> None:
    join = JoinGroupRequest(
        GROUP, 10_000, 10_000, "", None, "consumer", [JoinGroupRequestProtocol("range", b"")]
    )
    request: Request[Any] = Request(join, 3, "client", "/host", "1")
    task = world.coordinator.submit(GROUP, request)
    world.coordinator.start(_ignore(task))
    await asyncio.sleep(0)  # let the member in
    assert await world.commit(1) is ErrorCode.UNKNOWN_MEMBER_ID
    # Old versions name no member, and are accepted in any state of the group.
    assert await world.commit(1, 77) is ErrorCode.NONE
    assert await world.commit(1, 77, member_id="stranger") is ErrorCode.UNKNOWN_MEMBER_ID
    assert await world.commit(1, 77, member_id="client-1") is ErrorCode.ILLEGAL_GENERATION


async def _ignore(work: Any) -> None:
    try:
        await work
    except KafkaError:
        return


async def test_a_fenced_producer_commits_nothing(world: World) -> None:
    await world.commit(1, 77, epoch=3)
    assert await world.commit(2, 77, epoch=2) is ErrorCode.INVALID_PRODUCER_EPOCH
    with pytest.raises(KafkaError, match="INVALID_PRODUCER_EPOCH"):
        await world.end(77, commit=True, epoch=2)
    # The coordinator goes on, without the refused offsets.
    await world.end(77, commit=True, epoch=4)
    assert await world.fetch(stable=True) == (1, 0)


async def test_without_verification_nothing_is_committed(world: World) -> None:
    request = OffsetCommitRequest(
        GROUP, topics=[OffsetCommitRequestTopic("t", TOPIC_ID, [OffsetCommitRequestPartition(0)])]
    )
    found = await world.coordinator.offset_commit(request, CONTEXT, InTransaction(5, 0))
    assert found.topics[0].partitions[0].error_code == ErrorCode.INVALID_TXN_STATE
    assert await world.fetch(stable=True) == (-1, 0)


# -- against a model -----------------------------------------------------------------------------

Step = tuple[str, int, int]
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("commit"), st.integers(0, 2), st.just(0)),
        st.tuples(st.just("pending"), st.integers(0, 2), st.integers(1, 3)),
        st.tuples(st.sampled_from(["end", "abort"]), st.just(0), st.integers(1, 3)),
        st.tuples(st.just("restart"), st.just(0), st.just(0)),
    ),
    max_size=25,
)


class Model:
    """Each record has a number; a partition has the greatest valid one."""

    def __init__(self) -> None:
        self.valid: dict[int, int] = {}
        self.pending: dict[int, dict[int, int]] = {}

    def end(self, producer_id: int, commit: bool) -> None:
        for partition, number in self.pending.pop(producer_id, {}).items():
            if commit:
                self.valid[partition] = max(self.valid.get(partition, -1), number)

    def expected(self, *, stable: bool) -> dict[int, tuple[int, int]]:
        waits = {p for pending in self.pending.values() for p in pending} if stable else set()
        return {
            partition: (-1, UNSTABLE) if partition in waits else (number, 0)
            for partition, number in self.valid.items()
        }


@settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(steps=STEPS, seed=st.integers(0, 2**32))
async def test_every_history_ends_as_the_model_says(
    tmp_path_factory: pytest.TempPathFactory, steps: list[Step], seed: int
) -> None:
    world = await World(tmp_path_factory.mktemp("history")).start()
    model, rng = Model(), random.Random(seed)
    for number, (kind, partition, producer_id) in enumerate(steps):
        match kind:
            case "commit":
                await world.commit(number, partition=partition)
                model.valid[partition] = number
            case "pending":
                await world.commit(number, producer_id, partition=partition)
                model.pending.setdefault(producer_id, {})[partition] = number
            case "restart":
                await world.restart(clean=rng.random() < 0.5)
            case _:
                await world.end(producer_id, commit=kind == "end")
                model.end(producer_id, kind == "end")
        for stable in (False, True):
            assert await world.fetch_all(stable=stable) == model.expected(stable=stable)
    await world.coordinator.close()
