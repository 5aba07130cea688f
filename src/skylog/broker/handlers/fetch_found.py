"""What one pass of a fetch over its session has found."""

from __future__ import annotations

from dataclasses import dataclass, field

from skylog.broker.handlers.fetch_sessions import Entry
from skylog.diskless.partitions import DisklessPartition
from skylog.replication.partition import Partition
from skylog.wire.messages.fetch_response import PartitionData


@dataclass(slots=True)
class Collected:
    """The answers so far, and how many more bytes may be read."""

    left: int
    answers: dict[Entry, PartitionData] = field(default_factory=dict)
    read_bytes: int = 0
    refused: set[Entry] = field(default_factory=set)
    urgent: bool = False  # an error of a log, or a divergence, is told at once

    def add(self, entry: Entry, answer: PartitionData) -> None:
        self.answers[entry] = answer
        size = len(answer.records or b"")
        self.read_bytes += size
        self.left = max(self.left - size, 0)
        if answer.diverging_epoch.epoch >= 0 or answer.preferred_read_replica >= 0:
            self.urgent = True


@dataclass(slots=True)
class Located:
    """The partitions that are to be read, by kind, each in the session's order."""

    logs: list[tuple[Entry, Partition]] = field(default_factory=list)
    remote: list[tuple[Entry, DisklessPartition]] = field(default_factory=list)
    # Whether the first of all of them is a diskless one.
    remote_first: bool = False


def go_to(entry: Entry, replica: int) -> PartitionData:
    """Nothing to read here: the consumer fetches from a replica that is nearer."""
    return PartitionData(
        entry.index, high_watermark=-1, records=b"", preferred_read_replica=replica
    )
