"""Fetches of diskless partitions whose older records are in tiered segments."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from skylog.broker.observe.traffic import Traffic
from skylog.broker.partitions.port import Budget, Found, Isolation, Reader
from skylog.broker.partitions.pure import PurePartition, PurePartitions, TieredReading
from skylog.broker.partitions.questions import Question, ask_all
from skylog.broker.tiered.diskless_offsets import TieredOffsets
from skylog.broker.tiered.diskless_reads import DisklessReads
from skylog.broker.tiered.prefixes import TieredPrefixes
from skylog.broker.tiered.reads import RemoteReads
from skylog.diskless.partitions import DisklessPartitions
from skylog.diskless.plane import (
    EARLIEST,
    EARLIEST_LOCAL,
    LATEST,
    ListOffsetsResult,
    LogInfo,
)
from skylog.diskless.reader import ReadRequest, ReadResult
from skylog.kernel.errors import ErrorCode, KafkaError
from skylog.log.config import LogConfig
from skylog.tiered.metadata.machine import RemoteLog
from skylog.tiered.segments import TopicIdPartition
from skylog.wire.batch import Batch
from skylog.wire.messages.fetch_request import FetchPartition
from skylog.wire.messages.fetch_response import PartitionData
from tests.unit.tiered.reading_world import FIRST_MS, Reading, Remote, bytes_of, line, unavailable
from tests.unit.tiered.remote_records import PARTITION, TOPIC, TOPIC_ID
from tests.waiting import eventually

# Ten records are tiered, and the WAL has those from the fifth on.
TIERED_END, WAL_START, END = 10, 5, 20


class Engine:
    """A plane, its WAL and its local copies."""

    def __init__(self) -> None:
        self.plane = self
        self.partitions = DisklessPartitions()
        self.partitions.assign(TOPIC, TOPIC_ID, 0, 1, 0).high_watermark = END
        self.local: Any = None
        self.info = LogInfo(ErrorCode.NONE, 0, END, 1000, WAL_START)
        self.batches: list[Batch] = line(*[100] * END)
        self.fetched: list[int] = []
        # WAL objects that are missing.
        self.lost_below = 0
        self.failure: KafkaError | None = None
        # Called after each question for offsets.
        self.listed: Callable[[], None] = lambda: None

    async def log_info(self, asked: Sequence[Any]) -> list[LogInfo]:
        if self.failure is not None:
            raise self.failure
        return [self.info] * len(asked)

    async def fetch(
        self, asked: Sequence[ReadRequest], size: int, *, min_one: bool
    ) -> list[ReadResult]:
        found = []
        for one in asked:
            self.fetched.append(one.offset)
            ends = self.info.log_start_offset, self.info.high_watermark
            if not ends[0] <= one.offset <= ends[1]:
                found.append(ReadResult(ErrorCode.OFFSET_OUT_OF_RANGE, (), 0, *ends))
            elif one.offset < self.lost_below:
                found.append(ReadResult(ErrorCode.KAFKA_STORAGE_ERROR, (), 0, *ends))
            elif one.offset < self.info.wal_start_offset:
                found.append(ReadResult(ErrorCode.OFFSET_MOVED_TO_TIERED_STORAGE, (), 0, *ends))
            else:
                data = bytes_of(self.batches[one.offset :])
                found.append(ReadResult(ErrorCode.NONE, (data,), len(data), *ends))
        return found

    async def list_offsets(
        self, asked: Sequence[tuple[Any, int, int]], *, from_offset: int = 0
    ) -> list[ListOffsetsResult]:
        named = {
            EARLIEST: self.info.log_start_offset,
            EARLIEST_LOCAL: self.info.wal_start_offset,
            LATEST: self.info.high_watermark,
        }
        found = [self._offset(named, timestamp) for _, _, timestamp in asked]
        self.listed()
        return found

    def _offset(self, named: dict[int, int], timestamp: int) -> ListOffsetsResult:
        if timestamp in named:
            return ListOffsetsResult(ErrorCode.NONE, -1, named[timestamp])
        times = [FIRST_MS + 1000 * at for at in range(self.info.wal_start_offset, END)]
        at = next((time for time in times if time >= timestamp), None)
        if timestamp < 0 or at is None:
            return ListOffsetsResult(ErrorCode.NONE)
        return ListOffsetsResult(ErrorCode.NONE, at, (at - FIRST_MS) // 1000)


class Followed:
    """The remote log, unless this broker is behind or has no replica."""

    def __init__(self, remote: Remote) -> None:
        self.remote = remote
        self.shown: RemoteLog | None = remote.log
        self.listeners: list[Callable[[TopicIdPartition], None]] = []

    def on_change(self, listener: Callable[[TopicIdPartition], None]) -> None:
        self.listeners.append(listener)

    def get(self, partition: TopicIdPartition) -> RemoteLog | None:
        return self.shown

    async def ready(self, partition: TopicIdPartition) -> RemoteLog:
        if self.shown is None:
            raise KafkaError(ErrorCode.REPLICA_NOT_AVAILABLE)
        return self.shown

    def catch_up(self) -> None:
        self.shown = self.remote.log
        for listener in self.listeners:
            listener(PARTITION)


class World:
    def __init__(self, folder: Path) -> None:
        self.engine = Engine()
        self.remote = Remote()
        self.remote.put(self.engine.batches[:WAL_START])
        self.remote.put(self.engine.batches[WAL_START:TIERED_END])
        self.followed = Followed(self.remote)
        self.reading = Reading(folder, self.remote)
        image: Any = SimpleNamespace(topic_by_id=lambda _: None)
        logs: Any = self.followed
        peers: Any = None
        self.prefixes = TieredPrefixes(logs, image, peers, 1, self.reading.clock)
        self.reading.reader._logs = self.prefixes
        settings: Any = SimpleNamespace(
            fetch_wait_ms_max=20_000,
            list_offsets_timeout_ms=100,
            fetch_bytes_per_second_max=1 << 60,
            fetch_window_count=11,
            fetch_window_seconds=1,
        )
        self.settings = settings
        self.reads = RemoteReads(
            self.reading.reader, settings, self.reading.counts, self.reading.system
        )
        engine: Any = self.engine
        none: Any = None
        self.is_remote = True
        configs: Any = SimpleNamespace(log_config=lambda _: LogConfig(remote=self.is_remote))
        self.home = PurePartitions(engine, none, none, 1, Traffic())
        self.tiering = TieredReading(
            DisklessReads(engine, self.prefixes, self.reads),
            TieredOffsets(engine, self.prefixes, self.reading.reader, self.reads),
            configs,
        )
        self.home.use_tiered(self.tiering)

    @property
    def partition(self) -> PurePartition:
        topic: Any = SimpleNamespace(topic_id=TOPIC_ID)
        return self.home.find(topic, 0)

    def ask(
        self, offset: int, budget: Budget | None = None, **more: Any
    ) -> Question[PartitionData]:
        wanted = FetchPartition(0, fetch_offset=offset, partition_max_bytes=1 << 20)
        reader = Reader(**more)
        found = self.partition.read(wanted, reader, budget or Budget(1 << 20), is_new=True)
        assert isinstance(found, Question)
        return found

    async def read(self, offset: int, **more: Any) -> PartitionData | KafkaError:
        budget = Budget(1 << 20)
        question = self.ask(offset, budget, **more)
        answer: PartitionData | KafkaError
        (answer,) = await question.resolver([question.asked], budget)
        return answer

    async def offset(self, timestamp: int) -> Found | KafkaError:
        question = self.partition.offset_for(timestamp, Isolation.UNCOMMITTED)
        ((_, found),) = await ask_all([(None, question)])
        return found


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


def records(answer: PartitionData | KafkaError) -> bytes:
    assert isinstance(answer, PartitionData)
    assert answer.error_code == 0
    assert (answer.high_watermark, answer.last_stable_offset) == (END, END)
    found: Any = answer.records
    return b"".join(found.parts) if hasattr(found, "parts") else bytes(found)


def code(answer: object) -> ErrorCode:
    assert isinstance(answer, KafkaError), answer
    return answer.code


# --- Which tier -----------------------------------------------------------------------------------


@pytest.mark.parametrize("offset", [0, 4, 5, 9])
async def test_what_is_tiered_is_not_read_from_the_wal(world: World, offset: int) -> None:
    answer = await world.read(offset)
    end = WAL_START if offset < WAL_START else TIERED_END
    assert records(answer) == bytes_of(world.engine.batches[offset:end])
    assert world.engine.fetched == []


@pytest.mark.parametrize("offset", [10, 19])
async def test_what_is_not_tiered_is_read_from_the_wal(world: World, offset: int) -> None:
    assert records(await world.read(offset)) == bytes_of(world.engine.batches[offset:])
    assert world.remote.fetched == []


async def test_a_local_copy_comes_first(world: World) -> None:
    world.engine.local = SimpleNamespace(answers=lambda place, offset: offset >= 7)
    assert world.ask(6).reserves
    assert not world.ask(7).reserves


async def test_topics_that_are_not_remote_are_not_looked_up(world: World) -> None:
    partition = world.partition
    world.is_remote = False
    delta: Any = None
    world.tiering.configs.changed_topics = lambda _: [TOPIC]  # type: ignore[method-assign]
    image: Any = SimpleNamespace(topic=lambda _: SimpleNamespace(topic_id=TOPIC_ID))
    world.home.metadata_changed(image, delta)
    assert partition.tiered is None
    assert not world.ask(0).reserves
    world.is_remote = True
    world.home.metadata_changed(image, delta)
    assert world.partition is partition
    assert world.ask(0).reserves


async def test_read_committed_has_no_aborted_transactions(world: World) -> None:
    answer = await world.read(0, read_committed=True)
    assert records(answer)
    assert isinstance(answer, PartitionData)
    assert answer.aborted_transactions == []
    answer = await world.read(0)
    assert isinstance(answer, PartitionData)
    assert answer.aborted_transactions is None


# --- What fails -----------------------------------------------------------------------------------


async def test_the_wal_helps_while_it_can(world: World) -> None:
    world.remote.failures = [unavailable() for _ in range(20)]
    assert records(await world.read(5)) == bytes_of(world.engine.batches[5:])
    assert world.reading.counts.of(TOPIC).fetch_errors == 1
    assert code(await world.read(4)) is ErrorCode.KAFKA_STORAGE_ERROR


async def test_a_slow_store_is_not_waited_for(world: World) -> None:
    world.settings.fetch_wait_ms_max = 1
    world.remote.open.clear()
    assert records(await world.read(5)) == bytes_of(world.engine.batches[5:])
    # Nothing else has it: an answer without records, after which the client asks again.
    assert records(await world.read(4)) == b""
    world.remote.open.set()
    await eventually(lambda: not world.reading.reader._under_way)
    world.settings.fetch_wait_ms_max = 20_000
    assert records(await world.read(4))


async def test_the_coordinator_says_what_is_out_of_range(world: World) -> None:
    world.engine.info = world.engine.info._replace(log_start_offset=3)
    assert code(await world.read(2)) is ErrorCode.OFFSET_OUT_OF_RANGE
    answer = await world.read(3)
    assert isinstance(answer, PartitionData)
    assert answer.log_start_offset == 3


async def test_a_segment_above_the_high_watermark_is_not_served(world: World) -> None:
    """As after a restore of a coordinator: its WAL is asked, which knows no such record."""
    world.engine.info = world.engine.info._replace(high_watermark=7)
    answer = await world.read(6)
    assert world.engine.fetched == [6]
    assert isinstance(answer, PartitionData)


@pytest.mark.parametrize(
    ("failure", "told"),
    [
        (ErrorCode.NOT_COORDINATOR, ErrorCode.NOT_LEADER_OR_FOLLOWER),
        (ErrorCode.REQUEST_TIMED_OUT, ErrorCode.NOT_LEADER_OR_FOLLOWER),
        (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
    ],
)
async def test_errors_of_the_coordinator(world: World, failure: ErrorCode, told: ErrorCode) -> None:
    world.engine.failure = KafkaError(failure)
    assert code(await world.read(0)) is told
    world.engine.failure = None
    world.engine.info = LogInfo(failure)
    assert code(await world.read(0)) is told


# --- Behind ---------------------------------------------------------------------------------------


async def test_a_broker_that_is_behind_waits_for_the_metadata_topic(world: World) -> None:
    world.followed.shown = RemoteLog(PARTITION, TOPIC)
    reading = asyncio.ensure_future(world.read(2))
    await eventually(lambda: PARTITION in world.prefixes._waiting)
    world.followed.catch_up()
    assert records(await reading) == bytes_of(world.engine.batches[2:WAL_START])
    assert world.engine.fetched == [2]


async def test_a_broker_that_stays_behind_is_not_available(world: World) -> None:
    world.followed.shown = RemoteLog(PARTITION, TOPIC)
    assert code(await world.read(2)) is ErrorCode.REPLICA_NOT_AVAILABLE
    assert records(await world.read(5))  # the WAL has it
    world.followed.shown = None  # not followed, and nobody tells
    assert code(await world.read(2)) is ErrorCode.REPLICA_NOT_AVAILABLE


async def test_a_lost_object_of_the_wal_may_be_tiered(world: World) -> None:
    """A restore brings back batches whose objects are gone; the remote log is read by and by."""
    world.engine.info = world.engine.info._replace(wal_start_offset=0)
    world.engine.lost_below = 10
    world.followed.shown = RemoteLog(PARTITION, TOPIC)
    assert code(await world.read(2)) is ErrorCode.KAFKA_STORAGE_ERROR
    reading = asyncio.ensure_future(world.read(2))
    await eventually(lambda: PARTITION in world.prefixes._waiting)
    world.followed.catch_up()
    assert records(await reading) == bytes_of(world.engine.batches[2:WAL_START])
    # Of a topic without tiered segments nobody is asked for any.
    world.followed.shown = RemoteLog(PARTITION, TOPIC)
    world.partition.tiered = None
    asked: list[object] = []

    async def reaching(*given: object) -> None:
        asked.append(given)

    world.prefixes.reaching = reaching  # type: ignore[assignment]
    assert code(await world.read(2)) is ErrorCode.KAFKA_STORAGE_ERROR
    assert asked == []


async def test_what_others_told_is_asked_for_again_if_it_is_wrong(world: World) -> None:
    world.followed.shown = None
    world.prefixes._keep(PARTITION, world.remote.log)
    assert world.ask(2).reserves
    world.remote.failures = [unavailable() for _ in range(20)]
    assert code(await world.read(3)) is ErrorCode.KAFKA_STORAGE_ERROR
    assert world.prefixes.known(PARTITION) is None


async def test_a_broker_without_a_replica_asks_for_those_who_read_from_behind(
    world: World,
) -> None:
    asked: list[object] = []
    world.prefixes.learn_soon = asked.append  # type: ignore[method-assign]
    world.followed.shown = None
    world.ask(END)
    assert asked == []
    world.ask(END - 1)
    assert asked == [PARTITION]


async def test_a_throttled_broker_does_not_read_what_has_moved(world: World) -> None:
    world.settings.fetch_bytes_per_second_max = 50
    world.reads.reconfigure(world.settings)
    assert records(await world.read(0))
    world.followed.shown = RemoteLog(PARTITION, TOPIC)
    question = world.ask(2)
    world.followed.shown = world.remote.log
    (answer,) = await question.resolver([question.asked], Budget(1000))
    assert records(answer) == b""


# --- Budgets --------------------------------------------------------------------------------------


async def test_a_fetch_reserves_what_it_may_read(world: World) -> None:
    size = world.engine.batches[0].size
    question = world.ask(0, Budget(3 * size))
    assert question.reserves == 3 * size
    (answer,) = await question.resolver([question.asked], Budget(0))
    assert records(answer) == bytes_of(world.engine.batches[:3])
    # The first batch of a fetch is returned even if it is larger; no other is.
    question = world.ask(0, Budget(10))
    (answer,) = await question.resolver([question.asked], Budget(0))
    assert records(answer) == bytes_of(world.engine.batches[:1])
    question = world.ask(0, Budget(10, untouched=False))
    (answer,) = await question.resolver([question.asked], Budget(0))
    assert records(answer) == b""
    assert world.engine.fetched == []


async def test_something_is_left_for_an_earlier_partition(world: World) -> None:
    budget = Budget(1000)
    budget.held = True
    question = world.ask(0, budget)
    assert (question.reserves, question.asked.min_one) == (500, False)


async def test_without_budget_only_the_ends_are_told(world: World) -> None:
    question = world.ask(0, Budget(0, untouched=False))
    assert not question.reserves
    (answer,) = await question.resolver([question.asked], Budget(0))
    assert records(answer) == b""
    assert world.remote.fetched == []


async def test_a_throttled_broker_reads_nothing(world: World) -> None:
    world.settings.fetch_bytes_per_second_max = 50
    world.reads.reconfigure(world.settings)
    assert records(await world.read(0))
    question = world.ask(0)
    assert not question.reserves  # so that the fetch waits, instead of asking again at once
    (answer,) = await question.resolver([question.asked], Budget(100))
    assert records(answer) == b""


async def test_a_moved_read_takes_what_the_others_left(world: World) -> None:
    size = world.engine.batches[0].size
    world.followed.shown = RemoteLog(PARTITION, TOPIC)
    questions = [world.ask(15), world.ask(2)]
    world.followed.shown = world.remote.log
    budget = Budget(5 * size + 2 * size)
    asked = [one.asked for one in questions]
    answers = await questions[0].resolver(asked, budget)
    assert records(answers[0]) == bytes_of(world.engine.batches[15:])
    assert records(answers[1]) == bytes_of(world.engine.batches[2:4])
    # Of several, each takes what those before it have left.
    world.followed.shown = RemoteLog(PARTITION, TOPIC)
    questions = [world.ask(2), world.ask(3)]
    world.followed.shown = world.remote.log
    answers = await questions[0].resolver([one.asked for one in questions], Budget(3 * size))
    assert [records(one) for one in answers] == [bytes_of(world.engine.batches[2:5]), b""]


# --- Offsets --------------------------------------------------------------------------------------


@pytest.mark.parametrize("number", [0, 3, 5, 9, 10, 19])
async def test_by_time_over_both_tiers(world: World, number: int) -> None:
    at = FIRST_MS + 1000 * number
    assert await world.offset(at - 400) == Found(at, number, 0)


async def test_by_time_behind_everything(world: World) -> None:
    assert await world.offset(FIRST_MS + 1000 * END) == Found()


async def test_what_is_pruned_during_a_search_is_found(world: World) -> None:
    def pruned() -> None:
        world.engine.info = world.engine.info._replace(wal_start_offset=TIERED_END)

    world.engine.listed = pruned
    assert await world.offset(FIRST_MS + 7000) == Found(FIRST_MS + 7000, 7, 0)


async def test_deleted_records_are_not_found(world: World) -> None:
    world.engine.info = world.engine.info._replace(log_start_offset=4)
    assert await world.offset(FIRST_MS) == Found(FIRST_MS + 4000, 4, 0)


async def test_a_search_needs_all_segments(world: World) -> None:
    world.followed.shown = RemoteLog(PARTITION, TOPIC)
    assert code(await world.offset(FIRST_MS)) in (
        ErrorCode.REPLICA_NOT_AVAILABLE,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
    )
    # Without a prefix that is only tiered, the WAL has everything, and nobody is asked.
    world.followed.shown = None
    world.engine.info = world.engine.info._replace(wal_start_offset=0)
    assert await world.offset(FIRST_MS) == Found(FIRST_MS, 0, 0)


async def test_what_is_tiered_and_what_is_next(world: World) -> None:
    assert await world.offset(-5) == Found(-1, TIERED_END - 1, 0)
    assert await world.offset(-6) == Found(-1, TIERED_END, 0)
    # What lies behind a gap does not count.
    world.remote.put(world.engine.batches[15:18])
    assert await world.offset(-5) == Found(-1, TIERED_END - 1, 0)
    assert await world.offset(-6) == Found(-1, TIERED_END, 0)
    world.engine.info = world.engine.info._replace(log_start_offset=18, wal_start_offset=18)
    assert await world.offset(-5) == Found(-1, 17, 0)
    assert await world.offset(-6) == Found(-1, 18, 0)
    world.followed.shown = RemoteLog(PARTITION, TOPIC)
    assert await world.offset(-5) == Found()
    assert await world.offset(-6) == Found(-1, 18, 0)
    world.followed.shown = None
    assert code(await world.offset(-5)) is ErrorCode.REPLICA_NOT_AVAILABLE


async def test_the_latest_record_of_both_tiers(world: World) -> None:
    """The WAL of this world finds none; what it could find is not searched for in segments."""
    assert await world.offset(-3) == Found(FIRST_MS + 4000, 4, 0)


async def test_a_store_that_fails_is_asked_again(world: World) -> None:
    world.remote.failures = [unavailable() for _ in range(20)]
    assert code(await world.offset(FIRST_MS)) is ErrorCode.KAFKA_STORAGE_ERROR
