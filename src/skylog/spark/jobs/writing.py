"""Writes a DataFrame to a topic, as an epoch of a writer: exactly once, if the topic is
diskless."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import DataFrame

from skylog.bulk.encode import TopicTarget
from skylog.bulk.epoch import Manifest, Step
from skylog.bulk.manifest import decode_manifest, encode_manifest
from skylog.bulk.targets import fetch_targets
from skylog.bulk.writer import EpochDriver, WriteContext, Written, write_rows
from skylog.kernel.errors import ConfigError
from skylog.spark.jobs.cluster import JobCluster
from skylog.spark.jobs.errors import SPARK_ERRORS, told
from skylog.spark.jobs.runs import RunFile, check_same
from skylog.spark.write_options import CODECS

_REPORT: Final = "rows long, staged binary"
_ARROW: Final = pa.schema([("rows", pa.int64()), ("staged", pa.binary())])
BeforeStep = Callable[[Step], None]


@dataclass(frozen=True, slots=True)
class TopicWriter:
    """Writes to one topic; ``writer`` is the writer's name for brokers and bucket."""

    cluster: JobCluster
    context: WriteContext
    writer: str
    target: TopicTarget

    @classmethod
    def of(cls, cluster: JobCluster, topic: str, run: str, codec: str) -> TopicWriter:
        """For a run of a job; KafkaError or ConfigError if topic or bucket cannot be written to."""
        if codec not in CODECS:
            raise ConfigError(f"--compression is {codec!r}; allowed are {', '.join(CODECS)}")
        context = WriteContext(cluster.properties, cluster.storage, topic, CODECS[codec])
        target = cluster.run(_target(cluster, topic))
        # A run with the same name that wrote to another topic is another run.
        writer = f"{run}-{target.topic_id}"
        EpochDriver(context, writer).check([topic])
        return cls(cluster, context, writer, target)

    def is_known(self) -> bool:
        """Whether this writer has written before."""
        return EpochDriver(self.context, self.writer).has_written()

    def resume(self, file: RunFile, said: Mapping[str, Any]) -> dict[str, Any] | None:
        """The saved state of a run that has begun; ConfigError if it cannot be continued this
        way."""
        found = file.read()
        if found is None:
            if self.is_known():
                raise ConfigError(
                    f"a run of this id has written to topic {self.target.name}, but {file.url} is"
                    " missing; restore it to continue, or use another --run-id"
                )
            return None
        if found.get("done") == 0 and self.target.diskless and not self.is_known():
            return None
        check_same(found, said, file.url)
        return found

    def write(self, frame: DataFrame, epoch: int, before: BeforeStep) -> int:
        """Write the rows of an epoch, unless they are already there; returns their number."""
        try:
            found = frame.mapInArrow(_Stage(self.context, self.writer, epoch), _REPORT).collect()
        except SPARK_ERRORS as error:
            raise told(error) from None
        written = [
            Written(decode_manifest(bytes(row["staged"]), self.writer, epoch).objects)
            for row in found
        ]
        EpochDriver(self.context, self.writer, before).complete(epoch, written)
        return sum(row["rows"] for row in found)


async def _target(cluster: JobCluster, topic: str) -> TopicTarget:
    return (await fetch_targets(await cluster.cluster(), [topic]))[topic]


@dataclass(frozen=True, slots=True)
class _Stage:
    """Passed to mapInArrow: rows in, staged objects out."""

    context: WriteContext
    writer: str
    epoch: int

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        task = TaskContext.get()
        written = write_rows(self.context, batches, 0 if task is None else task.partitionId())
        staged = encode_manifest(Manifest(self.writer, self.epoch, 0, written.objects))
        yield pa.RecordBatch.from_pylist([{"rows": written.rows, "staged": staged}], _ARROW)
