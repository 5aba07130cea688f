"""Ranges for bulk readers. One statement reads the batches of each."""

# ruff: noqa: S608 - statements are put together from constants only

from __future__ import annotations

from collections.abc import Awaitable, Callable, Generator, Sequence
from typing import Any, Final, TypeVar

from skylog.diskless.batch import BatchCoordinate, Stamp
from skylog.diskless.bulk import LocatedRange, PlannedRange, RangeRequest
from skylog.diskless.plane import TopicPartition
from skylog.diskless.planes.postgres import reading
from skylog.diskless.rules import ranges

AnswerT = TypeVar("AnswerT")
ResultT = TypeVar("ResultT")

# The last batch is found separately, so that the scan ends there.
_SPAN: Final = """
    WHERE topic_id = $1 AND partition = $2 AND last_offset >= $3 AND last_offset <= (
        SELECT last_offset FROM batches WHERE topic_id = $1 AND partition = $2
            AND last_offset >= $4 - 1 ORDER BY last_offset LIMIT 1)
    ORDER BY last_offset LIMIT $5"""

# Like ``ranges.split_page``.
_SPLIT_PAGE: Final = f"""
WITH page AS (
    SELECT base_offset, last_offset, byte_size::bigint,
        CASE WHEN effective_timestamp >= $6 THEN byte_size::bigint ELSE 0 END AS kept
    FROM batches {_SPAN}
), placed AS (
    SELECT *, div(sum(kept) OVER (ORDER BY last_offset) - kept, $7::bigint) AS number FROM page
)
SELECT kept > 0, min(base_offset), max(last_offset) + 1, sum(byte_size), count(*)
FROM placed GROUP BY kept > 0, number ORDER BY 2"""

_FIRST_YOUNG: Final = """
SELECT last_offset FROM batches
WHERE topic_id = $1 AND partition = $2 AND last_offset >= $3 AND effective_timestamp >= $4
ORDER BY last_offset LIMIT 1"""

_LOCATE: Final = f"""
SELECT batch_id, (SELECT object_key FROM files WHERE files.file_id = batches.file_id), byte_offset,
    byte_size, {", ".join(Stamp._fields)}
FROM batches {_SPAN}"""


async def plan(
    connection: Any, requests: Sequence[RangeRequest], split_bytes: int, max_batches: int
) -> list[PlannedRange]:
    async def look(at: TopicPartition, span: ranges.Span, limit: int) -> ranges.SplitPage:
        values = (*at, span.start, span.end, limit, span.min_timestamp, split_bytes)
        rows = await connection.fetch(_SPLIT_PAGE, *values)
        return ranges.page_of_groups(map(tuple, rows), span)

    logs = await reading.logs(connection, [request.topic_partition for request in requests])
    return await _run(ranges.plan(requests, max_batches, logs.get), look)


async def locate(
    connection: Any, requests: Sequence[RangeRequest], max_batches: int
) -> list[LocatedRange]:
    async def look(at: TopicPartition, span: ranges.Span, limit: int) -> list[BatchCoordinate]:
        start = span.start
        if span.min_timestamp >= 0:
            start = await connection.fetchval(_FIRST_YOUNG, *at, start, span.min_timestamp)
            if start is None:
                return []
        rows = await connection.fetch(_LOCATE, *at, start, span.end, limit)
        return [BatchCoordinate.of_row(row) for row in rows]

    logs = await reading.logs(connection, [request.topic_partition for request in requests])
    return await _run(ranges.locate(requests, max_batches, logs.get), look)


async def _run(
    steps: Generator[ranges.Look, AnswerT, ResultT], look: Callable[..., Awaitable[AnswerT]]
) -> ResultT:
    try:
        wanted = next(steps)
        while True:
            wanted = steps.send(await look(*wanted))
    except StopIteration as end:
        return end.value  # type: ignore[no-any-return]
