"""What a DataFrame would read: the totals of the plan that Spark has made for it."""

from __future__ import annotations

import pickle  # Spark's own message, written by our data source a moment ago
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from skylog.client.bulk import Split
from skylog.spark.planning import TaskPartition

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_UNITS: Final = ("B", "KiB", "MiB", "GiB", "TiB", "PiB")


@dataclass(frozen=True, slots=True)
class TopicReads:
    """What is read of one topic."""

    topic: str
    partitions: int
    offsets: int
    planned_bytes: int
    skipped_bytes: int
    is_diskless: bool


@dataclass(frozen=True, slots=True)
class Explanation:
    """What all scans of a DataFrame read together."""

    topics: tuple[TopicReads, ...]
    tasks: int

    @property
    def planned_bytes(self) -> int:
        return sum(topic.planned_bytes for topic in self.topics)

    @property
    def skipped_bytes(self) -> int:
        return sum(topic.skipped_bytes for topic in self.topics)

    def __str__(self) -> str:
        planned, skipped = _size(self.planned_bytes), _size(self.skipped_bytes)
        lines = [f"{planned} planned in {self.tasks} tasks, {skipped} skipped"]
        for topic in self.topics:
            where = "bucket" if topic.is_diskless else "brokers"
            lines.append(
                f"  {topic.topic}: {_size(topic.planned_bytes)} of {topic.partitions} partitions"
                f" ({topic.offsets} offsets) from {where}, {_size(topic.skipped_bytes)} skipped"
            )
        return "\n".join(lines)


def explain(frame: DataFrame) -> Explanation:
    """Plan a batch DataFrame, filters included, and say how much it reads; nothing is read.

    What filters on the offset exclude is not planned at all and not counted; skipped is what was
    found and excluded by its timestamp.
    """
    if not hasattr(frame, "_jdf"):
        raise ValueError("explain(df) needs a classic session: Spark Connect shows no plan")
    if frame.isStreaming:
        raise ValueError("explain(df) is for batch queries: every micro-batch has its own plan")
    found = list(_partitions_of(frame))
    if not found:
        raise ValueError('the DataFrame does not read with format("skylog")')
    return summarise(found)


def summarise(partitions: Iterable[TaskPartition]) -> Explanation:
    """Add up tasks by topic."""
    splits: list[Split] = []
    skipped: dict[str, int] = {}
    tasks = 0
    for partition in partitions:
        tasks += bool(partition.task.splits)
        splits += partition.task.splits
        for topic, size in partition.skipped_bytes.items():
            skipped[topic] = skipped.get(topic, 0) + size
    reads = []
    for topic in sorted({split.topic for split in splits} | skipped.keys()):
        own = [split for split in splits if split.topic == topic]
        reads.append(
            TopicReads(
                topic,
                len({split.partition for split in own}),
                sum(split.end_offset - split.start_offset for split in own),
                sum(split.bytes for split in own),
                skipped.get(topic, 0),
                any(split.diskless for split in own),
            )
        )
    return Explanation(tuple(reads), tasks)


def _partitions_of(frame: Any) -> Iterable[TaskPartition]:
    """Walks Spark's physical plan down to the scans of Python data sources."""
    leaves = frame._jdf.queryExecution().sparkPlan().collectLeaves()
    for place in range(leaves.size()):
        leaf = leaves.apply(place)
        if leaf.getClass().getSimpleName() != "BatchScanExec":
            continue
        inputs = leaf.inputPartitions()
        for index in range(inputs.size()):
            item = inputs.apply(index)
            if item.getClass().getSimpleName() != "PythonInputPartition":
                continue
            value = pickle.loads(bytes(item.pickedPartition()))  # noqa: S301
            if isinstance(value, TaskPartition):
                yield value


def _size(count: int) -> str:
    size, unit = float(count), 0
    while size >= 1024 and unit < len(_UNITS) - 1:
        size, unit = size / 1024, unit + 1
    return f"{count} B" if unit == 0 else f"{size:.1f} {_UNITS[unit]}"
