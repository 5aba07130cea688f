"""A follower whose leader has only the end of the log locally."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from skylog.kernel.clock import SystemClock
from skylog.kernel.errors import ErrorCode, KafkaError
from skylog.kernel.ids import Uuid
from skylog.log import companions, snapshots
from skylog.log.checkpoints import encode_epochs, encode_snapshot
from skylog.log.config import LogConfig
from skylog.log.epochs import LeaderEpochs
from skylog.log.log import Log
from skylog.log.producers import ProducerEntry, RememberedBatch
from skylog.replication import tier_rebuild
from skylog.replication.fetcher_pool import Fetchers
from skylog.replication.leader_questions import LeaderQuestions
from skylog.replication.partition import Partition
from skylog.replication.ports import FetchPorts, FetchSettings
from skylog.replication.throttle import ReplicationQuota
from skylog.replication.tier_state import RemoteState
from skylog.wire.messages.fetch_request import FetchRequest
from skylog.wire.messages.fetch_response import (
    FetchableTopicResponse,
    FetchResponse,
    PartitionData,
)
from skylog.wire.messages.list_offsets_request import ListOffsetsRequest
from skylog.wire.messages.list_offsets_response import (
    ListOffsetsPartitionResponse,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from skylog.wire.messages.offset_for_leader_epoch_response import (
    EpochEndOffset,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderTopicResult,
)
from tests.unit.log.support import NOW, batch, open_log
from tests.unit.log.test_manager import crash, new_manager
from tests.unit.replication.support import Host, state
from tests.waiting import eventually

TOPIC_ID = Uuid(b"t" * 16)
OWN, LEADER = 1, 2
REMOTE = LogConfig(remote_storage_enable=True, remote=True)
MOVED = ErrorCode.OFFSET_MOVED_TO_TIERED_STORAGE
OUT_OF_RANGE = ErrorCode.OFFSET_OUT_OF_RANGE
# The leader's log, of which everything below ``local`` is remote only.
EPOCHS = [(0, 0), (2, 40), (5, 80)]
PRODUCER = ProducerEntry(7, 0, 0, NOW, -1, (RememberedBatch(5, 59, 0, NOW),))


class Leader:
    """Answers as a broker with tiered storage does."""

    def __init__(self) -> None:
        self.start, self.local, self.pending, self.end = 0, 60, 70, 100
        self.epochs = LeaderEpochs(EPOCHS)
        self.asked: list[int] = []
        self.fetched: list[tuple[int, int]] = []
        self.others: dict[int, int] = {}

    async def send(self, node_id: int, request: Any, version: Any = None, **_: Any) -> Any:
        await asyncio.sleep(0)
        if isinstance(request, FetchRequest):
            return self._fetch(request)
        wanted = request.topics[0].partitions[0]
        if isinstance(request, ListOffsetsRequest):
            self.asked.append(wanted.timestamp)
            offsets = {-1: self.end, -2: self.start, -4: self.local, -6: self.pending}
            offset = offsets[wanted.timestamp]
            found = ListOffsetsPartitionResponse(
                0, offset=offset, leader_epoch=self.epochs.of(offset)
            )
            return ListOffsetsResponse(topics=[ListOffsetsTopicResponse("t", [found])])
        end = EpochEndOffset(0, 0, *self.epochs.end_of(wanted.leader_epoch, self.end))
        return OffsetForLeaderEpochResponse(topics=[OffsetForLeaderTopicResult("t", [end])])

    def _fetch(self, request: FetchRequest) -> FetchResponse:
        answers = []
        for topic in request.topics:
            for wanted in topic.partitions:
                offset = wanted.fetch_offset
                if wanted.partition:
                    self.others[wanted.partition] = self.others.get(wanted.partition, 0) + 1
                    answers.append(PartitionData(wanted.partition, high_watermark=0, records=b""))
                    continue
                self.fetched.append((offset, wanted.last_fetched_epoch))
                code = ErrorCode.NONE
                if not self.start <= offset <= self.end:
                    code = OUT_OF_RANGE
                elif offset < self.local:
                    code = MOVED
                answers.append(
                    PartitionData(
                        0,
                        code,
                        high_watermark=self.end,
                        log_start_offset=self.start,
                        records=b"",
                    )
                )
        # Without a session, every request names all partitions.
        return FetchResponse(responses=[FetchableTopicResponse("", TOPIC_ID, answers)])


class Tier:
    """A store with segments of 20 offsets; one from 40 to 59, for example."""

    def __init__(self, leader: Leader) -> None:
        self.leader = leader
        self.from_last_tiered_offset = False
        self.downloads: list[tuple[int, int]] = []
        self.counted: list[KafkaError | None] = []
        self.errors: list[Exception] = []
        self.hangs = False
        self.has_segments = True
        self.snapshot = encode_snapshot([PRODUCER])

    async def state_at(self, partition: Partition, epoch: int, offset: int) -> RemoteState | None:
        self.downloads.append((epoch, offset))
        if self.hangs:
            await asyncio.Event().wait()
        if self.errors:
            raise self.errors.pop(0)
        if not self.has_segments or self.leader.epochs.of(offset) != epoch:
            return None
        start = offset // 20 * 20
        epochs = [one for one in self.leader.epochs if one[1] < start + 20]
        return RemoteState(start, start + 19, encode_epochs(epochs).encode(), self.snapshot)

    def rebuilt(self, topic: str, error: KafkaError | None) -> None:
        self.counted.append(error)


class World:
    def __init__(self, tmp_path: Path, log: Log | None = None) -> None:
        self.leader = Leader()
        self.tier = Tier(self.leader)
        ports = FetchPorts(
            peers=self.leader,
            clock=SystemClock(),
            broker_epoch=lambda: 11,
            quota=ReplicationQuota(2, 1_000, SystemClock()),
            remote_tier=self.tier,
        )
        settings = FetchSettings(node_id=OWN, wait_ms_max=0, backoff_ms=1)
        self.fetchers = Fetchers(settings, ports)
        self.log = log or open_log(tmp_path / "t-0", REMOTE)
        self.partition = Partition(Host(OWN), "t", 0, TOPIC_ID, self.log)
        self.fetchers.start()

    def follow(self, epoch: int = 5, leader: int = LEADER) -> None:
        self.partition.update(state(leader, epoch, (OWN, LEADER)))
        self.fetchers.follow(self.partition)

    async def fetches(self, offset: int, epoch: int) -> None:
        await eventually(lambda: (offset, epoch) in self.leader.fetched)


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    made = World(tmp_path)
    yield made
    await made.fetchers.close()


async def test_an_empty_replica_continues_behind_what_is_remote(world: World) -> None:
    world.follow()
    await world.fetches(60, 2)
    log = world.log
    assert world.leader.fetched[0] == (0, -1)
    assert world.leader.asked == [-2, -4]
    assert world.tier.downloads == [(2, 59)]
    assert (log.log_start_offset, log.log_end_offset, log.high_watermark) == (0, 60, 60)
    assert list(log.companions.epochs) == [(0, 0), (2, 40)]
    assert log.producers.get(7) == PRODUCER
    assert world.tier.counted == [None]
    directory = Path(log.directory)
    assert (directory / "leader-epoch-checkpoint").read_text() == encode_epochs([(0, 0), (2, 40)])
    assert (directory / f"{60:020}.snapshot").read_bytes() == world.tier.snapshot


async def test_a_segment_that_reaches_behind_the_leaders_start_is_used_whole(world: World) -> None:
    world.leader.local = 85
    world.follow()
    await world.fetches(100, 5)
    assert world.tier.downloads == [(5, 84)]
    assert world.log.log_end_offset == 100


async def test_the_leaders_log_start_cuts_the_epochs(world: World) -> None:
    world.leader.start = 45
    world.follow()
    await world.fetches(60, 2)
    # First out of range, then moved to tiered storage.
    assert world.leader.fetched[0] == (0, -1)
    assert (world.log.log_start_offset, world.log.log_end_offset) == (45, 60)
    assert list(world.log.companions.epochs) == [(2, 45)]


async def test_a_replica_that_was_away_for_long_starts_over(world: World) -> None:
    for _ in range(10):
        world.log.appender.append([batch(b"old")], 0, NOW)
    world.follow()
    await world.fetches(60, 2)
    assert world.leader.fetched[0] == (10, 0)
    assert (world.log.log_start_offset, world.log.log_end_offset, world.log.size) == (0, 60, 0)


@pytest.mark.parametrize(("pending", "expected"), [(85, (100, 5)), (80, (80, 2)), (-1, (60, 2))])
async def test_an_empty_replica_may_begin_at_the_last_tiered_offset(
    world: World, pending: int, expected: tuple[int, int]
) -> None:
    """If nothing waits for its upload, the leader has no such offset: its local start is used."""
    world.tier.from_last_tiered_offset = True
    world.leader.pending = pending
    world.follow()
    await world.fetches(*expected)
    assert world.leader.asked == ([-2, -6] if pending >= 0 else [-2, -6, -4])


async def test_a_replica_with_records_does_not_skip_what_the_leader_has(world: World) -> None:
    world.tier.from_last_tiered_offset = True
    world.log.appender.append([batch(b"old")], 0, NOW)
    world.follow()
    await world.fetches(60, 2)
    assert world.leader.asked == [-2, -4]


async def test_a_leader_without_remote_segments_is_fetched_from_its_start(world: World) -> None:
    """Records were deleted, and nothing was copied."""
    world.leader.start = world.leader.local = 50
    world.follow()
    await world.fetches(50, -1)
    assert (world.log.log_start_offset, world.log.log_end_offset) == (50, 50)
    assert world.tier.downloads == []
    fetched = world.leader.fetched
    await eventually(lambda: fetched.count((50, -1)) > 1)
    assert world.leader.asked == [-1, -2]


async def test_a_log_without_history_is_never_fetched_into(world: World) -> None:
    """A crash came between truncation and epochs."""
    world.log.truncate_fully_and_start_at(60, 0)
    world.follow()
    await world.fetches(60, 2)
    assert (60, -1) not in world.leader.fetched
    assert world.log.producers.get(7) == PRODUCER


async def test_a_log_without_history_may_begin_too_late(world: World) -> None:
    """The leader has everything locally by now: another one was elected."""
    world.log.truncate_fully_and_start_at(60, 0)
    world.leader.local = 0
    world.follow()
    await world.fetches(0, -1)
    assert (60, -1) not in world.leader.fetched


@pytest.mark.parametrize(
    "error",
    [
        KafkaError(ErrorCode.REPLICA_NOT_AVAILABLE),
        KafkaError(ErrorCode.KAFKA_STORAGE_ERROR),
        ValueError("a bug"),
    ],
)
async def test_errors_are_waited_out_with_the_old_log_in_place(
    world: World, error: Exception
) -> None:
    world.log.appender.append([batch(b"old")], 0, NOW)
    world.tier.errors = [error, error]
    ends: list[int] = []
    counted = world.tier.rebuilt

    def rebuilt(topic: str, error: KafkaError | None) -> None:
        ends.append(world.log.log_end_offset)
        counted(topic, error)

    world.tier.rebuilt = rebuilt  # type: ignore[method-assign]
    world.follow()
    await world.fetches(60, 2)
    assert ends == [1, 1, 60]
    assert [one is None for one in world.tier.counted] == [False, False, True]


@pytest.mark.parametrize("broken", ["segment", "snapshot"])
async def test_nothing_is_truncated_for_a_state_that_cannot_be_used(
    world: World, broken: str
) -> None:
    world.log.appender.append([batch(b"old")], 0, NOW)
    if broken == "segment":
        world.tier.has_segments = False
    else:
        world.tier.snapshot = b"\x00\x01garbage"
    world.follow()
    await eventually(lambda: len(world.tier.counted) > 2)
    assert None not in world.tier.counted
    assert (world.log.log_end_offset, world.log.size > 0) == (1, True)
    assert world.fetchers.failed_count == 0


async def test_a_store_that_hangs_does_not_hold_up_other_partitions(
    world: World, tmp_path: Path
) -> None:
    world.tier.hangs = True
    other = Partition(Host(OWN), "t", 1, TOPIC_ID, open_log(tmp_path / "t-1"))
    other.update(state(LEADER, 5, (OWN, LEADER)))
    world.follow()
    await eventually(lambda: world.tier.downloads)
    world.fetchers.follow(other)
    await eventually(lambda: world.leader.others.get(1, 0) > 2)
    assert world.leader.fetched == [(0, -1)]
    # A new leader epoch begins again; nothing remains of the first attempt.
    world.tier.hangs = False
    world.follow(6)
    await world.fetches(60, 2)
    assert world.tier.counted == [None]


async def test_a_rebuild_ends_with_its_fetcher(world: World) -> None:
    world.tier.hangs = True
    world.follow()
    await eventually(lambda: world.tier.downloads)
    world.partition.update(state(OWN, 6, (OWN, LEADER)))
    world.fetchers.follow(world.partition)
    world.tier.hangs = False
    await world.fetchers.close()
    assert world.log.log_end_offset == 0
    assert world.tier.counted == []


async def test_without_tiered_storage_the_leaders_answer_is_waited_out(tmp_path: Path) -> None:
    leader = Leader()
    ports = FetchPorts(
        peers=leader,
        clock=SystemClock(),
        broker_epoch=lambda: 11,
        quota=ReplicationQuota(2, 1_000, SystemClock()),
    )
    fetchers = Fetchers(FetchSettings(node_id=OWN, wait_ms_max=0, backoff_ms=1), ports)
    log = open_log(tmp_path / "t-0")
    partition = Partition(Host(OWN), "t", 0, TOPIC_ID, log)
    partition.update(state(LEADER, 5, (OWN, LEADER)))
    fetchers.follow(partition)
    fetchers.start()
    await eventually(lambda: len(leader.fetched) > 2)
    assert fetchers.failed_count == 0
    assert log.log_end_offset == 0
    await fetchers.close()


class _Crash(BaseException):
    """The process is killed."""


def _crash(*_: Any) -> None:
    raise _Crash


@pytest.mark.parametrize(
    ("where", "method"),
    [
        (Log, "truncate_fully_and_start_at"),
        (Log, "_begin_at"),
        (Log, "_reload"),
        (snapshots.ProducerSnapshots, "restore"),
        (companions.Companions, "restore"),
        (tier_rebuild, "restore"),
        (None, "after all steps"),
    ],
)
@pytest.mark.parametrize("records", [0, 10])
async def test_a_crash_between_two_steps_only_repeats_them(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    where: Any,
    method: str,
    records: int,
) -> None:
    manager = new_manager(tmp_path)
    await manager.start()
    log = manager.get_or_create("t", 0, TOPIC_ID, REMOTE)
    for _ in range(records):
        log.appender.append([batch(b"old")], 0, NOW)
    world = World(tmp_path, log)
    world.partition.update(state(LEADER, 5, (OWN, LEADER)))
    questions = LeaderQuestions(world.leader, OWN, LEADER, "")
    work = tier_rebuild.TierRebuild(world.partition, questions, world.tier)
    if where is None:
        await work.run()
    else:
        with monkeypatch.context() as patch:
            patch.setattr(where, method, _crash)
            with pytest.raises(_Crash):
                await work.run()
    crash(manager)

    manager = new_manager(tmp_path)
    await manager.start(lambda topic: REMOTE)
    found = manager.get("t", 0)
    assert found is not None
    again = World(tmp_path, found)
    again.follow(6)
    await again.fetches(60, 2)
    assert (60, -1) not in again.leader.fetched
    assert (found.log_start_offset, found.local_log_start_offset) == (0, 60)
    assert (found.log_end_offset, found.high_watermark) == (60, 60)
    assert found.producers.get(7) == PRODUCER
    assert list(found.companions.epochs) == [(0, 0), (2, 40)]
    assert bool(again.tier.downloads) == (where is not None)
    await again.fetchers.close()
    await manager.close()
