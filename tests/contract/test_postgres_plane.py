"""Faults that only the Postgres plane can have: locks, lost connections, concurrent starts.

Tests wait for a state of the server (a session that waits for a lock), never for time to pass.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import asyncpg
import pytest

from skylog.diskless.plane import TopicPartition
from skylog.diskless.planes.postgres import PostgresPlane
from skylog.kernel.clock import ManualClock
from skylog.kernel.errors import ErrorCode, KafkaError, StorageError
from skylog.kernel.secret import Secret
from tests.contract.plane_deletes import Heard
from tests.contract.postgres_server import Broker, PostgresServer, server
from tests.contract.support import B0, NONE, RULES, T0, T1, TOPIC, Scene, batch, sent

pytestmark = pytest.mark.interop
PATIENCE_SECONDS = 30


class House:
    """A scene on Postgres, with access to its database."""

    def __init__(self, scene: Scene, address: Secret, admin: Any) -> None:
        self.scene = scene
        self.address = address
        self.admin = admin

    async def waiting(self, count: int = 1) -> list[int]:
        """The sessions that wait for a lock, once there are so many."""
        async with asyncio.timeout(PATIENCE_SECONDS):
            while True:
                rows = await self.admin.fetch(
                    "SELECT pid FROM pg_stat_activity "
                    "WHERE wait_event_type = 'Lock' AND application_name = 'skylog'"
                )
                if len(rows) >= count:
                    return [row["pid"] for row in rows]

    async def end(self, *pids: int) -> None:
        for pid in pids:
            await self.admin.execute("SELECT pg_terminate_backend($1)", pid)

    @asynccontextmanager
    async def holding(self, partition: TopicPartition) -> AsyncIterator[Any]:
        """Another transaction that has locked a partition."""
        connection = await asyncpg.connect(self.address.reveal())
        try:
            async with connection.transaction():
                await connection.execute(
                    "SELECT 1 FROM logs WHERE topic_id = $1 AND partition = $2 FOR UPDATE",
                    bytes(partition[0]).hex(),
                    partition[1],
                )
                yield connection
        finally:
            await connection.close()


@asynccontextmanager
async def opened(address: Secret, clock: ManualClock) -> AsyncIterator[PostgresPlane]:
    plane = PostgresPlane(address, clock, RULES, brokers=Broker(), connections_max=6)
    await plane.start()
    try:
        yield plane
    finally:
        await plane.close()


@pytest.fixture
async def house() -> AsyncIterator[House]:
    address = await server().create_database()
    clock = ManualClock()
    admin = await asyncpg.connect(address.reveal())
    async with opened(address, clock) as plane, opened(address, clock) as other:

        async def another() -> PostgresPlane:
            return other

        scene = Scene(plane, clock, another)
        await scene.create()
        yield House(scene, address, admin)
    await admin.close()


async def test_brokers_may_start_together() -> None:
    """Each script is applied once; a later start applies none."""
    address = await server().create_database()
    planes = [PostgresPlane(address, ManualClock(), brokers=Broker()) for _ in range(4)]
    await asyncio.gather(*[plane.start() for plane in planes])
    admin = await asyncpg.connect(address.reveal())
    rows = await admin.fetch("SELECT version FROM schema_history ORDER BY version")
    assert [row["version"] for row in rows] == list(range(1, len(rows) + 1))
    await admin.execute("INSERT INTO schema_history VALUES (99, 'later', 'x')")
    await admin.close()
    for plane in planes:
        await plane.close()
    late = PostgresPlane(address, ManualClock(), brokers=Broker())
    with pytest.raises(StorageError, match="newer skylog"):
        await late.start()


async def test_a_file_whose_last_two_batches_go_at_once(house: House) -> None:
    """Neither transaction sees the other's deletion before it has the lock on the file."""
    scene = house.scene
    key = scene.key()
    await scene.commit(batch(), batch(T1), key=key)
    async with house.holding(T0) as connection:
        await connection.execute("DELETE FROM batches WHERE partition = 0")
        await connection.execute("SELECT 1 FROM files FOR UPDATE")
        second = asyncio.create_task(scene.plane.delete_records([(*T1, 1)]))
        await house.waiting()
    assert (await second)[0].error == NONE
    assert await scene.live(key) == (NONE, False)


async def test_commits_wait_for_each_other(house: House) -> None:
    """A commit that was ready first, but locked later, gets the later offsets."""
    scene = house.scene
    async with house.holding(T0) as connection:
        task = asyncio.create_task(scene.commit(batch(count=2), batch(T1)))
        await house.waiting()
        await connection.execute("UPDATE logs SET high_watermark = 40 WHERE partition = 0")
    assert [r.assigned_base_offset for r in await task] == [40, 0]


async def test_partitions_in_any_order_do_not_deadlock(house: House) -> None:
    scene = house.scene
    other = await scene.another()
    files = [
        scene.file(*([batch(), batch(T1)] if n % 2 else [batch(T1), batch()])) for n in range(20)
    ]
    async with house.holding(T0):
        tasks = [
            asyncio.create_task((scene.plane, other)[n % 2].commit_file(file))
            for n, file in enumerate(files)
        ]
        await house.waiting(4)
    await asyncio.gather(*tasks)
    assert await scene.info() == (0, 20, 2000)
    (row,) = await house.admin.fetch(
        "SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()"
    )
    assert row["deadlocks"] == 0


async def test_a_topic_deleted_under_a_commit(house: House) -> None:
    """The commit waits, then finds no partition: no batch without its log."""
    scene = house.scene
    async with house.holding(T0) as connection:
        task = asyncio.create_task(scene.commit(batch(), batch()))
        await house.waiting()
        await connection.execute("DELETE FROM logs")
    assert {r.error for r in await task} == {ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}
    assert await house.admin.fetchval("SELECT count(*) FROM batches") == 0


async def test_a_lost_connection_leaves_the_outcome_open(house: House) -> None:
    """The same commit again settles it."""
    scene = house.scene
    file = scene.file(batch(count=3), sent(0, to=T1))
    async with house.holding(T0):
        task = asyncio.create_task(scene.plane.commit_file(file))
        await house.end(*await house.waiting())
        with pytest.raises(KafkaError) as caught:
            await task
    assert caught.value.ambiguous
    results = await scene.plane.commit_file(file)
    assert [r.assigned_base_offset for r in results] == [0, 0]
    assert await scene.info() == (0, 3, 100)


async def test_the_answer_to_a_commit_is_lost(house: House) -> None:
    """Committed, but the response is lost: a retry gets the same offsets."""
    scene = house.scene
    file = scene.file(batch(count=3))
    first = await (await scene.another()).commit_file(file)
    (again,) = await scene.plane.commit_file(file)
    assert (again.assigned_base_offset, again.duplicate) == (first[0].assigned_base_offset, True)
    assert await scene.info() == (0, 3, 100)


async def test_a_lost_read_is_definite(house: House) -> None:
    scene = house.scene
    admin = await asyncpg.connect(house.address.reveal())
    async with admin.transaction():
        await admin.execute("LOCK TABLE batches IN ACCESS EXCLUSIVE MODE")
        task = asyncio.create_task(scene.plane.list_offsets([(*T0, 0)]))
        await house.end(*await house.waiting())
        with pytest.raises(KafkaError) as caught:
            await task
    await admin.close()
    assert (caught.value.ambiguous, caught.value.retriable) == (False, True)
    assert await scene.listed(0) == (-1, -1)


async def test_a_reconnected_listener_learns_what_it_missed(house: House) -> None:
    scene = house.scene
    heard = Heard()
    scene.plane.watch(heard)
    await (await scene.another()).commit_file(scene.file(batch()))
    await heard.until({T0: 1})
    pids = await house.admin.fetch(
        "SELECT pid FROM pg_stat_activity WHERE application_name = 'skylog-listen'"
    )
    # The commit comes while nothing listens, or right after: the listener must learn of it either
    # way.
    await house.end(*[row["pid"] for row in pids])
    await (await scene.another()).commit_file(scene.file(batch(count=2)))
    # The new connection begins with all partitions.
    await heard.until({T0: 3, T1: 0, B0: 0})


async def test_listeners_learn_of_a_commit_to_many_partitions(house: House) -> None:
    """More partitions than fit into one notification."""
    scene = house.scene
    await scene.plane.create_partitions([(TOPIC, "a", 500)])
    heard = Heard()
    scene.plane.watch(heard)
    other = await scene.another()
    await other.commit_file(scene.file(*[batch((TOPIC, n)) for n in range(500)]))
    await heard.until({(TOPIC, n): 1 for n in range(500)})


async def test_silent_producers_are_deleted(house: House) -> None:
    scene = house.scene
    await scene.commit(sent(0), sent(0, to=T1))
    scene.clock.advance(RULES.producer_expiration_ms)
    await scene.retain()
    rows = await house.admin.fetch("SELECT partition FROM producers")
    assert [row["partition"] for row in rows] == [1]


async def test_a_find_reads_only_what_it_returns(house: House) -> None:
    """A find of a few of 20,000 batches reads only a few pages."""
    scene = house.scene
    for _ in range(4):
        await scene.commit(*[batch() for _ in range(5000)])
    await house.admin.execute("ANALYZE batches")
    plan = await house.admin.fetch(
        "EXPLAIN (ANALYZE, BUFFERS, FORMAT TEXT) SELECT * FROM find_batches("
        "$1::text::uuid[], '{0}', '{10000}', '{350}', 1000, 0)",
        "{" + bytes(TOPIC).hex() + "}",
    )
    (read,) = [row[0] for row in plan if "Buffers" in row[0]][:1]
    assert "rows=4 " in plan[0][0]
    hits = int(read.split("hit=")[1].split()[0])
    assert hits < 1000, read


async def test_a_server_that_restarts() -> None:
    """While it is down every call fails definitely; afterwards the plane works again."""
    own = PostgresServer()
    try:
        address = await own.create_database()
        clock = ManualClock()
        async with opened(address, clock) as plane:
            scene = Scene(plane, clock, _never)
            await scene.create()
            heard = Heard()
            plane.watch(heard)
            await scene.commit(batch())
            own.stop()
            for _ in range(2):
                with pytest.raises(KafkaError) as caught:
                    await plane.log_info([T0])
                assert (caught.value.retriable, caught.value.ambiguous) == (True, False)
            own.start()
            assert await scene.offsets(batch()) == [1]
            async with asyncio.timeout(PATIENCE_SECONDS):
                while heard.high_watermarks.get(T1) is None:  # notified again by the new connection
                    await scene.info()
    finally:
        own.remove()


async def _never() -> PostgresPlane:
    raise AssertionError("there is one broker")
