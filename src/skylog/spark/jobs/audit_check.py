"""Pure: what an audit looks for, and what to do about it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from enum import Enum
from typing import Final

from skylog.bulk.verify import batches_in_object
from skylog.client.bulk import BatchLocation, Split
from skylog.diskless.plane import LOG_APPEND_TIME
from skylog.kernel.errors import KafkaError
from skylog.wire.batch import Batch
from skylog.wire.buffers import Buffer


class Kind(Enum):
    """``value``: how the report calls it."""

    MISSING = "object missing"
    CORRUPT = "bytes damaged"
    HEADER = "header and coordinates differ"
    GAP = "offsets not dense"
    SIZE = "object of another size"
    DANGLING = "file without object"
    UNREFERENCED = "file without batches"
    ORPHAN = "object that nobody knows"


# These waste space, and brokers remove them by themselves; the others are damage.
HARMLESS: Final = frozenset({Kind.ORPHAN, Kind.UNREFERENCED})


@dataclass(frozen=True, slots=True)
class Finding:
    kind: Kind
    detail: str
    topic: str = ""
    partition: int = -1
    offset: int = -1
    object_key: str = ""

    def as_row(self) -> dict[str, object]:
        return {**asdict(self), "kind": self.kind.value}


@dataclass(slots=True)
class Tally:
    """What was looked at of one partition."""

    batches: int = 0
    records: int = 0
    bytes: int = 0

    def add(self, other: Tally) -> None:
        self.batches += other.batches
        self.records += other.records
        self.bytes += other.bytes


@dataclass(slots=True)
class Checked:
    """What a task found. ``objects`` counts the live batches that lie in each object."""

    tallies: dict[tuple[str, int], Tally] = field(default_factory=dict)
    objects: Counter[str] = field(default_factory=Counter)
    findings: list[Finding] = field(default_factory=list)

    def merge(self, other: Checked) -> None:
        for partition, tally in other.tallies.items():
            self.tallies.setdefault(partition, Tally()).add(tally)
        self.objects.update(other.objects)
        self.findings += other.findings

    def count(self, split: Split, locations: Sequence[BatchLocation]) -> None:
        tally = self.tallies.setdefault((split.topic, split.partition), Tally())
        tally.batches += len(locations)
        tally.records += sum(one.last_offset - one.base_offset + 1 for one in locations)
        tally.bytes += sum(one.byte_size for one in locations)
        self.objects.update(one.object_key for one in locations)


def check_offsets(
    split: Split, position: int, locations: Sequence[BatchLocation], next_offset: int
) -> list[Finding]:
    """Whether batches cover the offsets from ``position`` to ``next_offset``, each once."""
    found = []
    expected = position
    for number, location in enumerate(locations):
        begins = location.base_offset
        # The log may start within its first batch.
        if begins != expected and not (number == 0 and begins < expected <= location.last_offset):
            why = f"offsets {expected} to {begins - 1} are nowhere"
            if begins < expected:
                why = f"offset {begins} follows {expected - 1}"
            found.append(_finding(Kind.GAP, split, location, why))
        expected = location.last_offset + 1
    if expected < next_offset:
        found.append(
            Finding(
                Kind.GAP,
                f"offsets {expected} to {next_offset - 1} are nowhere",
                split.topic,
                split.partition,
                expected,
            )
        )
    return found


def check_bytes(split: Split, location: BatchLocation, data: Buffer) -> list[Finding]:
    """Whether bytes are the batches that the coordinates say."""
    try:
        batches = [Batch(one.data) for one in batches_in_object(split, location, data)]
    except KafkaError as error:
        return [_finding(Kind.CORRUPT, split, location, error.message or str(error))]
    found = []
    for batch in batches:
        if batch.record_count != batch.last_offset_delta + 1:
            why = f"{batch.record_count} records for {batch.last_offset_delta + 1} offsets"
            found.append(_finding(Kind.HEADER, split, location, why))
    stamped = location.timestamp_type == LOG_APPEND_TIME
    newest = max(batch.max_timestamp for batch in batches)
    if not stamped and newest != location.max_timestamp:
        why = f"newest record of {newest}, not {location.max_timestamp}"
        found.append(_finding(Kind.HEADER, split, location, why))
    return found


def missing(split: Split, location: BatchLocation, why: str) -> Finding:
    return _finding(Kind.MISSING, split, location, why)


def _finding(kind: Kind, split: Split, location: BatchLocation, detail: str) -> Finding:
    return Finding(
        kind, detail, split.topic, split.partition, location.base_offset, location.object_key
    )


def pack(splits: Iterable[Split], task_bytes: int) -> list[tuple[Split, ...]]:
    """Splits for one task each; none is cut, so that no batch is looked at twice."""
    tasks: list[tuple[Split, ...]] = []
    held: list[Split] = []
    size = 0
    for split in splits:
        if held and size + split.bytes > task_bytes:
            tasks.append(tuple(held))
            held, size = [], 0
        held.append(split)
        size += split.bytes
    return [*tasks, tuple(held)] if held else tasks


_ADVICE: Final = {
    Kind.MISSING: "Bring the objects back from a copy or an older version of the bucket, under the"
    " same keys, and audit again. Until then consumers of these partitions stop at the offsets"
    " named. Where there is no copy the records are lost: move consumers behind them"
    " (skylog groups reset-offsets), or delete the records up to there (kafka-delete-records).",
    Kind.CORRUPT: "As for missing objects: the bytes under a key never change, so an intact copy"
    " from anywhere will do.",
    Kind.HEADER: "Find out who wrote these objects: the coordinator checks them at the commit."
    " Readers go by the coordinates; no record is lost.",
    Kind.GAP: "The coordinator's cache may be damaged: stop its broker, remove its SQLite file"
    " (it is rebuilt from __diskless_metadata), start it and audit again. If the gap stays, restore"
    " the metadata from its backup in the bucket (skylog restore).",
    Kind.SIZE: "Bring the objects back from a copy, as for missing objects.",
    Kind.DANGLING: "As for missing objects: the file has live batches, and its object is gone.",
    Kind.UNREFERENCED: "Nothing to do if they go away by the next audit: batches may have been"
    " deleted while this one ran.",
    Kind.ORPHAN: "Nothing to do: the brokers' next scan deletes them. `skylog diskless orphans`"
    " shows those that are kept after a restore, and --release lets them go.",
}


def repair_plan(findings: Iterable[Finding]) -> list[dict[str, object]]:
    """A step for each kind of finding, damage first, with the objects and offsets concerned."""
    by_kind: dict[Kind, list[Finding]] = {}
    for finding in findings:
        by_kind.setdefault(finding.kind, []).append(finding)
    return [
        {
            "for": kind.value,
            "damage": kind not in HARMLESS,
            "count": len(by_kind[kind]),
            "do": _ADVICE[kind],
            "objects": sorted({one.object_key for one in by_kind[kind] if one.object_key}),
            "offsets": sorted(
                {(one.topic, one.partition, one.offset) for one in by_kind[kind] if one.topic}
            ),
        }
        for kind in Kind
        if kind in by_kind
    ]
