"""``skylog diskless describe``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from skylog.cli.connect import DISKLESS, call, offsets_at, require_topic, topic_configs
from skylog.cli.errors import CommandError
from skylog.cli.options import Bootstrap, ClientConfig, Json, TopicName
from skylog.cli.output import print_json, print_table, say
from skylog.client.admin import Admin
from skylog.client.cluster import Cluster
from skylog.client.metadata import TopicPartition
from skylog.client.offsets import EARLIEST, EARLIEST_LOCAL, LATEST, LATEST_TIERED
from skylog.kernel.config import is_true

if TYPE_CHECKING:
    from collections.abc import Mapping

REMOTE: Final = "remote.storage.enable"
COPY_DISABLED: Final = "remote.log.copy.disable"
ASSEMBLER: Final = "diskless.tiering.assembler"
SEGMENT_BYTES: Final = "segment.bytes"
SEGMENT_MS: Final = "segment.ms"
_SETTINGS: Final = (DISKLESS, REMOTE, COPY_DISABLED, ASSEMBLER, SEGMENT_BYTES, SEGMENT_MS)
_COLUMNS: Final = {
    "partition": "PARTITION",
    "leader": "LEADER",
    "log_start_offset": "START",
    "wal_start_offset": "WAL START",
    "tiered_end_offset": "TIERED END",
    "end_offset": "END",
    "lag": "LAG",
    "segments": "SEGMENTS",
    "tiered_bytes": "TIERED BYTES",
}


class Offsets(NamedTuple):
    """``tiered`` is the last tiered offset, −1 if there is none."""

    start: int
    wal_start: int
    tiered: int
    end: int


def describe(
    topic: TopicName,
    bootstrap: Bootstrap = None,
    client_config: ClientConfig = None,
    json: Json = False,
) -> None:
    """Show how far the partitions of a diskless topic are consolidated into tiered segments.

    \b
    LEADER      puts segments together, copies them and prunes the WAL
    START       the first offset that can be read
    WAL START   the first offset that is still in a WAL object
    TIERED END  behind the last offset that tiered segments cover without a gap
    END         the first offset that consumers cannot read yet
    LAG         offsets that are in WAL objects only
    """

    async def work(cluster: Cluster) -> tuple[dict[str, str | None], list[dict[str, Any]]]:
        found = await require_topic(cluster, topic)
        values = await topic_configs(cluster, topic, *_SETTINGS)
        if not is_true(values[DISKLESS]):
            raise CommandError(f"{topic} is not diskless; see `skylog topics describe {topic}`")
        keys = [TopicPartition(topic, index) for index in found.partitions]
        times = (EARLIEST, EARLIEST_LOCAL, LATEST_TIERED, LATEST)
        asked = [await offsets_at(cluster, keys, time) for time in times]
        rows = []
        for key in keys:
            segments = (
                await Admin(cluster).tiered.segments(found, key.partition, finished_only=True)
                if is_true(values[REMOTE])
                else []
            )
            row = {
                **row_of(Offsets(*(offsets[key] for offsets in asked))),
                "segments": len(segments),
                "tiered_bytes": sum(one.segment_size_in_bytes for one in segments),
            }
            leader = found.partitions[key.partition].leader
            rows.append({"partition": key.partition, "leader": leader, **row})
        return values, rows

    values, rows = call(work, bootstrap, client_config)
    if json:
        print_json({"topic": topic, "consolidation": consolidation(values), "partitions": rows})
        return
    say(f"{topic}: {told(values)}")
    print_table(_COLUMNS, rows)


def row_of(offsets: Offsets) -> dict[str, int]:
    """What is where of a partition."""
    # Without a tiered segment everything from the start on is in the WAL.
    tiered_end = max(offsets.tiered + 1, offsets.start)
    return {
        "log_start_offset": offsets.start,
        "wal_start_offset": offsets.wal_start,
        "tiered_end_offset": tiered_end,
        "end_offset": offsets.end,
        "lag": max(offsets.end - tiered_end, 0),
    }


def consolidation(values: Mapping[str, str | None]) -> str:
    """``off``, ``broker``, ``external`` or ``stopped``."""
    if values.get(REMOTE) != "true":
        return "off"
    if values.get(COPY_DISABLED) == "true":
        return "stopped"
    return values.get(ASSEMBLER) or "broker"


def told(values: Mapping[str, str | None]) -> str:
    """How a topic is consolidated, in words."""
    how = consolidation(values)
    if how == "off":
        return f"stays in WAL objects; {REMOTE}=true would consolidate it"
    if how == "stopped":
        return f"consolidation stopped by {COPY_DISABLED}=true"
    who = "by its leaders" if how == "broker" else "by `skylog spark segments --commit`"
    return (
        f"consolidated {who} into segments of {SEGMENT_BYTES}={values.get(SEGMENT_BYTES)} or "
        f"{SEGMENT_MS}={values.get(SEGMENT_MS)}"
    )
