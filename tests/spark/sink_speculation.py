"""A write of which Spark starts a second copy of a slow task. Arguments are servers, topic, folder.

It needs executors of their own: Spark never speculates within one process. The first copy of task 0
stages its rows and dawdles until the second one has staged its own.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyspark
from pyspark import TaskContext
from pyspark.sql import SparkSession
from pyspark.sql.types import StructType

from skylog.spark.sink import BatchWriter, SinkMessage
from skylog.spark.source import SkylogSource
from skylog.spark.write_options import parse_write

FOLDER = "SINK_SPECULATION_FOLDER"
SECONDS_MAX = 120.0


class DawdlingWriter(BatchWriter):
    def write(self, iterator: Iterator[Any]) -> SinkMessage:
        message = super().write(iterator)
        task = TaskContext.get()
        if task.partitionId() == 0:
            folder = Path(os.environ[FOLDER])
            (folder / f"copy-{task.attemptNumber()}").touch()
            deadline = time.monotonic() + SECONDS_MAX
            while not (folder / "copy-1").exists():
                if time.monotonic() > deadline:
                    raise RuntimeError("nobody started a second copy of this task")
                time.sleep(0.05)
        return message


class DawdlingSource(SkylogSource):
    @classmethod
    def name(cls) -> str:
        return "dawdling"

    def writer(self, schema: StructType, overwrite: bool) -> BatchWriter:
        return DawdlingWriter(schema, parse_write(self.options, streaming=False))


def main() -> None:
    bootstrap, topic, folder = sys.argv[1:]
    os.environ |= {
        "PYSPARK_PYTHON": sys.executable,
        "SPARK_HOME": str(Path(pyspark.__file__).parent),
        FOLDER: folder,
    }
    spark = (
        SparkSession.builder.master("local-cluster[2,1,512]")
        .config("spark.driver.memory", "512m")
        .config("spark.executor.memory", "512m")
        .config("spark.ui.enabled", "false")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.local.dir", str(Path(folder) / "local"))
        .config("spark.sql.warehouse.dir", str(Path(folder) / "warehouse"))
        .config("spark.executorEnv." + FOLDER, folder)
        .config("spark.speculation", "true")
        .config("spark.speculation.interval", "100ms")
        .config("spark.speculation.quantile", "0.5")
        .config("spark.speculation.multiplier", "1.1")
        .getOrCreate()
    )
    spark.dataSource.register(DawdlingSource)
    rows = spark.range(0, 100, 1, 4).selectExpr("cast(id as string) as value")
    options = {"kafka.bootstrap.servers": bootstrap, "topic": topic}
    rows.write.format("dawdling").options(**options).mode("append").save()
    spark.stop()


if __name__ == "__main__":
    main()
