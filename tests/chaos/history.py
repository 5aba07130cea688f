"""What clients saw, and the invariants of it. Pure: no clock, no network.

V numbers name the invariants: V1 nothing acknowledged is lost, V2 one value per offset, V3 dense
offsets, V4 no duplicates of an idempotent producer, V5 order per producer, V6 nothing that was
aborted or refused is seen, V7 a reader neither skips nor repeats offsets, V14 groups keep their
offsets.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

# One partition of a topic.
Place = tuple[str, int]
# Offset and value, in the order in which they were read.
Seen = Sequence[tuple[int, bytes]]


@dataclass
class History:
    """Written by one thread for each list, read when all have ended."""

    # (producer, place) → how many were sent; all with numbers 0, 1, 2, …
    sent: Counter[tuple[str, Place]] = field(default_factory=Counter)
    # (producer, place) → number → offset that the producer was told (-1: not told).
    acked: dict[tuple[str, Place], dict[int, int]] = field(
        default_factory=lambda: defaultdict(dict)
    )
    # Readers that follow the log from its beginning during the run: reader → place → what it saw.
    followed: dict[str, dict[Place, list[tuple[int, bytes]]]] = field(default_factory=dict)
    # Transaction's value → committed, aborted, unknown.
    outcomes: dict[bytes, str] = field(default_factory=dict)
    # Values that brokers have definitely refused.
    refused: set[tuple[Place, bytes]] = field(default_factory=set)
    # Violations that clients have reported.
    complaints: list[str] = field(default_factory=list)

    def acknowledged(self) -> int:
        return sum(map(len, self.acked.values()))


def value(producer: str, number: int) -> bytes:
    return f"{producer}:{number}".encode()


def check_log(place: Place, log: Seen, *, dense: bool) -> Iterable[str]:
    """V3, V7 of one reading of a partition from its beginning."""
    previous = -1
    for offset, _ in log:
        if offset <= previous:
            yield f"V7 {place}: offset {offset} after {previous}"
        elif dense and offset != previous + 1:
            yield f"V3 {place}: offset {offset} after {previous}, between them nothing"
        previous = offset


def check_same(place: Place, whole: Seen, other: Seen, who: str) -> Iterable[str]:
    """V2: all readers of an offset get the same value."""
    found = dict(whole)
    for offset, seen in other:
        if found.get(offset) != seen:
            yield f"V2 {place} offset {offset}: {who} saw {seen!r}, now it is {found.get(offset)!r}"


def check_producers(history: History, place: Place, whole: Seen) -> Iterable[str]:
    """V1, V4, V5: each number of a producer is there once, in order, at the acknowledged offset."""
    numbers: dict[str, list[int]] = defaultdict(list)
    offsets: dict[bytes, int] = {}
    for offset, seen in whole:
        name, _, number = seen.decode().rpartition(":")
        numbers[name].append(int(number))
        offsets.setdefault(seen, offset)
    for (producer, where), acked in history.acked.items():
        if where != place:
            continue
        got = numbers[producer]
        lost = sorted(set(acked) - set(got))
        if lost:
            told = [acked[number] for number in lost[:5]]
            yield f"V1 {place} {producer}: {len(lost)} lost, first {lost[:5]} told at {told}"
        twice = [number for number, count in Counter(got).items() if count > 1]
        if twice:
            yield f"V4 {place} {producer}: {len(twice)} twice, first {twice[:5]}"
        if sorted(set(got)) != list(dict.fromkeys(got)):
            yield f"V5 {place} {producer}: not in the order in which they were sent"
        for number, told_offset in acked.items():
            at = offsets.get(value(producer, number))
            if told_offset >= 0 and at is not None and at != told_offset:
                yield f"V2 {place} {producer}:{number} told at {told_offset}, is at {at}"
                break


def check_refused(history: History, place: Place, whole: Seen) -> Iterable[str]:
    """V6: what was definitely refused is not there."""
    for offset, seen in whole:
        if (place, seen) in history.refused:
            yield f"V6 {place} offset {offset}: {seen[-20:]!r} was refused and is there"


def check_transactions(
    outcomes: Mapping[bytes, str], logs: Mapping[Place, Seen], topic: str
) -> Iterable[str]:
    """V1, V4, V6: in every partition or in none; committed ones once, aborted ones never."""
    places = [place for place in logs if place[0] == topic]
    where: dict[bytes, Counter[Place]] = defaultdict(Counter)
    for place in places:
        for _, seen in logs[place]:
            if seen.startswith(b"txn-"):
                where[seen][place] += 1
    for seen in where.keys() - outcomes.keys():
        yield f"V6 {seen!r} was never sent"
    for name, outcome in outcomes.items():
        found = where.get(name, Counter())
        if any(count > 1 for count in found.values()):
            yield f"V4 transaction {name!r} twice: {dict(found)}"
        if found and len(found) != len(places):
            yield f"V1 transaction {name!r} ({outcome}) is half there: {sorted(found)}"
        if outcome == "committed" and not found:
            yield f"V1 transaction {name!r} was committed and is lost"
        if outcome == "aborted" and found:
            yield f"V6 transaction {name!r} was aborted and is there"


@dataclass
class Commits:
    """A group's committed offsets: at least the confirmed ones, at most the attempted ones."""

    certain: dict[Place, int] = field(default_factory=dict)
    attempted: dict[Place, int] = field(default_factory=dict)
    complaints: list[str] = field(default_factory=list)

    def attempt(self, place: Place, offset: int) -> None:
        self.attempted[place] = max(self.attempted.get(place, 0), offset)

    def success(self, place: Place, offset: int) -> None:
        self.certain[place] = max(self.certain.get(place, 0), offset)

    def begin(self, place: Place, offset: int, floor: int, who: str) -> None:
        """V14: a member resumes at the group's offset; ``floor`` was committed when it was
        assigned."""
        most = self.attempted.get(place, 0)
        if not floor <= offset <= most:
            self.complaints.append(
                f"V14 {place}: {who} begins at {offset}, committed were {floor} to {most}"
            )
