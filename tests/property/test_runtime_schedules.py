"""Random schedules of the runtime: nothing shown is ever lost, replies keep their order."""

from __future__ import annotations

import asyncio
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from skylog.kernel.errors import KafkaError
from skylog.replicated.digest import state_digest
from skylog.replicated.lifecycle import State
from tests.unit.replicated.support import NOT_LEADER, Add, Bench, IntCodec, Read, Register

STEP = st.one_of(
    st.tuples(st.just("add"), st.integers(1, 4)),
    st.tuples(st.just("read"), st.just(0)),
    st.tuples(st.just("commit"), st.integers(1, 60)),
    st.tuples(st.just("snapshot"), st.just(0)),
    st.tuples(st.just("lose leadership"), st.booleans()),
    st.tuples(st.just("append fails"), st.sampled_from(["definite", "unwritten", "written"])),
)


class Schedule:
    """Plays steps and remembers the reply of every caller."""

    def __init__(self) -> None:
        self.bench = Bench()
        self.added: dict[int, asyncio.Task[Any]] = {}
        self.reads: list[asyncio.Task[Any]] = []
        self.background: list[asyncio.Task[Any]] = []
        self.replied: list[int] = []
        self.submitted = 0

    def submit(self, request: Add | Read) -> asyncio.Task[Any]:
        order = self.submitted
        self.submitted += 1

        async def call() -> Any:
            reply = await self.bench.runtime.submit(request)
            self.replied.append(order)
            return reply

        return asyncio.ensure_future(call())

    async def step(self, kind: str, argument: Any) -> None:
        log, runtime = self.bench.log, self.bench.runtime
        match kind:
            case "add" | "append fails":
                if kind == "append fails":
                    log.failure = NOT_LEADER if argument == "definite" else OSError("disk")
                    log.fails_after_write = argument == "written"
                # Powers of two: a sum shows which additions it contains.
                exponent = len(self.added)
                parts = argument if kind == "add" else 1
                self.added[exponent] = self.submit(Add(1 << exponent, parts))
            case "read":
                self.reads.append(self.submit(Read()))
            case "commit":
                log.commit(min(log.end_offset, log.high_watermark + argument))
            case "snapshot":
                log.snapshot_wanted = True
                self.background.append(asyncio.ensure_future(runtime.snapshot_if_due()))
            case "lose leadership":
                runtime.unload()
                if argument:
                    log.lose_tail()
        for _ in range(3):
            await asyncio.sleep(0)
        if runtime.state is State.UNLOADED:
            await runtime.load()

    async def finish(self) -> None:
        self.bench.log.commit()
        tasks = [*self.added.values(), *self.reads, *self.background]
        await asyncio.wait_for(asyncio.gather(*tasks, return_exceptions=True), 5)

    def surviving(self) -> Register:
        machine = self.bench.runtime.machine
        assert isinstance(machine, Register)
        return machine


async def play(steps: list[tuple[str, Any]]) -> None:
    schedule = Schedule()
    await schedule.bench.runtime.load()
    for kind, argument in steps:
        await schedule.step(kind, argument)
    await schedule.finish()
    total = schedule.surviving().total

    def lost(shown: int) -> int:
        return shown & ~total

    assert schedule.replied == sorted(schedule.replied)
    for exponent, task in schedule.added.items():
        error = task.exception()
        if error is None:
            assert not lost(task.result()), "a reply showed what is lost"
            assert task.result() >> exponent & 1
        elif isinstance(error, KafkaError) and not error.ambiguous:
            assert not total >> exponent & 1, "a definite failure took effect"
    for task in schedule.reads:
        assert task.exception() or not lost(task.result()[0]), "a read showed what is lost"
    digest = state_digest(schedule.surviving(), IntCodec())
    schedule.bench.runtime.unload()
    await schedule.bench.runtime.load()
    assert state_digest(schedule.surviving(), IntCodec()) == digest


@settings(max_examples=150, deadline=None)
@given(st.lists(STEP, max_size=60))
def test_nothing_shown_is_lost(steps: list[tuple[str, Any]]) -> None:
    asyncio.run(play(steps))


def test_leadership_lost_at_every_point() -> None:
    """The same work, losing leadership and the tail before each step in turn."""
    work: list[tuple[str, Any]] = [
        step
        for index in range(8)
        for step in (("add", 1 + index % 3), ("read", 0), ("commit", index % 4))
    ]
    for point in range(len(work) + 1):
        for tail_gone in (False, True):
            asyncio.run(play([*work[:point], ("lose leadership", tail_gone), *work[point:]]))
