"""``skylog spark table``."""

from __future__ import annotations

from dataclasses import asdict
from enum import StrEnum
from typing import Annotated, Final

import typer

from skylog.cli.command_tree import examples
from skylog.cli.errors import counted
from skylog.cli.options import Bootstrap, ClientConfig, Json, parse_pairs
from skylog.cli.output import print_json, say
from skylog.cli.spark_session import Master, Storage, job_cluster, session

EXAMPLES: Final = examples(
    "skylog spark table orders --to ./tables",
    "skylog spark table orders --to ./tables --values json --schema 'id bigint, price double'",
    "skylog spark table orders --to ./tables --values avro --schemas http://registry:8081",
    "skylog spark table orders --to s3://bucket/tables --as parquet",
    "skylog spark table orders --table shop.orders --catalog production",
)


class Form(StrEnum):
    ICEBERG = "iceberg"
    PARQUET = "parquet"


class Values(StrEnum):
    RAW = "raw"
    JSON = "json"
    AVRO = "avro"


class Start(StrEnum):
    EARLIEST = "earliest"
    LATEST = "latest"


Name = Annotated[
    str | None,
    typer.Option(
        "--table", metavar="NAME", help="Table name, [NAMESPACE.]NAME (default: the topic's)."
    ),
]
Schema = Annotated[
    str | None,
    typer.Option(
        metavar="TEXT|FILE",
        help="Columns in Spark's notation, or one Avro schema. For JSON, inferred from the "
        "data by default.",
    ),
]
Schemas = Annotated[
    str | None,
    typer.Option(
        metavar="DIR|URL",
        help="Avro schemas by the id before each value (Confluent): NUMBER.avsc files,"
        " or a schema registry.",
    ),
]
CatalogName = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help="A catalogue of PyIceberg's configuration (default: a file beside the data).",
    ),
]
CatalogOption = Annotated[
    list[str] | None,
    typer.Option(metavar="NAME=VALUE", help="A property of the catalogue; repeatable."),
]
AcceptNewTopic = Annotated[
    bool,
    typer.Option(
        "--accept-new-topic", help="Continue although the topic was deleted and created again."
    ),
]


def table(
    topic: Annotated[str, typer.Argument(metavar="TOPIC")],
    to: Annotated[
        str | None,
        typer.Option("--to", metavar="URL", help="A directory, or a bucket, for the tables."),
    ] = None,
    form: Annotated[Form, typer.Option("--as", help="Table format.")] = Form.ICEBERG,
    name: Name = None,
    values: Annotated[Values, typer.Option(help="Format of the values.")] = Values.RAW,
    schema: Schema = None,
    schemas: Schemas = None,
    start: Annotated[Start, typer.Option(help="Where a new table starts.")] = Start.EARLIEST,
    chunk_records: Annotated[int, typer.Option(min=1, help="Records per commit.")] = 1_000_000,
    catalog: CatalogName = None,
    catalog_option: CatalogOption = None,
    accept_new_topic: AcceptNewTopic = False,
    bootstrap: Bootstrap = None,
    client_config: ClientConfig = None,
    storage: Storage = None,
    master: Master = None,
    json: Json = False,
) -> None:
    """Copy a topic to an Iceberg table or Parquet files.

    A second run adds new records. Records that cannot be decoded go to the table NAME_bad, with the
    reason. Every record is written exactly once, even if the job is killed.
    """
    properties = parse_pairs(catalog_option or (), "--catalog-option")
    cluster = job_cluster(bootstrap, client_config, storage)
    with session("table", master) as spark:
        from skylog.spark.jobs.table import job  # noqa: PLC0415 - loads Spark
        from skylog.spark.jobs.table.iceberg import CatalogOptions  # noqa: PLC0415

        done = job.run(
            spark,
            job.TableJob(
                cluster,
                topic,
                to,
                form=form.value,
                table=name,
                values=values.value,
                schema=schema,
                schemas=schemas,
                catalog=CatalogOptions(catalog, properties),
                chunk_records=chunk_records,
                from_latest=start is Start.LATEST,
                accept_new_topic=accept_new_topic,
            ),
        )
    if json:
        print_json(asdict(done))
        return
    say(
        f"{counted(done.good_rows, 'row')} added to {done.table} in {counted(done.chunks, 'chunk')}"
    )
    if done.bad_rows:
        say(f"{counted(done.bad_rows, 'row')} could not be decoded: see {done.table}_bad")
    for partition, count in done.skipped.items():
        say(f"partition {partition}: {counted(count, 'offset')} deleted before they were read")
