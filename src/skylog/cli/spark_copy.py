"""``skylog spark replay`` and ``skylog spark load``."""

from __future__ import annotations

import json as json_text
import secrets
from dataclasses import asdict
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Final

import typer

from skylog.cli.command_tree import examples
from skylog.cli.errors import CommandError, counted
from skylog.cli.options import Bootstrap, ClientConfig, Json, parse_pairs
from skylog.cli.output import print_json, say
from skylog.cli.spark_session import Master, Storage, job_cluster, session
from skylog.cli.times import TIME_FORMS, parse_time
from skylog.kernel.clock import SystemClock

REPLAY_EXAMPLES: Final = examples(
    "skylog spark replay orders orders-copy --run-id copy-1",
    "skylog spark replay orders orders-late --since -2h --where 'value is not null'",
    "skylog spark replay orders orders --to-bootstrap other:9092 --run-id move-1",
)
LOAD_EXAMPLES: Final = examples(
    "skylog spark load orders ./orders.jsonl --key id --run-id import-1",
    "skylog spark load orders './day=*/*.parquet' --key id --value-columns id,price",
    "skylog spark load orders s3://bucket/orders --format csv --key id --timestamp created",
)
STATE_DEFAULT: Final = "./skylog-runs"
RunId = Annotated[
    str | None,
    typer.Option(metavar="ID", help="Names the run: started again with this id it continues."),
]
State = Annotated[
    str, typer.Option("--state", metavar="URL", help="Where the progress of runs is stored.")
]
Codec = Annotated[
    str, typer.Option("--compression", metavar="CODEC", help="none, gzip, snappy, lz4 or zstd.")
]


class Partitions(StrEnum):
    AUTO = "auto"
    KEEP = "keep"
    KEY = "key"


def _run_id(given: str | None) -> str:
    if given is not None:
        return given
    made = secrets.token_hex(4)
    say(f"run {made}: if it is stopped, --run-id {made} continues it")
    return made


def _offsets(text: str | None, option: str) -> dict[int, int] | None:
    if text is None:
        return None
    try:
        found = {int(index): int(offset) for index, offset in json_text.loads(text).items()}
    except (ValueError, TypeError, AttributeError):
        found = {-1: -1}
    if any(index < 0 or offset < 0 for index, offset in found.items()):
        raise CommandError(f'{option} is {text!r}; expected e.g. {{"0": 1200, "1": 900}}')
    return found


def _time(text: str | None, option: str) -> int | None:
    try:
        return None if text is None else parse_time(text, SystemClock().now_ms())
    except ValueError as error:
        raise CommandError(f"{option}: {error}") from None


Where = Annotated[
    str | None,
    typer.Option(
        metavar="SQL",
        help="Only records that match: Spark SQL over key, value, headers,"
        " timestamp, partition, offset.",
    ),
]
StartOffsets = Annotated[
    str | None,
    typer.Option(metavar="JSON", help='Start at these offsets: {"PARTITION": OFFSET, …}.'),
]
EndOffsets = Annotated[str | None, typer.Option(metavar="JSON", help="End before these offsets.")]
Since = Annotated[
    str | None, typer.Option(metavar="TIME", help=f"Only records from this time on: {TIME_FORMS}.")
]
ChosenPartitions = Annotated[
    Partitions,
    typer.Option(
        help="The same partition, by the key, or auto: the same if the numbers of "
        "partitions are equal."
    ),
]
ToBootstrap = Annotated[
    str | None,
    typer.Option(metavar="HOST:PORT,…", help="The target cluster, if it is another one."),
]
ToClientConfig = Annotated[
    Path | None, typer.Option(metavar="FILE", help="Client settings for the target cluster.")
]
ToStorage = Annotated[
    list[str] | None,
    typer.Option(metavar="NAME=VALUE", help="As --storage, for the target cluster."),
]
Until = Annotated[str | None, typer.Option(metavar="TIME", help="Only records before this time.")]


def replay(
    topic: Annotated[str, typer.Argument(metavar="FROM", help="The topic to read.")],
    to: Annotated[str, typer.Argument(metavar="TO", help="The topic to write; it must exist.")],
    run_id: RunId = None,
    state: State = STATE_DEFAULT,
    since: Since = None,
    until: Until = None,
    where: Where = None,
    start_offsets: StartOffsets = None,
    end_offsets: EndOffsets = None,
    partitions: ChosenPartitions = Partitions.AUTO,
    compression: Codec = "none",
    chunk_records: Annotated[int, typer.Option(min=1, help="Records per step.")] = 1_000_000,
    bootstrap: Bootstrap = None,
    client_config: ClientConfig = None,
    storage: Storage = None,
    to_bootstrap: ToBootstrap = None,
    to_client_config: ToClientConfig = None,
    to_storage: ToStorage = None,
    master: Master = None,
    json: Json = False,
) -> None:
    """Copy records to another topic, of this cluster or another.

    Keys, values, headers and timestamps are kept. What is copied is fixed when the run begins. To a
    diskless topic each record is written exactly once, even if the run is killed and restarted; to
    a classic topic at least once.
    """
    source = job_cluster(bootstrap, client_config, storage)
    other = to_bootstrap is not None or to_client_config is not None
    target = job_cluster(to_bootstrap, to_client_config, to_storage) if other else source
    times = (_time(since, "--since"), _time(until, "--until"))
    offsets = (
        _offsets(start_offsets, "--start-offsets"),
        _offsets(end_offsets, "--end-offsets"),
    )
    run_id = _run_id(run_id)
    with session("replay", master) as spark:
        from skylog.spark.jobs import replay as job  # noqa: PLC0415 - loads Spark

        selection = job.Selection(*offsets, *times, where)
        done = job.run(
            spark,
            job.ReplayJob(
                source,
                topic,
                target,
                to,
                run_id,
                state,
                selection,
                partitions.value,
                chunk_records,
                compression,
            ),
        )
    if json:
        print_json(asdict(done))
        return
    say(f"{counted(done.rows, 'record')} copied to {to} in {counted(done.chunks, 'chunk')}")
    for partition, count in done.skipped.items():
        say(f"partition {partition}: {counted(count, 'offset')} deleted before they were copied")


Format = Annotated[
    str | None,
    typer.Option(
        "--format", metavar="FORMAT", help="parquet, json, csv or text (default: by file name)."
    ),
]
Value = Annotated[
    str | None,
    typer.Option(
        metavar="COLUMN",
        help="A column or SQL expression (default: the column value, else all as JSON).",
    ),
]
ValueColumns = Annotated[
    str | None, typer.Option(metavar="A,B,…", help="These columns as a JSON object.")
]
Headers = Annotated[
    str | None,
    typer.Option(metavar="COLUMN", help="Headers: a map, or an array of key-value structures."),
]
ReaderOption = Annotated[
    list[str] | None,
    typer.Option(metavar="NAME=VALUE", help="An option of Spark's reader, such as sep=;"),
]
PartitionColumn = Annotated[
    str | None, typer.Option(metavar="COLUMN", help="Partition (default: by the key).")
]


def load(
    topic: Annotated[
        str, typer.Argument(metavar="TOPIC", help="The topic to write; it must exist.")
    ],
    paths: Annotated[
        list[str],
        typer.Argument(metavar="FILE…", help="Files, directories, buckets, or patterns of them."),
    ],
    run_id: RunId = None,
    state: State = STATE_DEFAULT,
    format: Format = None,
    value: Value = None,
    value_columns: ValueColumns = None,
    key: Annotated[str | None, typer.Option(metavar="COLUMN", help="Key.")] = None,
    headers: Headers = None,
    partition: PartitionColumn = None,
    timestamp: Annotated[
        str | None,
        typer.Option(metavar="COLUMN", help="Timestamp, or milliseconds (default: now)."),
    ] = None,
    option: ReaderOption = None,
    compression: Codec = "none",
    bootstrap: Bootstrap = None,
    client_config: ClientConfig = None,
    storage: Storage = None,
    master: Master = None,
    json: Json = False,
) -> None:
    """Load files into a topic: Parquet, JSON lines, CSV with a header, or lines of text.

    To a diskless topic each row is written exactly once, even if the run is killed and restarted;
    to a classic topic at least once. Started again, it loads files that were added since.
    """
    options = parse_pairs(option or (), "--option")
    cluster = job_cluster(bootstrap, client_config, storage)
    run_id = _run_id(run_id)
    names = tuple(filter(None, map(str.strip, (value_columns or "").split(","))))
    with session("load", master) as spark:
        from skylog.spark.jobs import load as job  # noqa: PLC0415 - loads Spark

        mapped = job.Mapped(value, names, key, headers, partition, timestamp)
        done = job.run(
            spark,
            job.LoadJob(
                cluster,
                topic,
                tuple(paths),
                run_id,
                state,
                format,
                mapped,
                options,
                compression,
            ),
        )
    if json:
        print_json(asdict(done))
        return
    say(f"{counted(done.rows, 'row')} of {counted(done.files, 'file')} loaded into {topic}")
