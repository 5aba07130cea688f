"""Pure: the results of an audit, in bounded memory however much is damaged."""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from enum import Enum
from hashlib import blake2b
from heapq import merge
from typing import Final

from skylog.client.bulk import BatchLocation, Split

# The number of findings kept of each kind; the others are only counted.
FINDINGS_KEPT: Final = 10_000
_HASH_BYTES: Final = 8


class Kind(Enum):
    """``value``: its name in the report."""

    MISSING = "object missing"
    CORRUPT = "bytes damaged"
    HEADER = "header and coordinates differ"
    GAP = "offsets not dense"
    SIZE = "object of another size"
    SEGMENT = "tiered segment damaged"
    DANGLING = "file without object"
    UNREFERENCED = "file without batches"
    ORPHAN = "object unknown to coordinators"


# These only waste space, and brokers remove them; the others are damage.
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
    """What was checked of one partition."""

    batches: int = 0
    records: int = 0
    bytes: int = 0
    segments: int = 0  # tiered ones

    def add(self, other: Tally) -> None:
        self.batches += other.batches
        self.records += other.records
        self.bytes += other.bytes
        self.segments += other.segments


@dataclass(slots=True)
class Findings:
    """The first findings of each kind, and their number."""

    counts: Counter[Kind] = field(default_factory=Counter)
    _kept: dict[Kind, list[Finding]] = field(default_factory=dict)

    def add(self, found: Iterable[Finding]) -> None:
        for finding in found:
            self.counts[finding.kind] += 1
            self._keep(finding)

    def merge(self, other: Findings) -> None:
        self.counts.update(other.counts)
        for finding in other:
            self._keep(finding)

    def _keep(self, finding: Finding) -> None:
        kept = self._kept.setdefault(finding.kind, [])
        if len(kept) < FINDINGS_KEPT:
            kept.append(finding)

    def __iter__(self) -> Iterator[Finding]:
        """Those that are kept, by kind, damage first."""
        for kind in Kind:
            yield from self._kept.get(kind, ())

    def __bool__(self) -> bool:
        return bool(self.counts)

    @property
    def sound(self) -> bool:
        """Whether nothing is damaged; wasted space does not count."""
        return self.counts.keys() <= HARMLESS


class Keys:
    """Hashes of object keys, eight bytes each: a bucket may have millions.

    A collision can only hide that one of the two has no batches.
    """

    def __init__(self, hashes: array[int] | None = None) -> None:
        self._sorted: array[int] = array("Q") if hashes is None else hashes

    def add(self, keys: Iterable[str]) -> None:
        self.merge(Keys(array("Q", sorted({_hash(key) for key in keys}))))

    def merge(self, other: Keys) -> None:
        merged = array("Q")
        last = -1
        for one in merge(self._sorted, other._sorted):
            if one != last:
                merged.append(one)
            last = one
        self._sorted = merged

    def __contains__(self, key: str) -> bool:
        wanted = _hash(key)
        at = bisect_left(self._sorted, wanted)
        return at < len(self._sorted) and self._sorted[at] == wanted

    def __len__(self) -> int:
        return len(self._sorted)


def _hash(key: str) -> int:
    return int.from_bytes(blake2b(key.encode(), digest_size=_HASH_BYTES).digest(), "big")


@dataclass(slots=True)
class Checked:
    """What tasks checked and found. ``objects`` are those with batches."""

    tallies: dict[tuple[str, int], Tally] = field(default_factory=dict)
    objects: Keys = field(default_factory=Keys)
    findings: Findings = field(default_factory=Findings)

    def merge(self, other: Checked) -> Checked:
        for partition, tally in other.tallies.items():
            self.tallies.setdefault(partition, Tally()).add(tally)
        self.objects.merge(other.objects)
        self.findings.merge(other.findings)
        return self

    def count(self, split: Split, locations: Sequence[BatchLocation]) -> None:
        tally = self.tallies.setdefault((split.topic, split.partition), Tally())
        tally.batches += len(locations)
        tally.records += sum(one.last_offset - one.base_offset + 1 for one in locations)
        tally.bytes += sum(one.byte_size for one in locations)
        self.objects.add(one.object_key for one in locations)

    def count_segment(self, topic: str, partition: int, records: int, size: int) -> None:
        """A tiered one; how many batches it has is not known."""
        tally = self.tallies.setdefault((topic, partition), Tally())
        tally.records += records
        tally.bytes += size
        tally.segments += 1
