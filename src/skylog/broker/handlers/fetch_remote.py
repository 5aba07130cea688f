"""The diskless part of a fetch."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass
from typing import Any

from skylog.broker.handlers.diskless_errors import read_error
from skylog.broker.net.context import RequestContext
from skylog.diskless.partitions import DisklessPartition
from skylog.diskless.reader import ReadRequest, ReadResult
from skylog.kernel.errors import KafkaError
from skylog.wire.buffers import chained
from skylog.wire.messages.fetch_request import FetchPartition
from skylog.wire.messages.fetch_response import PartitionData


@dataclass(frozen=True, slots=True)
class RemoteRead:
    """A read of diskless partitions, which always waits."""

    requests: list[ReadRequest]
    fetch_max_bytes: int
    min_one: bool


async def fetch_remote(context: RequestContext, read: RemoteRead) -> list[ReadResult]:
    return await context.services.diskless.fetch(
        read.requests, read.fetch_max_bytes, min_one=read.min_one
    )


def read_remote(
    wanted: list[tuple[FetchPartition, DisklessPartition]],
    budget: int,
    *,
    min_one: bool,
    read_committed: bool,
) -> Generator[Any, Any, list[PartitionData]]:
    """Yields the read, expects its results, and makes each partition's answer of them."""
    requests = [
        ReadRequest(found.topic_id, found.index, asked.fetch_offset, asked.partition_max_bytes)
        for asked, found in wanted
    ]
    try:
        results: list[ReadResult] = yield RemoteRead(requests, budget, min_one)
    except KafkaError as error:
        results = [ReadResult(error.code)] * len(wanted)
    return [
        PartitionData(
            found.index,
            error_code=read_error(result.error),
            high_watermark=result.high_watermark,
            last_stable_offset=result.high_watermark,
            log_start_offset=result.log_start_offset,
            aborted_transactions=[] if read_committed else None,
            records=chained(result.parts, result.size),
        )
        for (_, found), result in zip(wanted, results, strict=True)
    ]
