"""Pins. A commit locks the pin of its key, so that commits and pins see each other."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from skylog.diskless.bulk import PinRequest
from skylog.diskless.plane import TopicPartition
from skylog.diskless.planes.postgres import reading
from skylog.diskless.rules import pins
from skylog.diskless.rules.times import PlaneRules
from skylog.kernel.errors import ErrorCode, KafkaError

_LOCK: Final = """
SELECT object_key, expires_ms FROM pins WHERE object_key = ANY($1::varchar[])
ORDER BY object_key FOR UPDATE"""

# An object that was committed before it was pinned provides its results at once.
_PUT: Final = """
INSERT INTO pins (object_key, writer_id, epoch, expires_ms, size, format, answers)
SELECT $1, $2, $3, $4, f.size, f.format, f.answers
FROM (VALUES (1)) AS one LEFT JOIN files f ON f.object_key = $1
ON CONFLICT (object_key) DO UPDATE SET writer_id = excluded.writer_id, epoch = excluded.epoch,
    expires_ms = greatest(pins.expires_ms, excluded.expires_ms)"""

_EXPIRES: Final = """
SELECT object_key, expires_ms FROM pins WHERE object_key = ANY($1::varchar[])"""


async def pin(
    connection: Any, requests: Sequence[PinRequest], now_ms: int, rules: PlaneRules
) -> list[KafkaError | None]:
    await connection.execute("DELETE FROM pins WHERE expires_ms < $1", now_ms - rules.pin_grace_ms)
    keys = sorted({request.object_key for request in requests})
    known = {row[0]: row[1] for row in await connection.fetch(_LOCK, keys)}
    partitions = {partition for request in requests for partition in request.partitions}
    logs = await reading.logs(connection, sorted(partitions))
    results = [_judged(request, now_ms, rules, known, logs) for request in requests]
    rows = [
        (request.object_key, request.writer_id, request.epoch, request.expires_ms)
        for request, error in zip(requests, results, strict=True)
        if error is None
    ]
    # Always in the same order, so that no two transactions can wait for each other.
    await connection.executemany(_PUT, sorted(rows))
    return results


def _judged(
    request: PinRequest,
    now_ms: int,
    rules: PlaneRules,
    known: dict[str, int],
    logs: dict[TopicPartition, Any],
) -> KafkaError | None:
    try:
        pins.check_pin(request, now_ms, rules, known.get(request.object_key))
    except KafkaError as error:
        return error
    if any(partition not in logs for partition in request.partitions):
        return KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    return None


async def release(connection: Any, keys: Sequence[str]) -> None:
    await connection.execute("DELETE FROM pins WHERE object_key = ANY($1::varchar[])", list(keys))


async def kept(connection: Any, keys: Sequence[str], now_ms: int, rules: PlaneRules) -> set[str]:
    """Those of the keys whose pin protects them from deletion."""
    rows = await connection.fetch(_EXPIRES, [key for key in keys if pins.is_staged(key)])
    return {key for key, expires_ms in rows if pins.keeps(expires_ms, now_ms, rules)}
