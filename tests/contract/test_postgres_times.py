"""Timestamps on Postgres: found by an index, also in a database from before the index."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import asyncpg
import pytest

from skylog.diskless.plane import MAX_TIMESTAMP
from skylog.diskless.planes.postgres import PostgresPlane, reading, schema
from skylog.kernel.clock import ManualClock
from skylog.kernel.secret import Secret
from tests.contract.postgres_server import Broker, server
from tests.contract.support import RULES, T0, T1, TOPIC, Scene, batch

pytestmark = pytest.mark.interop

# Timestamps go up by ten a batch, and every third batch is 25 late.
_MANY = """
INSERT INTO batches (topic_id, partition, base_offset, last_offset, file_id, byte_offset,
    byte_size, log_append_timestamp, batch_max_timestamp, timestamp_type, magic, max_seen_ms)
SELECT $1, 0, n, n, $2, 1, 100, 0, ms, 0, 2, max(ms) OVER (ORDER BY n)
FROM (SELECT n, 1000 + 10 * n - CASE n % 3 WHEN 0 THEN 25 ELSE 0 END AS ms
    FROM generate_series(1, 20000) AS n) AS new"""
_BEFORE = """
INSERT INTO batches (topic_id, partition, base_offset, last_offset, file_id, byte_offset,
    byte_size, log_append_timestamp, batch_max_timestamp, timestamp_type, magic)
VALUES ($1, $2, $3, $3, $4, 1, 100, 7, $5, $6, 2)"""


@pytest.fixture
async def address() -> Secret:
    return await server().create_database()


@pytest.fixture
async def admin(address: Secret) -> AsyncIterator[Any]:
    connection = await asyncpg.connect(address.reveal())
    yield connection
    await connection.close()


async def _buffers_read(connection: Any, statement: str, *values: Any) -> int:
    """Buffers of the second call: the first one reads the catalogue, too."""
    for _ in range(2):
        explained = await connection.fetchval(
            f"EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) {statement}", *values
        )
    plan = json.loads(explained)[0]["Plan"]
    return int(plan["Shared Hit Blocks"] + plan["Shared Read Blocks"])


@asynccontextmanager
async def _scene(address: Secret) -> AsyncIterator[Scene]:
    clock = ManualClock()
    plane = PostgresPlane(address, clock, RULES, brokers=Broker())
    await plane.start()

    async def another() -> PostgresPlane:
        return plane

    try:
        yield Scene(plane, clock, another)
    finally:
        await plane.close()


async def _uuid_codec(connection: Any) -> None:
    await connection.set_type_codec(
        "uuid", schema="pg_catalog", encoder=bytes, decoder=bytes, format="binary"
    )


async def test_times_are_found_without_reading_the_partition(address: Secret, admin: Any) -> None:
    async with _scene(address) as scene:
        await _uuid_codec(admin)
        await scene.create()
        await scene.commit(batch(batch_max_timestamp=1000))
        file_id = await admin.fetchval("SELECT file_id FROM files")
        await admin.execute(_MANY, TOPIC, file_id)
        await admin.execute("UPDATE logs SET high_watermark = 20001, max_seen_ms = 201000")
        await admin.execute("ANALYZE")
        assert await scene.listed(150_005) == (150_020, 14_902)
        assert await scene.listed(150_005, from_offset=19_000) == (191_000, 19_000)
        assert await scene.listed(MAX_TIMESTAMP) == (201_000, 20_000)
        assert await scene.listed(999_999) == (-1, -1)
        for statement, values in (
            (reading.BY_TIME, (0, 150_005)),
            (reading.BY_TIME, (0, 999_999)),
            (reading.BY_MAX_SEEN, (0,)),
        ):
            assert await _buffers_read(admin, statement, *T0, *values) < 40


async def test_the_largest_timestamp_when_its_batch_is_gone(address: Secret) -> None:
    async with _scene(address) as scene:
        await scene.create()
        for timestamp in (500, 900, 700, 800, 800):
            await scene.commit(batch(batch_max_timestamp=timestamp))
        assert await scene.listed(MAX_TIMESTAMP) == (900, 1)
        assert await scene.listed(MAX_TIMESTAMP, from_offset=2) == (800, 3)
        await scene.plane.delete_records([(*T0, 2)])
        assert await scene.listed(MAX_TIMESTAMP) == (800, 3)
        assert await scene.listed(750) == (800, 3)
        assert await scene.listed(850) == (-1, -1)


async def test_a_database_from_before_the_index_is_brought_up(address: Secret, admin: Any) -> None:
    await _uuid_codec(admin)
    await admin.execute(
        "CREATE TABLE schema_history (version integer PRIMARY KEY, name text NOT NULL,"
        " digest text NOT NULL, applied_at timestamptz NOT NULL DEFAULT now())"
    )
    for script in schema.scripts()[:2]:
        await admin.execute(script.text)
        await admin.execute(
            "INSERT INTO schema_history (version, name, digest) VALUES ($1, $2, $3)",
            *(script.version, script.name, script.digest),
        )
    file_id = await admin.fetchval(
        "INSERT INTO files (object_key, format, size, uploader_broker_id, committed_ms, answers)"
        " VALUES ('k', 1, 1000, 0, 7, '') RETURNING file_id"
    )
    for partition in (0, 1):
        await admin.execute(
            "INSERT INTO logs (topic_id, partition, topic_name, high_watermark)"
            " VALUES ($1, $2, 'a', 3)",
            *(TOPIC, partition),
        )
    for offset, timestamp in enumerate((500, 900, 700)):
        await admin.execute(_BEFORE, TOPIC, 0, offset, file_id, timestamp, 0)
        await admin.execute(_BEFORE, TOPIC, 1, offset, file_id, timestamp, 1)
    async with _scene(address) as scene:
        assert await scene.listed(600) == (900, 1)
        assert await scene.listed(MAX_TIMESTAMP) == (900, 1)
        assert await scene.listed(MAX_TIMESTAMP, T1) == (7, 0)
        await scene.commit(batch(batch_max_timestamp=650), batch(batch_max_timestamp=950))
        assert await scene.listed(MAX_TIMESTAMP) == (950, 4)
        assert await scene.listed(600) == (900, 1)
