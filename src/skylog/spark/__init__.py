"""Topics as DataFrames: ``spark.read.format("skylog")`` after ``register(spark)``."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from skylog.spark.explanation import Explanation

__all__ = ["explain", "register"]


def register(spark: SparkSession) -> None:
    """Register the format ``skylog`` with a session.

    Not needed if the package is installed for Spark's own Python: Spark then finds it by itself.
    """
    from skylog.spark.source import SkylogSource  # noqa: PLC0415 - needs Spark

    spark.dataSource.register(SkylogSource)


def explain(frame: DataFrame) -> Explanation:
    """How many bytes of which topics a batch DataFrame reads; also as ``skylog.explain``."""
    from skylog.spark.explanation import explain as explained  # noqa: PLC0415 - needs Spark

    return explained(frame)
