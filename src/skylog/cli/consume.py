"""``skylog consume``."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import Annotated

import typer

from skylog.cli.command_tree import examples, new_app
from skylog.cli.connect import call, offsets_at, require_topic
from skylog.cli.errors import CommandError, counted
from skylog.cli.options import Bootstrap, ClientConfig, Json, TopicName
from skylog.cli.output import say
from skylog.cli.record_format import FIELDS, Format, RecordWriter, parse_fields
from skylog.cli.start import Start, parse_start, starting_offsets
from skylog.client.cluster import Cluster
from skylog.client.consumer import Consumer, ConsumerSettings
from skylog.client.fetcher import FetchSettings
from skylog.client.group import GroupSettings
from skylog.client.metadata import TopicPartition
from skylog.client.offsets import LATEST

app = new_app()

POLL_MS = 500
POLL_AT_END_MS = 100
POLL_RECORDS = 1000


FromBeginning = Annotated[
    bool,
    typer.Option("--from-beginning", help="Start at the oldest record."),
]
From = Annotated[
    str | None,
    typer.Option(
        "--from",
        metavar="WHERE",
        help="Where to start (default: the end of the topic): earliest, latest, an offset, "
        "-N for the last N of each "
        "partition, a time such as 2026-07-01T12:00:00Z, an age such as -2h (s, m, h, d), "
        "or @ and milliseconds since 1970.",
    ),
]
Partitions = Annotated[
    list[int] | None,
    typer.Option("--partition", "-p", min=0, help="Only this partition; repeatable."),
]
Group = Annotated[
    str | None,
    typer.Option(
        "--group",
        "-g",
        metavar="GROUP",
        help="Read as a member of a group: continue at its committed offsets, and commit.",
    ),
]
Max = Annotated[
    int | None,
    typer.Option("--max", "--max-messages", "-n", min=1, help="Exit after this many records."),
]
ExitAtEnd = Annotated[
    bool,
    typer.Option("--exit-at-end", "-e", help="Exit once everything that exists now has been read."),
]
CommittedOnly = Annotated[
    bool, typer.Option("--committed-only", help="Skip records of uncommitted transactions.")
]
FormatName = Annotated[Format, typer.Option("--format", help="Text, or one JSON object per line.")]
Print = Annotated[
    str,
    typer.Option("--print", metavar="FIELDS", help=f"Fields to print, of {', '.join(FIELDS)}"),
]
Separator = Annotated[
    str, typer.Option("--separator", metavar="TEXT", help="Separator between printed fields.")
]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print no messages on stderr.")]


@app.command(
    epilog=examples(
        "skylog consume hello --from-beginning",
        "skylog consume hello --from -10 --exit-at-end",
        "skylog consume orders --from 2026-07-01T12:00:00Z --print timestamp,key,value",
        "skylog consume orders --group billing --max 100 --json",
        "skylog consume orders --partition 0 --from 1000 --max 1",
    )
)
def consume(
    topic: TopicName,
    from_beginning: FromBeginning = False,
    from_: From = None,
    partition: Partitions = None,
    group: Group = None,
    max_: Max = None,
    exit_at_end: ExitAtEnd = False,
    committed_only: CommittedOnly = False,
    format_: FormatName = Format.TEXT,
    print_: Print = "value",
    separator: Separator = "\\t",
    quiet: Quiet = False,
    bootstrap: Bootstrap = None,
    client_config: ClientConfig = None,
    json: Json = False,
) -> None:
    """Print the records of a topic as they arrive, until Ctrl-C or a limit.

    On a terminal, control characters in records are shown escaped.
    """
    start = parse_start(from_, from_beginning=from_beginning, group=group)
    writer = RecordWriter(
        Format.JSON if json else format_,
        parse_fields(print_),
        separator.replace("\\t", "\t").encode(),
        escape=sys.stdout.isatty(),
    )
    settings = ConsumerSettings(
        group=GroupSettings(group) if group is not None else None,
        auto_offset_reset="none" if group is None else ("earliest" if from_beginning else "latest"),
        fetch=FetchSettings(wait_ms_max=100 if exit_at_end else 500, committed_only=committed_only),
    )

    async def work(cluster: Cluster) -> None:
        keys = await _partitions(cluster, topic, partition)
        ends = await offsets_at(cluster, keys, LATEST, committed_only) if exit_at_end else None
        async with Consumer(cluster, settings) as consumer:
            await _begin(cluster, consumer, keys, start, subscribe=not partition)
            if sys.stderr.isatty() and not quiet and not exit_at_end:
                say(_waiting(topic, start, group))
            try:
                await _read(consumer, writer, max_, ends)
            finally:
                writer.flush()
                if sys.stderr.isatty() and not quiet:
                    say(f"{counted(writer.count, 'record')} read")

    call(work, bootstrap, client_config)


def _waiting(topic: str, start: Start | None, group: str | None) -> str:
    if group is not None:
        return f"reading {topic} as a member of group {group}; Ctrl-C stops"
    if start is None or start.time == LATEST:
        return f"waiting for new records of {topic} (--from-beginning shows all); Ctrl-C stops"
    return f"reading {topic} and waiting for more; Ctrl-C stops"


async def _partitions(
    cluster: Cluster, topic: str, numbers: Iterable[int] | None
) -> list[TopicPartition]:
    info = await require_topic(cluster, topic)
    for number in numbers or ():
        if number not in info.partitions:
            count = counted(len(info.partitions), "partition")
            raise CommandError(f"topic {topic} has {count}, numbered from 0; there is no {number}")
    return [TopicPartition(topic, number) for number in sorted(set(numbers or info.partitions))]


async def _begin(
    cluster: Cluster,
    consumer: Consumer,
    keys: list[TopicPartition],
    start: Start | None,
    *,
    subscribe: bool,
) -> None:
    """Join the group, or read the partitions from the given start."""
    if start is None and subscribe:
        consumer.subscribe({key.topic for key in keys})
        return
    consumer.assign(keys)
    if start is not None:
        for key, offset in (await starting_offsets(cluster, keys, start)).items():
            consumer.seek(key, offset)


async def _read(
    consumer: Consumer,
    writer: RecordWriter,
    max_: int | None,
    ends: dict[TopicPartition, int] | None,
) -> None:
    """Read until stopped, or until the limit or the ends of all partitions are reached."""
    reached: set[TopicPartition] = set()
    while True:
        limit = POLL_RECORDS if max_ is None else min(POLL_RECORDS, max_ - writer.count)
        records = await consumer.poll(POLL_MS if ends is None else POLL_AT_END_MS, limit)
        for record in records:
            writer.write(record)
            key = TopicPartition(record.topic, record.partition)
            if ends is not None and record.offset >= ends.get(key, 0) - 1:
                reached.add(key)
        writer.flush()
        if max_ is not None and writer.count >= max_:
            return
        if ends is not None:
            if len(records) < limit:  # the last offsets may belong to no record
                reached.update(_at_end(consumer, ends))
            if consumer.assignment and reached.issuperset(consumer.assignment):
                return


def _at_end(consumer: Consumer, ends: dict[TopicPartition, int]) -> list[TopicPartition]:
    """The partitions that have been read to their end."""
    positions = {key: consumer.position(key) for key in consumer.assignment}
    return [
        key
        for key, position in positions.items()
        if position is not None and position >= ends.get(key, 0)
    ]
