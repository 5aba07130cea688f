"""Random failures of coordinators: order holds for every producer and partition.

Producers here never retry. So a prefix of each one's batches is committed, in order and without
gaps, and everything after the first failure fails, too.
"""

from __future__ import annotations

import asyncio
from typing import Any
from unittest.mock import patch

from hypothesis import given, settings
from hypothesis import strategies as st

from skylog.diskless.plane import CommitResult, FileToCommit
from skylog.diskless.planes.topic import TopicPlane
from skylog.diskless.writer import DisklessWriter, Request, WriterSettings, writer
from skylog.kernel.clock import SystemClock
from skylog.kernel.errors import ErrorCode, KafkaError
from skylog.objects.memory import MemoryStore
from skylog.objects.store import ObjectError, Outcome
from tests.unit.diskless.coordinator.support import TOPIC, Home, home
from tests.unit.diskless.engine import item

COORDINATORS = 2
PARTITIONS = 4
WAIT_SECONDS = 60

coordinators = st.integers(0, COORDINATORS - 1)
operations = st.one_of(
    st.tuples(st.just("send"), st.lists(st.integers(0, PARTITIONS - 1), min_size=1, unique=True)),
    st.tuples(st.just("send"), st.lists(st.integers(0, PARTITIONS - 1), min_size=1, unique=True)),
    st.tuples(st.just("hold"), coordinators),
    st.tuples(st.just("release"), coordinators),
    st.tuples(st.just("doubt"), coordinators),
    st.tuples(st.just("refuse"), coordinators),
    st.tuples(st.just("lose"), st.just(0)),
    st.tuples(st.just("turns"), st.integers(1, 30)),
)


class Plane(TopicPlane):
    refusals: dict[int, int]

    async def commit_part(self, file: FileToCommit, coordinator_id: int) -> list[CommitResult]:
        if self.refusals.get(coordinator_id):
            self.refusals[coordinator_id] -= 1
            raise KafkaError(ErrorCode.INVALID_REQUEST, "no")
        return await super().commit_part(file, coordinator_id)


class Store(MemoryStore):
    refusals = 0

    async def put(self, key: Any, data: Any, *, if_absent: bool = False) -> None:
        if self.refusals:
            self.refusals -= 1
            raise ObjectError("denied", Outcome.REFUSED)
        await super().put(key, data, if_absent=if_absent)


class Run:
    def __init__(self, opened: Home, clock: SystemClock) -> None:
        self.home = opened
        self.plane = Plane(opened.coordinators, lambda p: p[1] % COORDINATORS, opened.rng)
        self.plane.refusals = {}
        self.store = Store(clock)
        limits = WriterSettings(inflight_bytes_max=500)
        self.writer = DisklessWriter(limits, self.store, self.plane, clock=clock, rng=opened.rng)
        self.sent: list[tuple[Request, list[int]]] = []
        self.sequences = [0] * PARTITIONS

    def send(self, partitions: list[int]) -> None:
        items = []
        for index in partitions:
            producer = (index, 0, self.sequences[index])
            self.sequences[index] += 1
            items.append(item(b"v", index, topic_id=TOPIC, producer=producer))
        self.sent.append((self.writer.submit(1, items), partitions))

    async def do(self, name: str, value: Any) -> None:
        if name == "send":
            self.send(value)
        elif name == "hold":
            self.home.partitions[value].held = True
            self.home.partitions[value].isr = (0, 1)
        elif name == "release":
            self.release(value)
        elif name == "doubt":
            error = KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, ambiguous=True)
            self.home.partitions[value].append_error = error
        elif name == "refuse":
            self.plane.refusals[value] = 1
        elif name == "lose":
            self.store.refusals = 1
        else:
            for _ in range(value):
                await asyncio.sleep(0)

    def release(self, coordinator: int) -> None:
        self.home.partitions[coordinator].held = False
        self.home.partitions[coordinator].append_error = None
        self.home.partitions[coordinator].commit()

    async def finish(self) -> None:
        closing = asyncio.ensure_future(self.writer.close())
        async with asyncio.timeout(WAIT_SECONDS):
            while not closing.done():
                for coordinator in range(COORDINATORS):
                    self.release(coordinator)
                self.home.timers.fire()  # coordinators that failed are loaded again
                await asyncio.sleep(0.001)

    def check(self) -> None:
        told: dict[int, list[tuple[ErrorCode, int]]] = {p: [] for p in range(PARTITIONS)}
        for request, partitions in self.sent:
            assert request.done.done()
            for index, result in zip(partitions, request.results(), strict=True):
                told[index].append((result.error, result.base_offset))
        for outcomes in told.values():
            good = [offset for error, offset in outcomes if not error]
            assert good == list(range(len(good)))
            assert all(error for error, _ in outcomes[len(good) :])


@settings(max_examples=60, deadline=None)
@given(st.lists(operations, max_size=40))
def test_a_prefix_of_each_producers_batches_is_committed(steps: list[tuple[str, Any]]) -> None:
    # ENG-17 partly, ENG-18 partly
    async def run() -> None:
        clock = SystemClock()
        async with home(clock=clock, in_memory=True) as opened:
            await opened.lead(*range(COORDINATORS))
            one = Run(opened, clock)
            await one.plane.create_partitions([(TOPIC, "t", PARTITIONS)])
            for name, value in steps:
                await one.do(name, value)
            await one.finish()
            one.check()
            infos = await one.plane.log_info([(TOPIC, index) for index in range(PARTITIONS)])
            for index, info in enumerate(infos):
                acked = [
                    result.base_offset
                    for request, partitions in one.sent
                    for at, result in zip(partitions, request.results(), strict=True)
                    if at == index and not result.error
                ]
                assert info.high_watermark == len(acked)

    with patch.object(writer, "_RETRY_SECONDS", 0.001):
        asyncio.run(run())
