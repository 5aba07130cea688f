"""Topics as DataFrames: ``spark.read.format("skylog")`` after ``register(spark)``."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def register(spark: SparkSession) -> None:
    """Make the format ``skylog`` known to a session.

    Not needed where the package is installed for Spark's own Python: Spark finds it by itself.
    """
    from skylog.spark.source import SkylogSource  # noqa: PLC0415 - needs Spark

    spark.dataSource.register(SkylogSource)
