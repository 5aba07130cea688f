"""Stages of the contract suite: each opens a new, empty plane for one check.

To join the suite, a plane adds an entry to ``STAGES``: an async context manager from
``(clock, rules)`` to ``(plane, another)``, where ``another()`` opens the same plane as a second
broker would see it (or returns the same object where there is no such thing). The plane must take
its time from ``clock`` only, be started, and know no topic. A plane that needs more than Python
gets the interop marker. The histories in ``tests/property`` use the same stages.
"""

from __future__ import annotations

import itertools
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import pytest

from skylog.diskless.coordinator.settings import RuntimeSettings
from skylog.diskless.plane import ControlPlane
from skylog.diskless.planes.memory import MemoryPlane
from skylog.diskless.planes.topic import TopicPlane
from skylog.diskless.rules.times import PlaneRules
from skylog.kernel.clock import ManualClock
from tests.unit.diskless.cluster_world import Everywhere, world
from tests.unit.diskless.coordinator.support import home

Another = Callable[[], Awaitable[ControlPlane]]
Opened = tuple[ControlPlane, Another]
Opener = Callable[[ManualClock, PlaneRules], AbstractAsyncContextManager[Opened]]


@dataclass(frozen=True)
class Stage:
    open: Opener
    marks: list[Any] = field(default_factory=list)


@asynccontextmanager
async def memory(clock: ManualClock, rules: PlaneRules) -> AsyncIterator[Opened]:
    plane = MemoryPlane(clock, rules)
    await plane.start()

    async def another() -> ControlPlane:
        return plane

    yield plane, another
    await plane.close()


@asynccontextmanager
async def postgres(clock: ManualClock, rules: PlaneRules) -> AsyncIterator[Opened]:
    from skylog.diskless.planes.postgres import PostgresPlane
    from tests.contract.postgres_server import Broker, server

    database = await server().create_database()
    numbers = itertools.count()
    async with AsyncExitStack() as opened:

        async def another() -> ControlPlane:
            broker = Broker(next(numbers))
            plane = PostgresPlane(database, clock, rules, brokers=broker, connections_max=4)
            opened.push_async_callback(plane.close)
            await plane.start()
            return plane

        yield await another(), another


def topic(coordinators: int) -> Opener:
    """Partitions are spread over several coordinators."""

    @asynccontextmanager
    async def open_topic(clock: ManualClock, rules: PlaneRules) -> AsyncIterator[Opened]:
        async with home(clock=clock, settings=RuntimeSettings(rules=rules)) as broker:
            await broker.lead(*range(coordinators))
            plane = TopicPlane(
                broker.coordinators, lambda partition: partition[1] % coordinators, broker.rng
            )
            await plane.start()

            async def another() -> ControlPlane:
                return plane

            yield plane, another

    return open_topic


@asynccontextmanager
async def brokers(clock: ManualClock, rules: PlaneRules) -> AsyncIterator[Opened]:
    """Three brokers: the one that is asked leads one coordinator, another broker leads the
    other."""
    with tempfile.TemporaryDirectory() as directory:
        settings = RuntimeSettings(rules=rules)
        opening = world(
            Path(directory),
            3,
            lambda partition: partition[1] % 2,
            clock=clock,
            settings=settings,
        )
        async with opening as opened:
            await opened.lead(0, 1)
            await opened.lead(1, 0)
            plane = Everywhere(opened.members)
            await plane.start()

            async def another() -> ControlPlane:
                return opened.members[2].plane

            yield cast(ControlPlane, plane), another


STAGES: dict[str, Stage] = {
    "memory": Stage(memory),
    "topic": Stage(topic(1)),
    "topic-of-two": Stage(topic(2)),
    "topic-of-brokers": Stage(brokers),
    "postgres": Stage(postgres, [pytest.mark.interop]),
}
