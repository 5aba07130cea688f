"""The commit of a file as one transaction.

The file's row comes first: a second commit of the same key waits at it, and then finds the first
result. Then the partitions are locked, always in the same order, so that no two commits can wait
for each other.
"""

# ruff: noqa: S608 - statements are put together from constants only

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final

from skylog.diskless.batch import Stamp
from skylog.diskless.plane import CommitResult, FileToCommit, TopicPartition
from skylog.diskless.planes.postgres import answers
from skylog.diskless.planes.postgres.notify import CHANNEL, Moved, payloads
from skylog.diskless.planes.postgres.reading import log_of
from skylog.diskless.rules import commits
from skylog.diskless.rules.offsets import LogState
from skylog.diskless.rules.pins import is_staged
from skylog.diskless.rules.times import PlaneRules
from skylog.kernel.ids import Uuid

_KNOWN: Final = "SELECT size, format, answers FROM files WHERE object_key = $1"

_NEW: Final = """
INSERT INTO files (object_key, format, size, uploader_broker_id, committed_ms, answers)
VALUES ($1, $2, $3, $4, $5, '') ON CONFLICT (object_key) DO NOTHING RETURNING file_id"""

_LOCK: Final = """
SELECT topic_id, partition, log_start_offset, high_watermark, byte_size, wal_start_offset
FROM logs JOIN unnest($1::uuid[], $2::integer[]) AS wanted (topic_id, partition)
    USING (topic_id, partition)
ORDER BY topic_id, partition FOR UPDATE OF logs"""

_PRODUCERS: Final = """
SELECT producers.*
FROM producers
JOIN unnest($1::uuid[], $2::integer[], $3::bigint[]) AS wanted (topic_id, partition, producer_id)
    USING (topic_id, partition, producer_id)"""

_STAMP: Final = ", ".join(Stamp._fields)
_BATCHES: Final = f"""
INSERT INTO batches (topic_id, partition, file_id, byte_offset, byte_size, {_STAMP}, max_seen_ms)
SELECT topic_id, partition, $1, new.byte_offset, new.byte_size, {_STAMP},
    greatest(max_seen_ms, max(
            CASE timestamp_type WHEN 1 THEN log_append_timestamp ELSE batch_max_timestamp END)
        OVER (PARTITION BY topic_id, partition ORDER BY position))
FROM unnest($2::uuid[], $3::integer[], $4::integer[], $5::integer[], $6::bigint[], $7::bigint[],
    $8::bigint[], $9::bigint[], $10::smallint[], $11::smallint[]) WITH ORDINALITY
    AS new (topic_id, partition, byte_offset, byte_size, {_STAMP}, position)
JOIN logs USING (topic_id, partition)
ORDER BY position"""

_LOGS: Final = """
UPDATE logs SET high_watermark = new.high_watermark, byte_size = new.byte_size,
    max_seen_ms = greatest(logs.max_seen_ms, new.max_seen_ms)
FROM unnest($1::uuid[], $2::integer[], $3::bigint[], $4::bigint[], $5::bigint[])
    AS new (topic_id, partition, high_watermark, byte_size, max_seen_ms)
WHERE logs.topic_id = new.topic_id AND logs.partition = new.partition"""

_REMEMBER: Final = """
INSERT INTO producers VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)
ON CONFLICT (topic_id, partition, producer_id) DO UPDATE SET
    producer_epoch = excluded.producer_epoch, base_sequences = excluded.base_sequences,
    last_sequences = excluded.last_sequences, assigned_offsets = excluded.assigned_offsets,
    log_append_timestamps = excluded.log_append_timestamps, last_ms = excluded.last_ms"""

_END: Final = "UPDATE files SET answers = $2, marked_ms = $3 WHERE file_id = $1"

_PIN: Final = """
SELECT expires_ms, size, format, answers FROM pins WHERE object_key = $1 FOR UPDATE"""

_KEEP: Final = """
UPDATE pins SET size = $2, format = $3, answers = (SELECT answers FROM files WHERE file_id = $4)
WHERE object_key = $1"""


async def commit(
    connection: Any, file: FileToCommit, now_ms: int, rules: PlaneRules
) -> tuple[list[CommitResult], list[Moved]]:
    """The results, and the high watermarks that moved. ``file`` has passed ``check_file``."""
    pin = await _pin(connection, file.object_key)
    row = await connection.fetchrow(_KNOWN, file.object_key)
    if row is None and pin is not None and pin["answers"] is not None:
        row = pin
    if row is not None:
        return _again(file, row), []
    commits.check_new(file, now_ms, rules, None if pin is None else pin["expires_ms"])
    file_id = await connection.fetchval(
        _NEW, file.object_key, file.format, file.size, file.uploader_broker_id, now_ms
    )
    if file_id is None:  # another commit of it has just finished
        return _again(file, await connection.fetchrow(_KNOWN, file.object_key)), []
    logs = await lock_logs(connection, {batch.topic_partition for batch in file.batches})
    producers = await _producers(connection, file)
    plan = commits.plan_commit(
        file, logs.get, lambda tp, producer_id: producers.get((tp, producer_id), ()), now_ms, rules
    )
    await _store(connection, file_id, plan, now_ms)
    if pin is not None:
        await connection.execute(_KEEP, *(file.object_key, file.size, file.format, file_id))
    moved = plan.moved()
    for payload in payloads(moved):
        await connection.execute("SELECT pg_notify($1, $2)", CHANNEL, payload)
    return plan.results, moved


async def _pin(connection: Any, object_key: str) -> Any:
    return await connection.fetchrow(_PIN, object_key) if is_staged(object_key) else None


def _again(file: FileToCommit, row: Any) -> list[CommitResult]:
    first = answers.unpack(row["answers"])
    commits.check_repeat(file, row["size"], row["format"], len(first))
    return commits.repeated(first)


async def lock_logs(
    connection: Any, partitions: Iterable[TopicPartition]
) -> dict[TopicPartition, LogState]:
    """Lock partitions until the transaction ends; unknown ones are missing."""
    rows = await connection.fetch(_LOCK, *_columns(list(set(partitions)), 2))
    return {(row[0], row[1]): log_of(row) for row in rows}


async def _producers(
    connection: Any, file: FileToCommit
) -> dict[commits.ProducerOfPartition, commits.Entries]:
    wanted = {
        (*b.topic_partition, b.producer.producer_id) for b in file.batches if b.producer.idempotent
    }
    if not wanted:
        return {}
    found = {}
    for row in await connection.fetch(_PRODUCERS, *_columns(list(wanted), 3)):
        lists = (
            row["base_sequences"],
            row["last_sequences"],
            row["assigned_offsets"],
            row["log_append_timestamps"],
        )
        found[(Uuid(row["topic_id"]), row["partition"]), row["producer_id"]] = tuple(
            commits.ProducerEntry(row["producer_epoch"], *numbers)
            for numbers in zip(*lists, strict=True)
        )
    return found


async def _store(connection: Any, file_id: int, plan: commits.CommitPlan, now_ms: int) -> None:
    if plan.accepted:
        batches = [
            (*partition, extent.byte_offset, extent.byte_size, *stamp)
            for partition, held in plan.accepted.items()
            for extent, stamp, _ in held
        ]
        await connection.execute(_BATCHES, file_id, *_columns(batches, len(batches[0])))
        latest = {
            partition: max(stamp.timestamp for _, stamp, _ in held)
            for partition, held in plan.accepted.items()
        }
        logs = [
            (*partition, state.high_watermark, state.byte_size, latest[partition])
            for partition, state in plan.logs.items()
        ]
        await connection.execute(_LOGS, *_columns(logs, 5))
    if plan.producers:
        await connection.executemany(
            _REMEMBER, [_producer_row(*item) for item in plan.producers.items()]
        )
    marked_ms = None if plan.accepted else now_ms
    await connection.execute(_END, file_id, answers.pack(plan.results), marked_ms)


def _producer_row(
    owner: commits.ProducerOfPartition, entries: commits.Entries
) -> tuple[object, ...]:
    (topic_id, partition), producer_id = owner
    _epochs, *lists = map(list, zip(*entries, strict=True))
    last = entries[-1]
    return (
        *(topic_id, partition, producer_id, last.producer_epoch),
        *lists,
        last.log_append_timestamp,
    )


def _columns(rows: Sequence[Sequence[object]], width: int) -> list[list[object]]:
    """Rows as the arrays that ``unnest`` takes."""
    return [[row[column] for row in rows] for column in range(width)]
