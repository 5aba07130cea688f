"""``skylog tiered rebuild``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from skylog.cli.connect import call, offsets_at, require_topic
from skylog.cli.errors import CommandError, counted
from skylog.cli.options import Bootstrap, ClientConfig, DryRun, Json, Yes
from skylog.cli.output import confirm, print_json, print_table, say
from skylog.cli.server import Override
from skylog.cli.tiered_check import topics_with
from skylog.cli.tiered_store import RemoteStoreOptions, ServerConfig, opened_remote
from skylog.client.metadata import TopicInfo, TopicPartition
from skylog.client.offsets import EARLIEST_LOCAL, LATEST
from skylog.client.producer import Producer
from skylog.kernel.ids import ZERO_UUID
from skylog.kernel.settings.tiered import METADATA_TOPIC

if TYPE_CHECKING:
    from skylog.client.cluster import Cluster
    from skylog.tiered.rebuild import RebuiltLogs, RestoredLog
    from skylog.tiered.segments import TopicIdPartition

_COLUMNS: Final = {
    "topic": "TOPIC",
    "topic_id": "TOPIC ID",
    "partition": "PARTITION",
    "segments": "SEGMENTS",
    "first_offset": "FIRST",
    "last_offset": "LAST",
    "bytes": "BYTES",
}


def rebuild(
    url: Annotated[
        str,
        typer.Option("--from", metavar="URL", help="The store, as tiered.storage.url."),
    ],
    server_config: ServerConfig = None,
    override: Override = None,
    bootstrap: Bootstrap = None,
    client_config: ClientConfig = None,
    dry_run: DryRun = False,
    yes: Yes = False,
    json: Json = False,
) -> None:
    """Write __remote_log_metadata anew from the manifests in the store, after its loss.

    Every segment with a manifest becomes readable again. The metadata topic must be empty, and the
    topics must still have their ids: `skylog restore` brings those back. A layout without manifests
    cannot be rebuilt. Of diskless topics, segments that end above the high watermark are left out:
    the records there are others by now, or will be.
    """
    options = RemoteStoreOptions(server_config, override, url)
    rebuilt = call(lambda cluster: _read(cluster, options), bootstrap, client_config)
    rows = _rows(rebuilt)
    if json:
        print_json({"partitions": rows, "unreadable": rebuilt.unreadable})
    else:
        print_table(_COLUMNS, rows)
    above = [f"{one.topic} {one.id} ends above the high watermark" for one in rebuilt.held]
    for text in [*rebuilt.unreadable, *above][:20]:
        say(f"left out: {text}")
    if rebuilt.spare:
        spare = counted(len(rebuilt.spare), "segment")
        say(f"left out: {spare} of records that newer segments, or the WAL, have as well")
    if not rebuilt.count:
        raise CommandError(f"no whole segment in {url}")
    if dry_run:
        say(f"{counted(rebuilt.count, 'segment')} would be written")
        return
    confirm(f"Write the records of {counted(rebuilt.count, 'segment')}?", yes=yes)
    written = call(lambda cluster: _write(cluster, rebuilt), bootstrap, client_config)
    say(f"{counted(written, 'record')} of {counted(rebuilt.count, 'segment')} written")


async def _read(cluster: Cluster, options: RemoteStoreOptions) -> RebuiltLogs:
    from skylog.tiered.rebuild import rebuild_logs  # noqa: PLC0415 - not needed for --help

    logs = await _diskless_logs(cluster)
    async with opened_remote(options) as storage:
        return await rebuild_logs(storage.store, restored=logs.get)


async def _diskless_logs(cluster: Cluster) -> dict[TopicIdPartition, RestoredLog]:
    """What diskless partitions have in their WAL, and where they end."""
    from skylog.tiered.rebuild import RestoredLog  # noqa: PLC0415 - not needed for --help
    from skylog.tiered.segments import TopicIdPartition  # noqa: PLC0415

    topics = await topics_with(cluster, "diskless.enable")
    keys = {
        TopicPartition(topic.name, index): TopicIdPartition(topic.topic_id, index)
        for topic in topics
        for index in topic.partitions
    }
    starts = await offsets_at(cluster, list(keys), EARLIEST_LOCAL)
    ends = await offsets_at(cluster, list(keys), LATEST)
    return {
        found: RestoredLog(starts[key], ends[key], is_there=True) for key, found in keys.items()
    }


def _rows(rebuilt: RebuiltLogs) -> list[dict[str, Any]]:
    return [
        {
            "topic": segments[0].topic,
            "topic_id": str(partition.topic_id),
            "partition": partition.partition_index,
            "segments": len(segments),
            "first_offset": segments[0].start_offset,
            "last_offset": max(segment.end_offset for segment in segments),
            "bytes": sum(segment.size for segment in segments),
        }
        for partition, segments in sorted(rebuilt.segments.items())
    ]


async def _write(cluster: Cluster, rebuilt: RebuiltLogs) -> int:
    from skylog.tiered.rebuild import write_metadata  # noqa: PLC0415 - not needed for --help

    async with Producer(cluster) as producer:
        return await write_metadata(ClientMetadataTopic(cluster, producer), rebuilt)


class ClientMetadataTopic:
    """The metadata topic, written to as a client."""

    def __init__(self, cluster: Cluster, producer: Producer) -> None:
        self._cluster = cluster
        self._producer = producer
        self._topic = TopicInfo(METADATA_TOPIC, ZERO_UUID, internal=False)

    @property
    def partition_count(self) -> int:
        return len(self._topic.partitions)

    async def create(self) -> None:
        """The broker that is asked creates it with its own settings."""
        self._topic = await require_topic(self._cluster, METADATA_TOPIC, allow_create=True)

    async def append(self, partition: int, values: Sequence[bytes]) -> int:
        sent = [
            await self._producer.send(METADATA_TOPIC, value, partition=partition)
            for value in values
        ]
        await self._producer.flush()
        return max([(await one).offset for one in sent])

    async def end_offset(self, partition: int) -> int:
        key = TopicPartition(METADATA_TOPIC, partition)
        return (await offsets_at(self._cluster, [key], LATEST))[key]
