"""What the commands of ``skylog spark`` share."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from skylog.cli.connect import read_properties
from skylog.cli.errors import CommandError
from skylog.cli.options import BOOTSTRAP_DEFAULT, parse_pairs

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from skylog.spark.jobs.cluster import JobCluster

Master = Annotated[
    str | None,
    typer.Option(
        "--master",
        metavar="URL",
        help="Where Spark runs: local[N], spark://…, yarn, k8s://…; default: all cores of "
        "this machine, or what spark-submit says.",
    ),
]
Storage = Annotated[
    list[str] | None,
    typer.Option(
        "--storage",
        metavar="NAME=VALUE",
        help="A setting diskless.storage.* for access to the bucket, if it is not in the "
        "environment; repeatable.",
    ),
]


@contextmanager
def session(job: str, master: str | None) -> Iterator[SparkSession]:
    """A session that ends with the job; CommandError if Spark is not installed."""
    if importlib.util.find_spec("pyspark") is None:
        raise CommandError("this needs Spark: pip install 'skylog[spark]'")
    from skylog.spark.jobs.session import start  # noqa: PLC0415 - loads Spark

    spark = start(job, master)
    try:
        yield spark
    finally:
        spark.stop()


def job_cluster(
    bootstrap: str | None, client_config: Path | None, storage: list[str] | None
) -> JobCluster:
    from skylog.spark.jobs.cluster import JobCluster  # noqa: PLC0415 - loads Arrow

    properties = read_properties(client_config) if client_config is not None else {}
    if bootstrap is not None or "bootstrap.servers" not in properties:
        properties["bootstrap.servers"] = bootstrap or BOOTSTRAP_DEFAULT
    return JobCluster(properties, parse_pairs(storage or (), "--storage"))
