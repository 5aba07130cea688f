"""The offsets that a query or a micro-batch reads, and what was lost. Pure.

Losses are sentences; ``failOnDataLoss`` decides whether they fail the query or are only logged.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from skylog.client.metadata import TopicPartition
from skylog.client.offsets import EARLIEST, LATEST
from skylog.kernel.errors import ConfigError
from skylog.spark.positions import (
    AtOffsets,
    AtTime,
    AtTimes,
    Everywhere,
    Offsets,
    Position,
    name_all,
)


class Log(NamedTuple):
    """The contents of a partition: offsets from ``earliest`` to ``latest`` (exclusive)."""

    earliest: int
    latest: int


class Range(NamedTuple):
    """Offsets of a partition from ``start`` to ``end`` (exclusive)."""

    partition: TopicPartition
    start: int
    end: int


@dataclass(slots=True)
class Ranges:
    """What to read, and what should have been read but is gone."""

    ranges: list[Range] = field(default_factory=list)
    losses: list[str] = field(default_factory=list)

    def add(self, partition: TopicPartition, start: int, end: int, log: Log) -> None:
        """Add what exists of a range."""
        if start < log.earliest:
            self.losses.append(
                f"offsets {start} to {min(end, log.earliest) - 1} of {partition} are gone: it"
                f" begins at {log.earliest}"
            )
        if end > log.latest:
            self.losses.append(
                f"offsets up to {end - 1} of {partition} are asked for, but it ends before"
                f" {log.latest}"
            )
        start, end = max(start, log.earliest), min(end, log.latest)
        if start < end:
            self.ranges.append(Range(partition, start, end))


def times_asked(
    position: Position, partitions: Collection[TopicPartition], side: str
) -> dict[TopicPartition, int]:
    """The times whose offsets must be known before ``resolve``."""
    match position:
        case AtTime(timestamp):
            return dict.fromkeys(partitions, timestamp)
        case AtTimes(timestamps):
            _check_all_named(timestamps, partitions, f"{side}OffsetsByTimestamp")
            return dict(timestamps)
        case _:
            return {}


def resolve_start(
    position: Position,
    logs: Mapping[TopicPartition, Log],
    at_times: Mapping[TopicPartition, int],
    *,
    latest_if_no_match: bool,
) -> Offsets:
    """Where each partition begins; ``at_times`` answers ``times_asked``, −1 for no record."""
    for key, offset in at_times.items():
        if offset < 0 and not latest_if_no_match:
            raise ConfigError(
                f"no record of {key} is at or after the starting time; allow it with"
                " startingOffsetsByTimestampStrategy=latest"
            )
    return _resolve(position, logs, at_times, "startingOffsets")


def resolve_end(
    position: Position, logs: Mapping[TopicPartition, Log], at_times: Mapping[TopicPartition, int]
) -> Offsets:
    """Where each partition ends: at its latest offset if no record is as late."""
    return _resolve(position, logs, at_times, "endingOffsets")


def _resolve(
    position: Position,
    logs: Mapping[TopicPartition, Log],
    at_times: Mapping[TopicPartition, int],
    option: str,
) -> Offsets:
    match position:
        case Everywhere(offset):
            wanted = dict.fromkeys(logs, offset)
        case AtOffsets(offsets):
            _check_all_named(offsets, logs, option)
            wanted = dict(offsets)
        case _:
            wanted = dict(at_times)
    found = {}
    for key, offset in wanted.items():
        log = logs[key]
        found[key] = {EARLIEST: log.earliest, LATEST: log.latest}.get(offset, offset)
    return found


def _check_all_named(
    named: Collection[TopicPartition], partitions: Collection[TopicPartition], option: str
) -> None:
    strange, missing = set(named) - set(partitions), set(partitions) - set(named)
    if not strange and not missing:
        return
    faults = []
    if missing:
        faults.append(f"does not name {name_all(missing)}")
    if strange:
        faults.append(f"names {name_all(strange)}, which is not among what is read")
    raise ConfigError(
        f"option {option} {' and '.join(faults)}; it must name every partition"
        + (" (-2 is earliest, -1 latest)" if option.endswith("Offsets") else "")
    )


def batch_ranges(
    start: Offsets, end: Offsets, logs: Mapping[TopicPartition, Log], *, by_time: bool
) -> Ranges:
    """The ranges of a batch query. An end time before the start time gives an empty range."""
    found = Ranges()
    for key in sorted(start):
        if start[key] > end[key] and not by_time:
            raise ConfigError(
                f"the starting offset {start[key]} of {key} is above its ending offset {end[key]}"
            )
        if start[key] < end[key]:
            found.add(key, start[key], end[key], logs[key])
    return found


def stream_ranges(
    start: Offsets, end: Offsets, logs: Mapping[TopicPartition, Log], *, is_first: bool
) -> Ranges:
    """The ranges of a micro-batch; ``logs`` has the partitions of ``end`` that still exist.

    The first micro-batch of a query may be repeated after a restart. Its start is then determined
    again, and may have partitions and offsets that its end, fixed in the checkpoint, does not.
    """
    found = Ranges(losses=[] if is_first else changes_of_partitions(start, end))
    for key in sorted(end):
        log = logs.get(key)
        if log is None:
            found.losses.append(f"{key} is deleted")
            continue
        begin = start.get(key)
        if begin is None:
            begin = log.earliest
            if begin > 0:
                found.losses.append(f"{key} is new but begins at {begin} instead of 0")
        if begin > end[key] and not is_first:
            begin = log.earliest  # a new log, not the one that was read
        if begin < end[key]:
            found.add(key, begin, end[key], log)
    return found


def changes_of_partitions(start: Offsets, end: Offsets) -> list[str]:
    """What was read before and no longer exists."""
    losses = []
    deleted = start.keys() - end.keys()
    if deleted:
        verb = "are" if len(deleted) > 1 else "is"
        losses.append(f"{name_all(deleted)} {verb} deleted, or no longer subscribed to")
    losses += [
        f"{key} ends at {end[key]}, before {start[key]} up to which it is already read; it was"
        " deleted and created again, or its end was lost"
        for key in sorted(start.keys() & end.keys())
        if start[key] > end[key]
    ]
    return losses
