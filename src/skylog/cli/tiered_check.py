"""``skylog tiered verify`` and ``skylog tiered orphans``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from skylog.cli.connect import call, offsets_at, require_topic
from skylog.cli.errors import CommandError, counted
from skylog.cli.options import Bootstrap, ClientConfig, Json, Yes
from skylog.cli.output import confirm, print_json, print_table, say
from skylog.cli.server import Override
from skylog.cli.tiered_store import (
    RemoteStoreOptions,
    ServerConfig,
    StorageUrl,
    opened_remote,
)
from skylog.cli.times import format_time
from skylog.client.admin import Admin
from skylog.client.admin.configs import ConfigResource, ConfigType
from skylog.client.metadata import TopicInfo, TopicPartition
from skylog.client.offsets import EARLIEST, EARLIEST_LOCAL, LATEST
from skylog.kernel.clock import SystemClock
from skylog.kernel.config import is_true
from skylog.kernel.errors import KafkaError
from skylog.kernel.progress import Progress

if TYPE_CHECKING:
    from skylog.client.cluster import Cluster
    from skylog.kernel.ids import Uuid
    from skylog.tiered.orphans import KnownSegments, OrphanReport
    from skylog.tiered.segments import RemoteSegment, TopicIdPartition
    from skylog.tiered.storage import ObjectRemoteStorage

_PROBLEM_COLUMNS: Final = {
    "topic": "TOPIC",
    "partition": "PARTITION",
    "start_offset": "START",
    "id": "SEGMENT",
    "problem": "PROBLEM",
}
_ORPHAN_COLUMNS: Final = {
    "topic": "TOPIC",
    "partition": "PARTITION",
    "start_offset": "START",
    "id": "SEGMENT",
    "bytes": "BYTES",
    "stored": "STORED",
    "state": "STATE",
}


def verify(
    topic: Annotated[
        str | None, typer.Argument(metavar="[TOPIC]", help="Only this topic; default: all.")
    ] = None,
    quick: Annotated[
        bool,
        typer.Option("--quick", help="Do not read the logs: only objects, sizes and indexes."),
    ] = False,
    server_config: ServerConfig = None,
    override: Override = None,
    storage_url: StorageUrl = None,
    bootstrap: Bootstrap = None,
    client_config: ClientConfig = None,
    json: Json = False,
) -> None:
    """Compare remote segments with the store: objects, sizes, checksums, and whether they cover
    every offset from the log start to the local start.

    Reads every byte of every log, unless --quick. Nothing is changed; what is copied or deleted
    meanwhile is left out. The exit code is 1 if anything is wrong.
    """
    options = RemoteStoreOptions(server_config, override, storage_url)
    rows, looked_at = call(
        lambda cluster: _verified(cluster, options, topic, logs=not quick),
        bootstrap,
        client_config,
    )
    if json:
        print_json({**looked_at, "problems": rows})
    elif rows:
        print_table(_PROBLEM_COLUMNS, rows)
    say(
        f"{counted(looked_at['segments'], 'segment')} of "
        f"{counted(looked_at['topics'], 'topic')}, {looked_at['bytes']:,} bytes read"
    )
    if rows:
        raise CommandError(f"{counted(len(rows), 'problem')} found")


async def _verified(
    cluster: Cluster, options: RemoteStoreOptions, topic: str | None, *, logs: bool
) -> tuple[list[dict[str, Any]], dict[str, int]]:
    topics = [await require_topic(cluster, topic)] if topic else await remote_topics(cluster)
    looked_at = {"topics": len(topics), "segments": 0, "bytes": 0}
    rows: list[dict[str, Any]] = []
    async with opened_remote(options, cluster) as storage:
        for found in topics:
            for index in found.partitions:
                await _verify_partition(
                    cluster, storage, found, index, logs=logs, rows=rows, looked_at=looked_at
                )
    return rows, looked_at


async def _verify_partition(
    cluster: Cluster,
    storage: ObjectRemoteStorage,
    topic: TopicInfo,
    index: int,
    *,
    logs: bool,
    rows: list[dict[str, Any]],
    looked_at: dict[str, int],
) -> None:
    from skylog.tiered.described import finished_segments  # noqa: PLC0415 - not needed for --help
    from skylog.tiered.verify import gaps, verify_partition  # noqa: PLC0415

    key = TopicPartition(topic.name, index)
    segments = await finished_segments(cluster, topic, index)
    start = (await offsets_at(cluster, [key], EARLIEST))[key]
    local = (await offsets_at(cluster, [key], EARLIEST_LOCAL))[key]
    problems: list[tuple[RemoteSegment | None, str]] = [
        (None, f"offsets {first} to {behind - 1} are in no remote segment")
        for first, behind in gaps(segments, start, local)
    ]
    total = sum(segment.size for segment in segments)
    with Progress(f"{topic.name}-{index}", total, in_bytes=True) as progress:
        for segment in segments:
            report = await verify_partition(storage, [segment], start=0, end=0, logs=logs)
            problems += [(segment, problem.text) for problem in report.problems]
            looked_at["segments"] += 1
            looked_at["bytes"] += report.bytes
            progress.add(segment.size)
    if any(segment is not None for segment, _ in problems):
        # What was deleted while we looked was not there for a reason.
        known = {one.id for one in await finished_segments(cluster, topic, index)}
        problems = [p for p in problems if p[0] is None or p[0].id in known]
    rows += [
        {
            "topic": topic.name,
            "partition": index,
            "start_offset": None if segment is None else segment.start_offset,
            "id": None if segment is None else str(segment.id),
            "problem": text,
        }
        for segment, text in problems
    ]


def orphans(
    delete: Annotated[
        bool, typer.Option("--delete", help="Delete them now instead of with the next scan.")
    ] = False,
    release: Annotated[
        bool,
        typer.Option("--release", help="Release held segments, so that brokers may delete them."),
    ] = False,
    yes: Yes = False,
    server_config: ServerConfig = None,
    override: Override = None,
    storage_url: StorageUrl = None,
    bootstrap: Bootstrap = None,
    client_config: ClientConfig = None,
    json: Json = False,
) -> None:
    """List objects of remote segments that no metadata names.

    \b
    orphan   older than the grace: the brokers' next scan deletes it
    held     kept since a restore, until --release; then it may be an orphan
    needed   unknown, but the only copy of its offsets: never deleted; see
             `skylog tiered rebuild`, or delete the records up to there

    Objects of deleted topics are left to the brokers, who know how long they have been deleted.
    """
    options = RemoteStoreOptions(server_config, override, storage_url)

    async def work(cluster: Cluster) -> OrphanReport:
        async with opened_remote(options, cluster) as storage:
            return await _scan(cluster, options, storage, delete=False)

    report = call(work, bootstrap, client_config)
    rows = _orphan_rows(report)
    if json:
        print_json(rows)
    else:
        print_table(_ORPHAN_COLUMNS, rows)
    say(
        f"{counted(report.scanned, 'segment')} in the store, {counted(report.orphans, 'orphan')} of"
        f" {report.bytes:,} bytes, {report.held} held since a restore,"
        f" {report.unanswered} whose leader did not answer"
    )
    if delete and report.orphans:
        confirm(f"Delete {counted(report.orphans, 'orphan')}?", yes=yes)
        deleted = call(lambda cluster: _delete(cluster, options), bootstrap, client_config)
        say(f"deleted: {counted(deleted, 'orphan')}")
    if release:
        confirm("End the holds of all restores?", yes=yes)
        ended = call(lambda cluster: _release(cluster, options), bootstrap, client_config)
        say(f"released: {counted(ended, 'hold')}")
    if report.needed:
        raise CommandError(
            f"{counted(len(report.needed), 'segment')} that no metadata names, with offsets that "
            "nothing else has"
        )


def _orphan_rows(report: OrphanReport) -> list[dict[str, Any]]:
    return [
        {
            "topic": segment.topic,
            "partition": segment.partition.partition_index,
            "start_offset": segment.start_offset,
            "id": str(segment.id),
            "bytes": segment.size,
            "stored": format_time(segment.modified_ms),
            "state": state,
        }
        for state, found in (
            ("orphan", report.shown),
            ("held", report.kept),
            ("needed", report.needed),
        )
        for segment in found
    ]


async def _delete(cluster: Cluster, options: RemoteStoreOptions) -> int:
    async with opened_remote(options, cluster) as storage:
        return (await _scan(cluster, options, storage, delete=True)).orphans


async def _release(cluster: Cluster, options: RemoteStoreOptions) -> int:
    from skylog.objects.holds import release_holds  # noqa: PLC0415 - not needed for --help

    async with opened_remote(options, cluster) as storage:
        return len(await release_holds(storage.store))


async def _scan(
    cluster: Cluster, options: RemoteStoreOptions, storage: ObjectRemoteStorage, *, delete: bool
) -> OrphanReport:
    from skylog.objects.claim import BucketClaim  # noqa: PLC0415 - not needed for --help
    from skylog.tiered.orphans import OrphanScanner  # noqa: PLC0415

    topics = {one.topic_id: one for one in await Admin(cluster).topics.list_all()}
    scanner = OrphanScanner(
        BucketClaim(storage.store, cluster.metadata.cluster_id or "", "tiered.storage.url"),
        ClusterRegistry(cluster, topics),
        SystemClock(),
        grace_ms=options.settings().tiered.orphan_grace_ms,
    )
    return await scanner.scan(delete=delete)


class ClusterRegistry:
    """What a scan asks, answered by the leaders of the cluster."""

    def __init__(self, cluster: Cluster, topics: dict[Uuid, TopicInfo]) -> None:
        self._cluster = cluster
        self._topics = topics

    def topic_exists(self, topic_id: Uuid) -> bool:
        return topic_id in self._topics

    async def known_segments(self, partition: TopicIdPartition) -> KnownSegments | None:
        from skylog.tiered.orphans import KnownSegments  # noqa: PLC0415 - not needed for --help
        from skylog.tiered.segments import SegmentState  # noqa: PLC0415

        topic = self._topics[partition.topic_id]
        if partition.partition_index not in topic.partitions:
            return None
        key = TopicPartition(topic.name, partition.partition_index)
        segments = await Admin(self._cluster).tiered.segments(topic, partition.partition_index)
        starts = [
            (await offsets_at(self._cluster, [key], time))[key]
            for time in (EARLIEST, EARLIEST_LOCAL, LATEST)
        ]
        start, local, end = starts
        finished = [
            (one.start_offset, one.end_offset + 1)
            for one in segments
            if one.remote_log_segment_state == SegmentState.COPY_FINISHED
        ]
        return KnownSegments(
            frozenset(one.segment_id for one in segments), start, [*finished, (local, end)]
        )


async def remote_topics(cluster: Cluster) -> list[TopicInfo]:
    return await topics_with(cluster, "remote.storage.enable")


async def topics_with(cluster: Cluster, setting: str) -> list[TopicInfo]:
    """The topics that have this setting switched on."""
    topics = await Admin(cluster).topics.list_all()
    resources = [ConfigResource(ConfigType.TOPIC, topic.name) for topic in topics]
    answers = await Admin(cluster).configs.describe(resources, [setting])
    found = []
    for topic, resource in zip(topics, resources, strict=True):
        entries = answers[resource]
        if isinstance(entries, KafkaError):
            raise entries
        if any(is_true(entry.value) for entry in entries):
            found.append(topic)
    return found
