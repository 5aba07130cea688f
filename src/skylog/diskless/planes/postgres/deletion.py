"""Statements that delete batches. Their callers hold the locks of the partitions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from skylog.diskless.plane import TopicPartition
from skylog.diskless.rules.offsets import LogState
from skylog.kernel.ids import Uuid

_DROP: Final = """
DELETE FROM batches WHERE topic_id = $1 AND partition = $2 AND last_offset < $3
RETURNING file_id, byte_size"""

_MOVE: Final = """
UPDATE logs SET log_start_offset = $3, byte_size = $4, wal_start_offset = $5
WHERE topic_id = $1 AND partition = $2"""

# Two transactions may each delete one of a file's last two batches. The lock makes the second one
# check again after the first has ended; otherwise neither would see that none is left.
_LOCK_FILES: Final = """
SELECT 1 FROM files WHERE file_id = ANY($1::bigint[]) ORDER BY file_id FOR UPDATE"""

_MARK: Final = """
UPDATE files SET marked_ms = $2
WHERE file_id = ANY($1::bigint[]) AND marked_ms IS NULL
    AND NOT EXISTS (SELECT 1 FROM batches WHERE batches.file_id = files.file_id)"""


class Moved(NamedTuple):
    """A partition after a deletion, and the file of each deleted batch."""

    log: LogState
    file_ids: list[int]


async def start_at(connection: Any, partition: TopicPartition, log: LogState, offset: int) -> Moved:
    """Move the log start, forward only."""
    start = min(max(offset, log.log_start_offset), log.high_watermark)
    return await drop_below(connection, partition, log._replace(log_start_offset=start), start)


async def drop_below(
    connection: Any, partition: TopicPartition, log: LogState, offset: int
) -> Moved:
    """Remove the batches that end below ``offset``, and store the partition."""
    gone = await connection.fetch(_DROP, *partition, offset)
    log = log._replace(
        byte_size=log.byte_size - sum(row["byte_size"] for row in gone),
        wal_start_offset=max(log.wal_start_offset, offset),
    )
    await connection.execute(
        _MOVE, *partition, log.log_start_offset, log.byte_size, log.wal_start_offset
    )
    return Moved(log, [row["file_id"] for row in gone])


async def mark_free_files(connection: Any, file_ids: Sequence[int], now_ms: int) -> None:
    """Mark the files that have no batch left."""
    if file_ids:
        distinct = sorted(set(file_ids))
        await connection.execute(_LOCK_FILES, distinct)
        await connection.execute(_MARK, distinct, now_ms)


async def forget_producers(connection: Any, partition: TopicPartition, silent_since: int) -> None:
    await connection.execute(
        "DELETE FROM producers WHERE topic_id = $1 AND partition = $2 AND last_ms <= $3",
        *partition,
        silent_since,
    )


async def delete_topics(connection: Any, topic_ids: Sequence[Uuid], now_ms: int) -> None:
    wanted = list(topic_ids)
    await connection.execute(
        "SELECT 1 FROM logs WHERE topic_id = ANY($1::uuid[]) "
        "ORDER BY topic_id, partition FOR UPDATE",
        wanted,
    )
    gone = await connection.fetch(
        "DELETE FROM batches WHERE topic_id = ANY($1::uuid[]) RETURNING file_id", wanted
    )
    await connection.execute("DELETE FROM producers WHERE topic_id = ANY($1::uuid[])", wanted)
    await connection.execute("DELETE FROM logs WHERE topic_id = ANY($1::uuid[])", wanted)
    await mark_free_files(connection, [row["file_id"] for row in gone], now_ms)
