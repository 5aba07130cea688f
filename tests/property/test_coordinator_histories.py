"""Random lives of a coordinator: lagging high watermark, snapshots, crashes, lost caches.

Whatever was acknowledged is still there, and the state is that of the in-memory plane after the
writes that survived.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from skylog.diskless.coordinator import requests as ask
from skylog.diskless.plane import FileToCommit, FindRequest, TopicPartition
from skylog.diskless.planes.memory import MemoryPlane
from skylog.kernel.clock import ManualClock
from skylog.kernel.errors import KafkaError
from tests.unit.diskless.coordinator.support import TOPIC, Home, home

PARTITIONS: list[TopicPartition] = [(TOPIC, 0), (TOPIC, 1), (TOPIC, 2)]
PLENTY = 1 << 30

commits = st.tuples(
    st.just("commit"),
    st.lists(st.tuples(st.sampled_from(PARTITIONS), st.integers(1, 3)), max_size=3),
)
sends = st.tuples(st.just("send"), st.sampled_from(PARTITIONS), st.integers(-1, 1))
steps = st.one_of(
    commits,
    commits,
    sends,
    sends,
    st.tuples(st.just("again"), st.integers(0, 5)),
    st.tuples(st.just("delete"), st.sampled_from(PARTITIONS), st.integers(-1, 8)),
    st.tuples(st.just("prune"), st.sampled_from(PARTITIONS), st.integers(0, 8)),
    st.tuples(st.just("advance"), st.integers(1, 5_000_000)),
    st.tuples(st.just("replicate"), st.integers(0, 10)),
    st.tuples(st.just("replicate"), st.just(10)),
    st.tuples(st.just("snapshot")),
    st.tuples(st.just("crash"), st.integers(0, 10), st.booleans()),
)


@dataclass
class Written:
    """A write, the log's end after it, and the time at which it was handled."""

    request: Any
    end_offset: int
    now_ms: int
    task: asyncio.Task[Any]


class Life:
    def __init__(self, opened: Home) -> None:
        self.home = opened
        self.written: list[Written] = []
        self.files: list[FileToCommit] = []
        self.sequence = 0

    async def begin(self) -> None:
        await self.home.lead(0)
        self.home.partitions[0].held = True
        await self.write(ask.CreatePartitions([(TOPIC, "a", [0, 1, 2])]))

    async def write(self, request: Any) -> None:
        runtime = self.home.runtime()
        task = asyncio.get_running_loop().create_task(runtime.submit(request))
        await self.settle()
        end_offset = self.home.partitions[0].log.log_end_offset
        self.written.append(Written(request, end_offset, self.home.clock.now_ms(), task))

    async def settle(self) -> None:
        for _ in range(12):
            await asyncio.sleep(0)

    async def commit(self, batches: list[tuple[TopicPartition, int]]) -> None:
        self.files.append(self.home.file(*batches))
        await self.write(ask.CommitFile(self.files[-1]))

    async def send(self, partition: TopicPartition, step: int) -> None:
        """The next, the same or a too high sequence of an idempotent producer."""
        number = max(0, self.sequence + step)
        self.sequence = number + 1
        fields = {"producer_id": 5, "producer_epoch": 0}
        file = self.home.file((partition, 1), base_sequence=number, last_sequence=number, **fields)
        self.files.append(file)
        await self.write(ask.CommitFile(file))

    async def again(self, index: int) -> None:
        if self.files:
            await self.write(ask.CommitFile(self.files[index % len(self.files)]))

    async def delete(self, partition: TopicPartition, offset: int) -> None:
        await self.write(ask.DeleteRecords([(*partition, offset)]))

    async def prune(self, partition: TopicPartition, offset: int) -> None:
        await self.write(ask.PruneTo([(*partition, offset)]))

    async def advance(self, by_ms: int) -> None:
        self.home.clock.advance(by_ms)

    async def replicate(self, tenths: int) -> None:
        partition = self.home.partitions[0]
        partition.commit(self._between(tenths))
        await self.settle()

    def _between(self, tenths: int) -> int:
        """The end of a batch between the high watermark and the log's end."""
        log = self.home.partitions[0].log
        wanted = log.high_watermark + (log.log_end_offset - log.high_watermark) * tenths // 10
        ends = [batch.next_offset for batch in log.batches if batch.next_offset <= wanted]
        return max([log.high_watermark, *ends])

    async def snapshot(self) -> None:
        await self.home.runtime().snapshot()

    async def crash(self, tenths: int, lose_cache: bool) -> None:
        """Another leader has only a part of what was not committed; then this one leads again."""
        partition = self.home.partitions[0]
        kept = self._between(tenths)
        self.home.coordinators.partition_resigned(0)
        await self.home.coordinators.loaded()
        survivors = []
        for one in self.written:
            if one.end_offset <= kept:
                survivors.append(one)
            elif one.task.done() and one.task.exception() is None:
                raise AssertionError("an acknowledged write is lost")
        for one in self.written:
            one.task.exception()  # seen
        self.written = survivors
        partition.truncate(kept)
        partition.held = False
        partition.commit()
        if lose_cache:
            for path in self.home.database.parent.glob("state.sqlite*"):
                path.unlink()
        await self.home.lead(0)
        partition.held = True

    async def compare(self) -> None:
        """With everything committed: compare with the in-memory plane, and with a replay."""
        await self.replicate(10)
        clock = ManualClock(0)
        model = MemoryPlane(clock)
        for one in self.written:
            clock.advance(one.now_ms - clock.now_ms())
            await judge(model, one)
        find = [FindRequest(*partition, 0, PLENTY) for partition in PARTITIONS]
        runtime = self.home.runtime()
        assert await runtime.find(ask.DescribeLogs(PARTITIONS)) == await model.log_info(PARTITIONS)
        starts = await model.log_info(PARTITIONS)
        find = [
            FindRequest(*partition, info.log_start_offset, PLENTY)
            for partition, info in zip(PARTITIONS, starts, strict=True)
        ]
        ours = await runtime.find(ask.FindBatches(find, PLENTY))
        theirs = await model.find_batches(find, PLENTY)
        assert [plain(result) for result in ours] == [plain(result) for result in theirs]
        keys = [file.object_key for file in self.files]
        described = await runtime.submit(ask.DescribeFiles(keys))
        assert described == await model.describe_files(keys)
        before = await self.home.digest()
        await self.crash(10, lose_cache=True)
        assert await self.home.digest() == before


async def judge(model: MemoryPlane, one: Written) -> None:
    """The same write on the model; a reply, if there was one, must be the model's."""
    replied = one.task.result() if one.task.done() and not one.task.exception() else None
    match one.request:
        case ask.CreatePartitions():
            await model.create_partitions([(TOPIC, "a", 3)])
        case ask.CommitFile(file):
            try:
                expected = await model.commit_file(file)
            except KafkaError:
                assert replied is None
                return
            if replied is not None:
                told = [(r.error, r.assigned_base_offset, r.duplicate) for r in replied]
                assert told == [(r.error, r.assigned_base_offset, r.duplicate) for r in expected]
        case ask.DeleteRecords(requests):
            deleted = await model.delete_records(requests)
            assert replied in (None, deleted)
        case ask.PruneTo(requests):
            pruned = await model.prune_to(requests)
            assert replied in (None, pruned)


def plain(result: Any) -> Any:
    """Everything but the ids of batches, which differ between planes."""
    batches = [
        (b.extent, b.stamp.base_offset, b.stamp.last_offset, b.stamp.timestamp)
        for b in result.batches
    ]
    return result.error, result.log_start_offset, result.high_watermark, batches


@settings(max_examples=60, deadline=None)
@given(st.lists(steps, max_size=30))
def test_histories(history: list[tuple[Any, ...]]) -> None:
    async def live() -> None:
        async with home() as opened:
            life = Life(opened)
            await life.begin()
            for name, *arguments in history:
                await getattr(life, name)(*arguments)
            await life.compare()

    asyncio.run(live())
