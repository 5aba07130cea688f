"""``skylog diskless coordinators`` and ``skylog diskless batches``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from skylog.cli.connect import call, offsets_at, require_topic
from skylog.cli.errors import CommandError
from skylog.cli.options import Bootstrap, ClientConfig, Json, TopicName
from skylog.cli.output import print_json, print_table, say
from skylog.cli.times import format_age, format_time
from skylog.client.admin import Admin
from skylog.client.cluster import Cluster
from skylog.client.metadata import TopicInfo, TopicPartition
from skylog.client.offsets import EARLIEST, LATEST
from skylog.kernel.clock import SystemClock

if TYPE_CHECKING:
    from skylog.client.bulk import BatchLocation
    from skylog.wire.messages.describe_diskless_coordinators_response import DescribedCoordinator

_LOG_COLUMNS: Final = {
    "partition": "NO",
    "state": "STATE",
    "leader": "LEADER",
    "epoch": "EPOCH",
    "log_start_offset": "START",
    "log_end_offset": "END",
    "high_watermark": "COMMITTED",
    "lag": "LAG",
    "snapshot_offset": "SNAPSHOT",
    "snapshot_age": "AGE",
}
_CONTENT_COLUMNS: Final = {
    "partition": "NO",
    "partitions": "PARTITIONS",
    "batches": "BATCHES",
    "live_files": "FILES",
    "free_files": "TO DELETE",
    "producers": "PRODUCERS",
    "pins": "PINS",
}
_LOCATION_COLUMNS: Final = {
    "partition": "PARTITION",
    "first_offset": "FIRST",
    "last_offset": "LAST",
    "bytes": "BYTES",
    "timestamp": "TIMESTAMP",
    "position": "POSITION",
    "key": "KEY",
}

# More batches than any partition has.
_ALL: Final = 2**31 - 1


def coordinators(
    bootstrap: Bootstrap = None, client_config: ClientConfig = None, json: Json = False
) -> None:
    """Show the coordinators: their logs, snapshots and sizes.

    \b
    START, END, COMMITTED  offsets of the coordinator's log
    LAG                    how far its database is behind its log
    SNAPSHOT, AGE          end offset and age of the last snapshot
    FILES, TO DELETE       with and without live records; each coordinator of a file counts it
    PINS                   staged files that writers have pinned
    """
    planes, rows = call(_coordinators, bootstrap, client_config)
    if json:
        print_json(rows)
        return
    for plane in planes:
        say(plane)
    if any(row["partition"] is not None for row in rows):
        print_table(_LOG_COLUMNS, [_shown(row) for row in rows])
    print_table(_CONTENT_COLUMNS, rows)


async def _coordinators(cluster: Cluster) -> tuple[list[str], list[dict[str, Any]]]:
    answers = await Admin(cluster).diskless.describe()
    now_ms = SystemClock().now_ms()
    planes = {
        f"control plane {answer.control_plane}, objects in {answer.storage_url}"
        for answer in answers
    }
    rows = [_row(one, now_ms) for answer in answers for one in answer.coordinators]
    return sorted(planes), sorted(rows, key=lambda row: row["partition"] or 0)


def _row(one: DescribedCoordinator, now_ms: int) -> dict[str, Any]:
    """Values that a coordinator does not have are None."""
    lag = one.high_watermark - one.applied_offset if one.applied_offset >= 0 else -1
    written_ms = one.snapshot_timestamp_ms
    numbers = {
        "partition": one.partition_index,
        "leader": one.leader_id,
        "epoch": one.leader_epoch,
        "log_start_offset": one.log_start_offset,
        "log_end_offset": one.log_end_offset,
        "high_watermark": one.high_watermark,
        "lag": lag,
        "snapshot_offset": one.snapshot_offset,
        "snapshot_age_ms": now_ms - written_ms if written_ms >= 0 else -1,
        "partitions": one.partitions,
        "batches": one.batches,
        "live_files": one.live_files,
        "free_files": one.free_files,
        "producers": one.producers,
        "pins": one.pins,
    }
    known = {name: None if number < 0 else number for name, number in numbers.items()}
    return {**known, "state": one.state}


def _shown(row: dict[str, Any]) -> dict[str, Any]:
    age_ms = row["snapshot_age_ms"]
    return {**row, "snapshot_age": None if age_ms is None else format_age(age_ms)}


def batches(
    topic: TopicName,
    partition: Annotated[
        int | None, typer.Option("--partition", "-p", min=0, help="Only this partition.")
    ] = None,
    from_: Annotated[
        int | None, typer.Option("--from", min=0, help="An offset (default: the first one).")
    ] = None,
    limit: Annotated[
        int, typer.Option("--limit", "-n", min=1, help="Maximum number of batches per partition.")
    ] = 100,
    bootstrap: Bootstrap = None,
    client_config: ClientConfig = None,
    json: Json = False,
) -> None:
    """Show where the batches of a diskless topic are: objects, positions and offsets.

    What is tiered is shown by ranges of its segments, in the store of remote segments.
    """

    async def work(cluster: Cluster) -> list[dict[str, Any]]:
        found = await require_topic(cluster, topic)
        chosen = list(found.partitions) if partition is None else [partition]
        if not set(chosen) <= set(found.partitions):
            raise CommandError(
                f"{topic} has no partition {partition}; it has {len(found.partitions)}"
            )
        return [
            _location(index, batch)
            for index in chosen
            for batch in await _located(cluster, found, index, from_, limit)
        ]

    rows = call(work, bootstrap, client_config)
    if json:
        print_json(rows)
    else:
        shown = [{**row, "timestamp": format_time(row["timestamp"])} for row in rows]
        print_table(_LOCATION_COLUMNS, shown)


async def _located(
    cluster: Cluster,
    topic: TopicInfo,
    partition: int,
    start: int | None,
    limit: int,
    *,
    wal_only: bool = False,
) -> list[BatchLocation]:
    from skylog.client.bulk import (  # noqa: PLC0415 - not needed for --help
        Regions,
        Split,
        locate_batches,
    )

    key = TopicPartition(topic.name, partition)
    first = (await offsets_at(cluster, [key], EARLIEST))[key]
    end = (await offsets_at(cluster, [key], LATEST))[key]
    # An offset given for all partitions need not exist in each of them.
    start = first if start is None else min(max(start, first), end)
    split = Split(topic.name, topic.topic_id, partition, start, end, 0, diskless=True)
    found: list[BatchLocation] = []
    while True:  # ask at least once: reports a topic that is not diskless
        located = await locate_batches(
            cluster,
            split,
            start_offset=start,
            max_batches=limit - len(found),
            regions=Regions.WAL if wal_only else Regions.ALL,
        )
        found += located.batches
        if len(found) >= limit or not start < located.next_offset < end:
            return found
        start = located.next_offset


async def keys_of(cluster: Cluster, topic: str) -> set[str]:
    """The WAL objects with batches of a topic."""
    found = await require_topic(cluster, topic)
    return {
        batch.object_key
        for index in found.partitions
        for batch in await _located(cluster, found, index, None, _ALL, wal_only=True)
    }


def _location(partition: int, batch: BatchLocation) -> dict[str, Any]:
    stamped = batch.timestamp_type == 1
    return {
        "partition": partition,
        "first_offset": batch.base_offset,
        "last_offset": batch.last_offset,
        "bytes": batch.byte_size,
        "timestamp": batch.log_append_timestamp if stamped else batch.max_timestamp,
        "timestamp_type": "LogAppendTime" if stamped else "CreateTime",
        "key": batch.object_key,
        "position": batch.byte_offset,
    }
