"""A prune as one transaction, which drops a limited number of batches."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from skylog.diskless.plane import PruneResult, TopicPartition
from skylog.diskless.planes.postgres import deletion
from skylog.diskless.planes.postgres.commit import lock_logs
from skylog.kernel.errors import ErrorCode
from skylog.kernel.ids import Uuid
from skylog.kernel.limits import DISKLESS_PRUNED_BATCHES_MAX

# The first batch that is one too many.
_BEYOND: Final = """
SELECT base_offset FROM batches WHERE topic_id = $1 AND partition = $2 AND last_offset < $3
ORDER BY last_offset OFFSET $4 LIMIT 1"""


async def prune(
    connection: Any, requests: Sequence[tuple[Uuid, int, int]], now_ms: int
) -> list[PruneResult]:
    logs = await lock_logs(connection, [(request[0], request[1]) for request in requests])
    left = DISKLESS_PRUNED_BATCHES_MAX
    results = []
    for topic_id, index, offset in requests:
        partition: TopicPartition = (topic_id, index)
        log = logs.get(partition)
        if log is None:
            results.append(PruneResult(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION))
            continue
        if offset > log.high_watermark:
            results.append(PruneResult(ErrorCode.OFFSET_OUT_OF_RANGE))
            continue
        beyond = await connection.fetchval(_BEYOND, *partition, offset, left)
        reached = offset if beyond is None else beyond
        moved = await deletion.drop_below(connection, partition, log, reached)
        left -= len(moved.file_ids)
        logs[partition] = moved.log
        await deletion.mark_free_files(connection, moved.file_ids, now_ms)
        results.append(PruneResult(ErrorCode.NONE, moved.log.wal_start_offset))
    return results
