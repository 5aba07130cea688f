"""A driver that a test kills: arguments are kind, servers, topic, input, checkpoint, step, epoch.

It writes a directory of text files, one file per epoch, and kills itself and its JVM with SIGKILL
before a step of an epoch's commit. The step may also be TASK: at the end of a task.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pyspark import TaskContext
from pyspark.sql import SparkSession
from pyspark.sql.types import StructType

from skylog.bulk.epoch import Step
from skylog.bulk.writer import EpochDriver
from skylog.spark.sink import BatchWriter, SinkMessage, StreamWriter
from skylog.spark.source import SkylogSource
from skylog.spark.write_options import parse_write

GROUP, STEP, EPOCH = "SINK_DRIVER_GROUP", "SINK_DRIVER_STEP", "SINK_DRIVER_EPOCH"


def kill_driver() -> None:
    """This runs in a Python process that the driver's JVM started."""
    os.killpg(int(os.environ[GROUP]), signal.SIGKILL)
    os._exit(1)


class DyingDriver(EpochDriver):
    def complete(self, epoch: int, *args: Any, **more: Any) -> Any:
        def before(step: Step) -> None:
            if step.name == os.environ[STEP] and epoch == int(os.environ[EPOCH]):
                kill_driver()

        self._before = before
        return super().complete(epoch, *args, **more)


class DyingBatch(BatchWriter):
    def driver(self, writer: str) -> EpochDriver:
        return DyingDriver(self.context, writer)


class DyingStream(StreamWriter):
    def driver(self, writer: str) -> EpochDriver:
        return DyingDriver(self.context, writer)

    def write(self, iterator: Iterator[Any]) -> SinkMessage:
        message = super().write(iterator)
        epoch = TaskContext.get().getLocalProperty("streaming.sql.batchId")
        if os.environ[STEP] == "TASK" and epoch == os.environ[EPOCH]:
            kill_driver()
        return message


class DyingSource(SkylogSource):
    @classmethod
    def name(cls) -> str:
        return "dying"

    def writer(self, schema: StructType, overwrite: bool) -> BatchWriter:
        return DyingBatch(schema, parse_write(self.options, streaming=False))

    def streamWriter(self, schema: StructType, overwrite: bool) -> StreamWriter:
        return DyingStream(schema, parse_write(self.options, streaming=True))


def main() -> None:
    kind, bootstrap, topic, given, checkpoint, step, epoch = sys.argv[1:]
    os.environ |= {GROUP: str(os.getpgid(0)), STEP: step, EPOCH: epoch}
    os.environ["PYSPARK_PYTHON"] = sys.executable
    spark = (
        SparkSession.builder.master("local[2]")
        .config("spark.ui.enabled", "false")
        .config("spark.driver.memory", "512m")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        # It lives for seconds: full JIT compilation is not worth it.
        .config("spark.driver.extraJavaOptions", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")
        .config("spark.sql.warehouse.dir", str(Path(checkpoint) / "warehouse"))
        .config("spark.local.dir", str(Path(checkpoint) / "local"))
        .getOrCreate()
    )
    spark.dataSource.register(DyingSource)
    options = {"kafka.bootstrap.servers": bootstrap, "topic": topic}
    if kind == "batch":
        rows = spark.read.text(given)
        rows.write.format("dying").options(**options, writeId="once").mode("append").save()
        return
    lines = spark.readStream.option("maxFilesPerTrigger", 1).text(given)
    query = (
        lines.writeStream.format("dying")
        .options(**options, checkpointLocation=checkpoint)
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()


if __name__ == "__main__":
    main()
