"""Random histories on every control plane, compared with a model of a few lines."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skylog.diskless.plane import CommitResult, FileToCommit, TopicPartition
from skylog.kernel.clock import ManualClock
from skylog.kernel.errors import ErrorCode
from tests.contract.stages import STAGES, Opener
from tests.contract.support import (
    NONE,
    OUT_OF_RANGE,
    PLENTY,
    RULES,
    STRANGER,
    T0,
    T1,
    TOPIC,
    UNKNOWN,
    Scene,
    batch,
    sent,
)

PARTITIONS = (T0, T1)
SEQUENCES = 2**31
Told = tuple[ErrorCode, int]
Operation = tuple[Any, ...]


class Model:
    """The contract in its shortest form."""

    def __init__(self) -> None:
        self.batches: dict[TopicPartition, list[tuple[int, int, str]]] = {p: [] for p in PARTITIONS}
        self.ends = dict.fromkeys(PARTITIONS, 0)
        self.starts = dict.fromkeys(PARTITIONS, 0)
        self.sent: dict[tuple[Any, ...], list[tuple[int, int, int]]] = {}
        self.told: dict[str, list[Told]] = {}

    def commit(self, file: FileToCommit) -> list[Told]:
        if file.object_key not in self.told:
            self.told[file.object_key] = [self._batch(b, file.object_key) for b in file.batches]
        return self.told[file.object_key]

    def _batch(self, b: Any, key: str) -> Told:
        partition, stamp, p = b.topic_partition, b.stamp, b.producer
        if partition not in self.ends:
            return UNKNOWN, -1
        epochs = [e for *owner, e in self.sent if owner == [partition, p.producer_id]]
        mine = self.sent.get((partition, p.producer_id, p.producer_epoch), [])
        if p.producer_id >= 0:
            if max(epochs, default=0) > p.producer_epoch:
                return ErrorCode.INVALID_PRODUCER_EPOCH, -1
            for first, last, offset in mine[-5:]:
                if (first, last) == (p.base_sequence, p.last_sequence):
                    return NONE, offset
            expected = (mine[-1][1] + 1) % SEQUENCES if mine else 0
            if epochs and p.base_sequence != expected:
                return ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, -1
        base = self.ends[partition]
        self.ends[partition] += stamp.record_count
        self.batches[partition].append((base, base + stamp.record_count - 1, key))
        if p.producer_id >= 0:
            mine = [*mine, (p.base_sequence, p.last_sequence, base)]
            self.sent[partition, p.producer_id, p.producer_epoch] = mine
        return NONE, base

    def delete(self, partition: TopicPartition, offset: int) -> Told:
        offset = self.ends[partition] if offset == -1 else offset
        if not 0 <= offset <= self.ends[partition]:
            return OUT_OF_RANGE, -1
        self.starts[partition] = max(self.starts[partition], offset)
        return NONE, self.starts[partition]

    def retain(self, partition: TopicPartition, limit_bytes: int, cap: int) -> int:
        live = self.live(partition)
        gone = min(cap, len(live) - min(len(live), limit_bytes // 100))
        if gone:
            self.starts[partition] = live[gone - 1][1] + 1
        return gone

    def live(self, partition: TopicPartition) -> list[tuple[int, int, str]]:
        return [b for b in self.batches[partition] if b[1] >= self.starts[partition]]


batches = st.one_of(
    st.builds(batch, st.sampled_from([T0, T1, T1, (STRANGER, 0)]), st.integers(1, 4)),
    st.builds(
        lambda first, count, producer, epoch, to: sent(
            first % SEQUENCES, count, producer=producer, epoch=epoch, to=to
        ),
        st.sampled_from([-2, -1, 0, 0, 1, 2, 3, 4]),
        st.integers(1, 2),
        st.integers(1, 2),
        st.sampled_from([0, 0, 0, 1]),
        st.sampled_from(PARTITIONS),
    ),
)
operations = st.one_of(
    st.tuples(st.just("commit"), st.lists(batches, max_size=4)),
    st.tuples(st.just("follow"), st.sampled_from(PARTITIONS), st.integers(1, 3)),
    st.tuples(st.just("follow"), st.sampled_from(PARTITIONS), st.integers(1, 3)),
    st.tuples(st.just("resend"), st.sampled_from(PARTITIONS), st.integers(1, 7)),
    st.tuples(st.just("bump"), st.sampled_from(PARTITIONS), st.sampled_from([-1, 1, 1])),
    st.tuples(st.just("again"), st.integers(0, 9)),
    st.tuples(st.just("delete"), st.sampled_from(PARTITIONS), st.integers(-2, 12)),
    st.tuples(
        st.just("retain"), st.sampled_from(PARTITIONS), st.integers(0, 500), st.integers(1, 3)
    ),
    st.tuples(st.just("find"), st.integers(-1, 12), st.integers(0, 6), st.integers(0, 700)),
)


class Run:
    """One history on one plane."""

    def __init__(self, scene: Scene) -> None:
        self.scene = scene
        self.model = Model()
        self.files: list[FileToCommit] = []

    async def perform(self, operation: Operation) -> None:
        name, *arguments = operation
        step: Callable[..., Any] = getattr(self, name)
        await step(*arguments)
        await self.compare()

    async def commit(self, wanted: list[Any]) -> None:
        self.files.append(self.scene.file(*wanted))
        await self.again(-1)

    async def again(self, index: int) -> None:
        """Commit a file, usually a known one."""
        if self.files:
            file = self.files[index % len(self.files)]
            results: list[CommitResult] = await self.scene.plane.commit_file(file)
            told = [(r.error, r.assigned_base_offset) for r in results]
            assert told == self.model.commit(file)

    def epoch(self, partition: TopicPartition) -> int:
        return max((e for p, n, e in self.model.sent if (p, n) == (partition, 9)), default=0)

    async def follow(self, partition: TopicPartition, count: int) -> None:
        """What a correct producer sends next."""
        epoch = self.epoch(partition)
        mine = self.model.sent.get((partition, 9, epoch), [])
        first = (mine[-1][1] + 1) % SEQUENCES if mine else SEQUENCES - 2
        await self.commit([sent(first, count, producer=9, epoch=epoch, to=partition)])

    async def resend(self, partition: TopicPartition, back: int) -> None:
        """One of the last batches again, in another file."""
        epoch = self.epoch(partition)
        for first, last, _ in self.model.sent.get((partition, 9, epoch), [])[-back:][:1]:
            count = (last - first) % SEQUENCES + 1
            await self.commit([sent(first, count, producer=9, epoch=epoch, to=partition)])

    async def bump(self, partition: TopicPartition, step: int) -> None:
        """A new epoch, or an old one again, with sequences of its last one."""
        epoch = self.epoch(partition)
        known = [first for first, _, _ in self.model.sent.get((partition, 9, epoch), [])[-1:]]
        to = {"producer": 9, "epoch": max(epoch + step, 0), "to": partition}
        await self.commit([sent(first, 1, **to) for first in (*known, 0)])

    async def delete(self, partition: TopicPartition, offset: int) -> None:
        (result,) = await self.scene.plane.delete_records([(*partition, offset)])
        assert tuple(result) == self.model.delete(partition, offset)

    async def retain(self, partition: TopicPartition, limit_bytes: int, cap: int) -> None:
        gone, size, start = await self.scene.retain(partition, limit_bytes=limit_bytes, batches=cap)
        assert gone == self.model.retain(partition, limit_bytes, cap)
        assert (size, start) == (gone * 100, self.model.starts[partition])

    async def find(self, first: int, second: int, fetch_bytes: int) -> None:
        found = await self.scene.find((T1, first), (T0, second), fetch_bytes=fetch_bytes)
        spent = 0
        granted = False
        for partition, offset, one in zip((T1, T0), (first, second), found, strict=True):
            start, end = self.model.starts[partition], self.model.ends[partition]
            assert (one.log_start_offset, one.high_watermark) == (start, end)
            assert one.error == (NONE if start <= offset <= end else OUT_OF_RANGE)
            wanted = [b for b in self.model.live(partition) if not one.error and b[1] >= offset]
            for expected, got in zip(wanted, one.batches, strict=False):
                assert (*got.stamp[:2], got.extent.object_key) == expected
                assert spent + got.extent.byte_size <= fetch_bytes or not granted
                spent += got.extent.byte_size
                granted = True
            assert len(one.batches) <= len(wanted)
            complete = len(one.batches) == len(wanted)
            # Every batch has 100 bytes: the next one does not fit.
            assert complete or (granted and spent + 100 > fetch_bytes)

    async def compare(self) -> None:
        found = await self.scene.plane.find_batches([], PLENTY)
        assert found == []
        for partition in PARTITIONS:
            start, end = self.model.starts[partition], self.model.ends[partition]
            live = self.model.live(partition)
            assert await self.scene.info(partition) == (start, end, 100 * len(live))
            (one,) = await self.scene.find((partition, start))
            assert [(*b.stamp[:2], b.extent.object_key) for b in one.batches] == live
        keys = list(self.model.told)
        described = await self.scene.plane.describe_files(keys)
        held = self.held()
        assert [d[:2] for d in described] == [(NONE, key in held) for key in keys]

    def held(self) -> set[str]:
        """The files that have live batches."""
        return {key for partition in PARTITIONS for _, _, key in self.model.live(partition)}

    async def finish(self) -> None:
        """Ask for deletable files once nothing is committed any more: then an owner hands its files
        on and forgets them, which the grace period separates from commits."""
        assert set(await self.scene.deletable()) == set(self.model.told) - self.held()


async def play(stage: Opener, history: list[Operation]) -> None:
    clock = ManualClock()
    async with stage(clock, RULES) as (plane, another):
        scene = Scene(plane, clock, another)
        await plane.create_partitions([(TOPIC, "a", 2)])
        run = Run(scene)
        for operation in history:
            await run.perform(operation)
        await run.finish()


@settings(max_examples=150)
@given(history=st.lists(operations, min_size=5, max_size=30))
def test_memory(history: list[Operation]) -> None:
    asyncio.run(play(STAGES["memory"].open, history))


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=s.marks) for name, s in STAGES.items() if name != "memory"],
)
def test_other_planes(name: str) -> None:
    """Fewer but longer histories: a plane takes time to open."""

    @settings(max_examples=20)
    @given(history=st.lists(operations, min_size=10, max_size=40))
    def histories(history: list[Operation]) -> None:
        asyncio.run(play(STAGES[name].open, history))

    histories()
