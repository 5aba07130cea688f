"""Queries that change nothing. Each is one statement, and so reads one snapshot."""

# ruff: noqa: S608 - statements are put together from constants only

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from skylog.diskless.batch import BatchCoordinate, Stamp
from skylog.diskless.plane import (
    MAX_TIMESTAMP,
    CoordinatorInfo,
    FileInfo,
    FindRequest,
    FindResult,
    ListOffsetsResult,
    TopicPartition,
)
from skylog.diskless.rules import offsets
from skylog.kernel.errors import ErrorCode
from skylog.kernel.ids import Uuid

_FIND: Final = """
SELECT * FROM find_batches($1::uuid[], $2::integer[], $3::bigint[], $4::bigint[], $5, $6)"""

_LOGS: Final = """
SELECT topic_id, partition, log_start_offset, high_watermark, byte_size, wal_start_offset
FROM logs JOIN unnest($1::uuid[], $2::integer[]) AS wanted (topic_id, partition)
    USING (topic_id, partition)"""

# A partition with some of its batches: the columns of LogState, then those of BatchCoordinate.
_STAMP: Final = ", ".join(f"b.{field}" for field in Stamp._fields)
_WITH: Final = f"""
SELECT l.log_start_offset, l.high_watermark, l.byte_size, l.wal_start_offset,
    b.batch_id, f.object_key, b.byte_offset, b.byte_size AS batch_size, {_STAMP}
FROM logs l
LEFT JOIN LATERAL """
_BATCHES: Final = """(
    SELECT * FROM batches
    WHERE batches.topic_id = l.topic_id AND batches.partition = l.partition """
_OF_PARTITION: Final = """
b ON true
LEFT JOIN files f USING (file_id)
WHERE l.topic_id = $1 AND l.partition = $2
ORDER BY b.last_offset"""

_OLDEST: Final = _WITH + _BATCHES + "ORDER BY last_offset LIMIT $3)" + _OF_PARTITION
BY_TIME: Final = _WITH + "batch_at_time(l.topic_id, l.partition, $3, $4)" + _OF_PARTITION
BY_MAX_SEEN: Final = (
    _WITH + "batch_at_time(l.topic_id, l.partition, $3, l.max_seen_ms)" + _OF_PARTITION
)
# Scans the whole partition: only if the batch with the largest timestamp is gone.
_BY_LARGEST_TIME: Final = (
    _WITH
    + _BATCHES
    + "AND last_offset >= $3 ORDER BY effective_timestamp DESC, last_offset LIMIT 1)"
    + _OF_PARTITION
)

_LIST_FILES: Final = """
SELECT object_key, size, committed_ms, count(batch_id), coalesce(sum(byte_size), 0),
    coalesce(marked_ms, -1)
FROM (SELECT * FROM files WHERE object_key > $1 ORDER BY object_key LIMIT $2) listed
LEFT JOIN batches USING (file_id)
GROUP BY object_key, size, committed_ms, marked_ms
ORDER BY object_key"""

_COUNTS: Final = """
SELECT (SELECT count(*) FROM logs), (SELECT count(*) FROM batches),
    (SELECT count(*) FROM files WHERE marked_ms IS NULL),
    (SELECT count(*) FROM files WHERE marked_ms IS NOT NULL), (SELECT count(*) FROM producers),
    (SELECT count(*) FROM pins)"""


class LogWithBatches(NamedTuple):
    log: offsets.LogState
    batches: list[BatchCoordinate]


async def find(
    connection: Any, requests: Sequence[FindRequest], fetch_max_bytes: int, max_batches: int
) -> list[FindResult]:
    rows = await connection.fetch(
        _FIND,
        [r.topic_id for r in requests],
        [r.partition for r in requests],
        [r.offset for r in requests],
        [r.max_bytes for r in requests],
        fetch_max_bytes,
        max_batches,
    )
    logs: dict[int, offsets.LogState] = {}
    found: list[list[BatchCoordinate]] = [[] for _ in requests]
    for number, log_start, high_watermark, wal_start, *batch in rows:
        if batch[0] is None:
            logs[number] = offsets.LogState(
                log_start_offset=log_start,
                high_watermark=high_watermark,
                wal_start_offset=wal_start,
            )
        else:
            found[number].append(BatchCoordinate.of_row(batch))
    return [
        _found(request, logs.get(number), found[number]) for number, request in enumerate(requests)
    ]


def _found(
    request: FindRequest, log: offsets.LogState | None, batches: list[BatchCoordinate]
) -> FindResult:
    if log is None:
        return FindResult(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    error = offsets.find_error(request.offset, log)
    return FindResult(error, batches, log.log_start_offset, log.high_watermark)


async def list_offset(
    connection: Any, request: tuple[Uuid, int, int], from_offset: int
) -> ListOffsetsResult:
    topic_id, partition, timestamp = request
    log = (await logs(connection, [(topic_id, partition)])).get((topic_id, partition))
    if log is None:
        return ListOffsetsResult(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    named = offsets.named_offset(timestamp, log)
    if named is not None:
        return named
    at = (topic_id, partition, from_offset)
    if timestamp == MAX_TIMESTAMP:
        chosen = _with_batches(await connection.fetch(BY_MAX_SEEN, *at))
        if chosen is not None and not chosen.batches:
            chosen = _with_batches(await connection.fetch(_BY_LARGEST_TIME, *at))
    else:
        chosen = _with_batches(await connection.fetch(BY_TIME, *at, timestamp))
    if chosen is None:
        return ListOffsetsResult(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    batch = chosen.batches[0] if chosen.batches else None
    return offsets.chosen_offset(batch, timestamp, chosen.log)


async def oldest(connection: Any, partition: TopicPartition, count: int) -> LogWithBatches | None:
    """A partition and its first batches; None if it is unknown."""
    return _with_batches(await connection.fetch(_OLDEST, *partition, count))


def _with_batches(rows: Sequence[Any]) -> LogWithBatches | None:
    if not rows:
        return None
    batches = [
        BatchCoordinate.of_row(row[len(offsets.LogState._fields) :])
        for row in rows
        if row["batch_id"] is not None
    ]
    return LogWithBatches(log_of(rows[0]), batches)


async def has_silent_producers(
    connection: Any, partition: TopicPartition, silent_since_ms: int
) -> bool:
    found: bool = await connection.fetchval(
        "SELECT EXISTS (SELECT 1 FROM producers "
        "WHERE topic_id = $1 AND partition = $2 AND last_ms <= $3)",
        *partition,
        silent_since_ms,
    )
    return found


async def logs(
    connection: Any, partitions: Sequence[TopicPartition]
) -> dict[TopicPartition, offsets.LogState]:
    rows = await connection.fetch(_LOGS, [p[0] for p in partitions], [p[1] for p in partitions])
    return {(row[0], row[1]): log_of(row) for row in rows}


def log_of(row: Any) -> offsets.LogState:
    """From a row with the columns of ``logs``, perhaps among others."""
    return offsets.LogState(**{field: row[field] for field in offsets.LogState._fields})


async def files(connection: Any, keys: Sequence[str]) -> dict[str, bool]:
    """For each known key: whether the file is marked for deletion."""
    rows = await connection.fetch(
        "SELECT object_key, marked_ms IS NOT NULL FROM files WHERE object_key = ANY($1::varchar[])",
        list(keys),
    )
    return {row[0]: row[1] for row in rows}


async def files_to_delete(connection: Any, marked_before_ms: int, limit: int) -> list[str]:
    rows = await connection.fetch(
        "SELECT object_key FROM files WHERE marked_ms < $1 ORDER BY marked_ms, object_key LIMIT $2",
        marked_before_ms,
        limit or None,
    )
    return [row[0] for row in rows]


async def list_files(connection: Any, after: str, limit: int) -> list[FileInfo]:
    rows = await connection.fetch(_LIST_FILES, after, limit)
    # A sum of bigints is a numeric.
    return [
        FileInfo(key, size, committed_ms, live, int(live_bytes), marked_ms)
        for key, size, committed_ms, live, live_bytes, marked_ms in rows
    ]


async def counts(connection: Any) -> CoordinatorInfo:
    partitions, batches, live, free, producers, pins = await connection.fetchrow(_COUNTS)
    return CoordinatorInfo(
        partitions=partitions,
        batches=batches,
        live_files=live,
        free_files=free,
        producers=producers,
        pins=pins,
    )


async def known_topics(connection: Any) -> list[Uuid]:
    rows = await connection.fetch("SELECT DISTINCT topic_id FROM logs")
    return [row["topic_id"] for row in rows]
