"""A write whose tasks fail, are retried, run twice. Arguments are servers, topic, directory.

Task 0 fails after it has staged its rows, and is retried. Task 1 stages its rows twice, as under
speculative execution: only one of the two reports its result.
"""

from __future__ import annotations

import itertools
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pyspark import TaskContext
from pyspark.sql import SparkSession
from pyspark.sql.types import StructType

from skylog.spark.sink import BatchWriter, SinkMessage
from skylog.spark.source import SkylogSource
from skylog.spark.write_options import parse_write


class UnluckyWriter(BatchWriter):
    def write(self, iterator: Iterator[Any]) -> SinkMessage:
        first, second = itertools.tee(iterator)
        message = super().write(first)
        task = TaskContext.get()
        if task.partitionId() == 0 and task.attemptNumber() == 0:
            raise RuntimeError("the task fails once")
        if task.partitionId() == 1:
            message = super().write(second)
        return message


class UnluckySource(SkylogSource):
    @classmethod
    def name(cls) -> str:
        return "unlucky"

    def writer(self, schema: StructType, overwrite: bool) -> BatchWriter:
        return UnluckyWriter(schema, parse_write(self.options, streaming=False))


def main() -> None:
    bootstrap, topic, directory = sys.argv[1:]
    os.environ["PYSPARK_PYTHON"] = sys.executable
    spark = (
        SparkSession.builder.master("local[2,2]")  # two attempts
        .config("spark.driver.memory", "512m")
        .config("spark.ui.enabled", "false")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        # It lives for seconds: full JIT compilation is not worth it.
        .config("spark.driver.extraJavaOptions", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")
        .config("spark.local.dir", str(Path(directory) / "local"))
        .config("spark.sql.warehouse.dir", str(Path(directory) / "warehouse"))
        .getOrCreate()
    )
    spark.dataSource.register(UnluckySource)
    rows = spark.range(0, 100, 1, 4).selectExpr("cast(id as string) as value")
    options = {"kafka.bootstrap.servers": bootstrap, "topic": topic}
    rows.write.format("unlucky").options(**options).mode("append").save()
    spark.stop()


if __name__ == "__main__":
    main()
