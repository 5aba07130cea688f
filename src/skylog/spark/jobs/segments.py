"""Assembles the batches of a diskless topic into segments of Kafka's format, with their indexes.

Each task assembles one segment; the driver merges the producers' state over all of them, and then
records the segments: ``<topic>-<partition>/segments.json``. A stopped run continues after the last
recorded segment.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from pyspark.sql import SparkSession

from skylog.bulk.decode import CREATE_TIME, EncodedBatch
from skylog.bulk.reader import ReadContext, read_pieces
from skylog.client.bulk import PartitionRange, Split
from skylog.diskless.batch import LOG_APPEND_TIME, BatchCoordinate, Extent, Stamp
from skylog.diskless.reader.patch import serve
from skylog.kernel.errors import ConfigError
from skylog.log.checkpoints import decode_snapshot
from skylog.log.names import SNAPSHOT_SUFFIX, directory_name, file_name
from skylog.log.producers import ProducerEntry
from skylog.spark.jobs.cluster import JobCluster
from skylog.spark.jobs.folder import Folder
from skylog.spark.jobs.work import run_tasks
from skylog.tiered.assembly import Segment, SegmentAssembler, snapshots
from skylog.wire.buffers import Buffer

SEGMENT_BYTES: Final = 128 * 1024 * 1024
MANIFEST: Final = "segments.json"
_VERSION: Final = 1
# Segments between two manifests, for each core.
_ROUNDS: Final = 4


@dataclass(frozen=True, slots=True)
class SegmentsJob:
    """``tail``: include the last batches, although they do not fill a segment."""

    cluster: JobCluster
    topic: str
    to: str
    segment_bytes: int = SEGMENT_BYTES
    tail: bool = False


@dataclass(frozen=True, slots=True)
class Outcome:
    segments: int
    bytes: int
    next_offsets: dict[int, int]


@dataclass(frozen=True, slots=True)
class _Task:
    context: ReadContext
    split: Split
    folder: Folder
    # Of the range, so that a batch which the log's start cuts is taken.
    is_first: bool


def run(spark: SparkSession, job: SegmentsJob) -> Outcome:
    """Assemble what is new since the last run."""
    folder = Folder.of(job.to)
    (topic,) = job.cluster.topics([job.topic])
    written = {index: _Written.read(folder, job.topic, index) for index in topic.partitions}
    ranges = [
        PartitionRange(job.topic, index, known.next_offset) for index, known in written.items()
    ]
    plan = job.cluster.plan(ranges, job.segment_bytes)
    context = job.cluster.context(plan.storage_url)
    tasks = []
    for partition in plan.partitions:
        if not partition.diskless:
            raise ConfigError(
                f"topic {job.topic} is not diskless: its segments are on the brokers' disks"
            )
        splits = list(partition.splits)
        if not job.tail and splits and splits[-1].bytes < job.segment_bytes:
            splits.pop()
        folder_of = written[partition.partition].folder
        tasks += [_Task(context, split, folder_of, split is splits[0]) for split in splits]
    count = size = 0
    step = max(1, spark.sparkContext.defaultParallelism) * _ROUNDS
    for first in range(0, len(tasks), step):
        part = tasks[first : first + step]
        for task, segment in zip(part, run_tasks(spark, job.topic, part, _assemble), strict=True):
            if segment is not None:
                written[task.split.partition].add(segment)
                count, size = count + 1, size + segment.size
        for known in written.values():
            known.write()
    return Outcome(count, size, {index: known.next_offset for index, known in written.items()})


def _assemble(task: _Task) -> Segment | None:
    """On an executor: one segment, its log streamed into the folder. None if no batch begins in
    the split."""
    batches = _served(task)
    begun = next(batches, None)
    if begun is None:
        return None
    first, data = begun
    assembler = SegmentAssembler(first)
    with task.folder.writing(file_name(first, ".log")) as log:
        while True:
            assembler.add(data)
            log.write(data)
            following = next(batches, None)
            if following is None:
                return assembler.finish()
            data = following[1]


def _served(task: _Task) -> Iterator[tuple[int, Buffer]]:
    """The batches that begin in the split: those of tiered segments may be cut by its edges."""
    following = -1 if task.is_first else task.split.start_offset
    for piece in read_pieces(task.context, [task.split]):
        for batch in piece.batches:
            if batch.base_offset >= following:
                following = batch.last_offset + 1
                yield batch.base_offset, serve(_coordinate(batch), [memoryview(batch.data)])


def _coordinate(batch: EncodedBatch) -> BatchCoordinate:
    stamped = batch.log_append_timestamp != CREATE_TIME
    return BatchCoordinate(
        batch_id=0,
        extent=Extent(object_key=batch.source, byte_offset=0, byte_size=len(batch.data)),
        stamp=Stamp(
            base_offset=batch.base_offset,
            last_offset=batch.last_offset,
            log_append_timestamp=batch.log_append_timestamp,
            timestamp_type=LOG_APPEND_TIME if stamped else 0,
        ),
    )


class _Written:
    """The segments of a partition in the manifest, and those about to be added."""

    def __init__(self, folder: Folder, segments: list[dict[str, Any]], next_offset: int) -> None:
        self.folder = folder
        self.next_offset = next_offset
        self._segments = segments
        self._new: list[Segment] = []

    @classmethod
    def read(cls, folder: Folder, topic: str, partition: int) -> _Written:
        below = folder.below(directory_name(topic, partition))
        found = below.read_json(MANIFEST)
        if found is None:
            return cls(below, [], -2)
        if not isinstance(found, dict) or found.get("version") != _VERSION:
            raise ConfigError(f"{below.url}/{MANIFEST} is not a manifest of this release")
        return cls(below, list(found["segments"]), int(found["next_offset"]))

    def add(self, segment: Segment) -> None:
        self._new.append(segment)
        self.next_offset = segment.last_offset + 1

    def write(self) -> None:
        if not self._new:
            return
        made = snapshots(self._new, self._producers())
        for segment, snapshot in zip(self._new, made, strict=True):
            for name, content in segment.files(snapshot).items():
                self.folder.write(name, [content])
            self._segments.append(
                {
                    "base_offset": segment.base_offset,
                    "last_offset": segment.last_offset,
                    "bytes": segment.size,
                    "max_timestamp": segment.max_timestamp,
                }
            )
        self._new = []
        self.folder.write_json(
            MANIFEST,
            {
                "version": _VERSION,
                "next_offset": self.next_offset,
                "segments": self._segments,
            },
        )

    def _producers(self) -> Sequence[ProducerEntry]:
        if not self._segments:
            return ()
        last = int(self._segments[-1]["last_offset"])
        data = self.folder.read(file_name(last + 1, SNAPSHOT_SUFFIX))
        return decode_snapshot(data) if data is not None else ()
