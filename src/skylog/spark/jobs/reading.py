"""Reads a topic for jobs, chunk by chunk."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Final

from pyspark.sql import DataFrame, SparkSession

from skylog.client.metadata import TopicInfo, TopicPartition
from skylog.client.offsets import EARLIEST, LATEST, OffsetAtTime, list_offsets
from skylog.kernel.errors import KafkaError
from skylog.spark.jobs.chunks import Chunk, encode_offsets
from skylog.spark.jobs.cluster import JobCluster
from skylog.spark.ranges import Log
from skylog.spark.source import NAME

# The fields of a record, wherever it is written.
COPIED: Final = ("key", "value", "headers", "timestamp", "partition")


def logs_of(cluster: JobCluster, topic: TopicInfo) -> dict[int, Log]:
    """The current offsets of each partition."""

    async def ask() -> dict[int, Log]:
        connected = await cluster.cluster()
        ends = []
        for time in (EARLIEST, LATEST):
            keys = {TopicPartition(topic.name, index): time for index in topic.partitions}
            ends.append(await list_offsets(connected, keys))
        return {
            key.partition: Log(_offset(key, ends[0][key]), _offset(key, ends[1][key]))
            for key in ends[0]
        }

    return cluster.run(ask())


def _offset(key: TopicPartition, answer: OffsetAtTime | KafkaError) -> int:
    if isinstance(answer, KafkaError):
        raise KafkaError(answer.code, f"{key}: {answer.message}")
    return answer.offset


def chunk_frame(
    spark: SparkSession,
    cluster: JobCluster,
    topic: str,
    chunk: Chunk,
    columns: Sequence[str],
    options: Mapping[str, str],
) -> DataFrame:
    """The records of a chunk. Records that retention deletes meanwhile are omitted."""
    given = {f"kafka.{key}": value for key, value in cluster.properties.items()}
    given |= cluster.storage
    given |= {
        "assign": json.dumps({topic: sorted(chunk.start)}),
        "startingOffsets": json.dumps({topic: encode_offsets(chunk.start)}),
        "endingOffsets": json.dumps({topic: encode_offsets(chunk.end)}),
        "columns": ",".join(columns),
        "failOnDataLoss": "false",
    }
    return spark.read.format(NAME).options(**{**given, **options}).load()


def all_cores(spark: SparkSession) -> dict[str, str]:
    """An option for small chunks: they are divided among all cores."""
    return {"minPartitions": str(spark.sparkContext.defaultParallelism)}
