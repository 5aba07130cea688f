"""``skylog tiered segments`` and ``skylog tiered regions``."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any, Final, NamedTuple

import typer

from skylog.cli.connect import DISKLESS, call, offsets_at, require_topic, topic_configs
from skylog.cli.dump_records import STATES
from skylog.cli.errors import CommandError, counted
from skylog.cli.options import Bootstrap, ClientConfig, Json, TopicName
from skylog.cli.output import print_json, print_table, say
from skylog.cli.times import format_time
from skylog.client.admin import Admin
from skylog.client.cluster import Cluster
from skylog.client.metadata import TopicInfo, TopicPartition
from skylog.client.offsets import EARLIEST, EARLIEST_LOCAL, LATEST

if TYPE_CHECKING:
    from skylog.wire.messages.describe_remote_log_response import (
        DescribedRemoteSegment as Segment,
    )

_SEGMENT_COLUMNS: Final = {
    "partition": "PARTITION",
    "start_offset": "START",
    "end_offset": "END",
    "bytes": "BYTES",
    "newest": "NEWEST",
    "state": "STATE",
    "epochs": "EPOCHS",
    "broker": "BROKER",
    "id": "ID",
}
# Of a classic topic, and of a diskless one.
LOCAL_START, WAL_START = "local_start_offset", "wal_start_offset"
_START_TITLES: Final = {LOCAL_START: "LOCAL START", WAL_START: "WAL START"}
_FINISHED: Final = "COPY_SEGMENT_FINISHED"
BAR_WIDTH: Final = 40
REMOTE, BOTH, LOCAL, HOLE = "█▓░!"
Runs = Sequence[tuple[int, int]]

PartitionOption = Annotated[
    int | None, typer.Option("--partition", "-p", min=0, help="Only this partition.")
]


def segments(
    topic: TopicName,
    partition: PartitionOption = None,
    bootstrap: Bootstrap = None,
    client_config: ClientConfig = None,
    json: Json = False,
) -> None:
    """List the remote segments of a topic, as the leaders of its partitions know them.

    \b
    START, END  first and last offset
    NEWEST      the newest timestamp of its records, by which it expires
    STATE       copied segments can be read; the others are on their way in or out
    EPOCHS      leader epochs of its records
    ID          part of its objects' keys
    """

    async def work(cluster: Cluster) -> list[dict[str, Any]]:
        found = await require_topic(cluster, topic)
        admin = Admin(cluster).tiered
        return [
            _segment_row(index, segment)
            for index in _chosen(found, partition)
            for segment in await admin.segments(found, index)
        ]

    rows = call(work, bootstrap, client_config)
    if json:
        print_json(rows)
        return
    print_table(_SEGMENT_COLUMNS, [{**row, "newest": format_time(row["newest"])} for row in rows])
    finished = [row["bytes"] for row in rows if row["state"] == _FINISHED]
    say(f"{counted(len(rows), 'segment')}, {sum(finished):,} bytes can be read")


def regions(
    topic: TopicName,
    partition: PartitionOption = None,
    bootstrap: Bootstrap = None,
    client_config: ClientConfig = None,
    json: Json = False,
) -> None:
    """Show which offsets of each partition are remote, and which are on the leader's disk or, of a
    diskless topic, in WAL objects.

    \b
    START        the first offset that can be read
    LOCAL START  the first offset on the leader's disk
    WAL START    of a diskless topic: the first offset in a WAL object
    END          the first offset that consumers cannot read yet
    OFFSETS      from START to END: █ remote, ▓ both, ░ local or in the WAL, ! a hole

    A hole is an offset that should be there and is nowhere: the exit code is 1.
    """

    async def work(cluster: Cluster) -> list[dict[str, Any]]:
        found = await require_topic(cluster, topic)
        admin = Admin(cluster).tiered
        chosen = [TopicPartition(topic, index) for index in _chosen(found, partition)]
        is_diskless = (await topic_configs(cluster, topic, DISKLESS))[DISKLESS] == "true"
        local = await offsets_at(cluster, chosen, EARLIEST_LOCAL)
        ends = await offsets_at(cluster, chosen, LATEST)
        segments = {
            key: await admin.segments(found, key.partition, finished_only=True) for key in chosen
        }
        # Last: what expires while this asks is no hole.
        starts = await offsets_at(cluster, chosen, EARLIEST)
        return [
            region_row(
                Region(key.partition, starts[key], local[key], ends[key]),
                segments[key],
                WAL_START if is_diskless else LOCAL_START,
            )
            for key in chosen
        ]

    rows = call(work, bootstrap, client_config)
    if json:
        print_json(rows)
    else:
        print_table(_region_columns(rows), rows)
    holes = [
        f"partition {row['partition']} at {row['holes'][0][0]}" for row in rows if row["holes"]
    ]
    if holes:
        raise CommandError(
            f"holes: {', '.join(holes[:5])}; repair the store or delete the records up to there"
        )


def _region_columns(rows: Sequence[dict[str, Any]]) -> dict[str, str]:
    start = next((name for name in _START_TITLES if rows and name in rows[0]), LOCAL_START)
    return {
        "partition": "PARTITION",
        "log_start_offset": "START",
        start: _START_TITLES[start],
        "end_offset": "END",
        "remote_segments": "SEGMENTS",
        "remote_bytes": "REMOTE BYTES",
        "bar": "OFFSETS",
    }


def _chosen(topic: TopicInfo, partition: int | None) -> list[int]:
    if partition is None:
        return list(topic.partitions)
    if partition not in topic.partitions:
        raise CommandError(
            f"{topic.name} has no partition {partition}; it has {len(topic.partitions)}"
        )
    return [partition]


def _segment_row(partition: int, segment: Segment) -> dict[str, Any]:
    state = segment.remote_log_segment_state
    return {
        "partition": partition,
        "start_offset": segment.start_offset,
        "end_offset": segment.end_offset,
        "bytes": segment.segment_size_in_bytes,
        "newest": segment.max_timestamp_ms,
        "state": STATES["remote_log_segment_state"].get(state, str(state)),
        "epochs": [entry.leader_epoch for entry in segment.segment_leader_epochs],
        "broker": segment.broker_id,
        "id": str(segment.segment_id),
    }


class Region(NamedTuple):
    """The offsets of a partition: what can be read, and what of it is on the leader's disk or, of
    a diskless topic, in WAL objects."""

    partition: int
    start: int
    local_start: int
    end: int


def region_row(
    region: Region, found: Sequence[Segment], start_name: str = LOCAL_START
) -> dict[str, Any]:
    """What is where of one partition; ``found`` are its finished segments."""
    partition, start, local_start, end = region
    remote = joined([(segment.start_offset, segment.end_offset + 1) for segment in found])
    return {
        "partition": partition,
        "log_start_offset": start,
        start_name: local_start,
        "end_offset": end,
        "remote_segments": len(found),
        "remote_bytes": sum(segment.segment_size_in_bytes for segment in found),
        "holes": missing(joined([*remote, (local_start, end)]), start, end),
        "bar": bar(start, end, remote, local_start),
    }


def joined(runs: Runs) -> list[tuple[int, int]]:
    """Runs of offsets (end exclusive) in order, those that touch as one."""
    found: list[tuple[int, int]] = []
    for start, end in sorted(runs):
        if found and start <= found[-1][1]:
            found[-1] = found[-1][0], max(found[-1][1], end)
        elif start < end:
            found.append((start, end))
    return found


def missing(runs: Runs, start: int, end: int) -> list[tuple[int, int]]:
    """What joined runs do not cover of [start, end)."""
    holes = []
    for first, behind in runs:
        if start < min(first, end):
            holes.append((start, min(first, end)))
        start = max(start, behind)
    return [*holes, (start, end)] if start < end else holes


def bar(start: int, end: int, remote: Runs, local_start: int, width: int = BAR_WIDTH) -> str:
    """One character for each part of [start, end): what its first offset is, and a hole wherever
    there is one."""
    if start >= end:
        return ""
    width = min(width, end - start)
    edges = [start + (end - start) * place // width for place in range(width + 1)]
    covered = joined([*remote, (local_start, end)])
    cells = []
    for first, behind in itertools.pairwise(edges):
        is_remote = any(low <= first < high for low, high in remote)
        if missing(covered, first, behind):
            cells.append(HOLE)
        elif is_remote:
            cells.append(BOTH if first >= local_start else REMOTE)
        else:
            cells.append(LOCAL)
    return "".join(cells)
