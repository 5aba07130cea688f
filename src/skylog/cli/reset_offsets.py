"""The target of a reset of a group's offsets, and the resulting offset of each partition."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

import typer

from skylog.cli.connect import offsets_at, require_topic
from skylog.cli.errors import CommandError
from skylog.cli.times import parse_time
from skylog.client.cluster import Cluster
from skylog.client.metadata import TopicPartition
from skylog.client.offsets import EARLIEST, LATEST, fetch_committed
from skylog.kernel.clock import SystemClock

_NAMED = {"earliest": EARLIEST, "latest": LATEST}
OFFSET_MAX = 2**63 - 1


@dataclass(frozen=True, slots=True)
class Target:
    """One of: a time or EARLIEST or LATEST, an offset, a shift, or where the group is."""

    time: int | None = None
    offset: int | None = None
    shift: int | None = None


class Plan(NamedTuple):
    """The planned change of one partition."""

    topic: str
    partition: int
    old_offset: int | None
    new_offset: int


def parse_target(to: str | None, shift: int | None) -> Target:
    """From --to and --shift; a usage error unless exactly one of them is given."""
    if (to is None) == (shift is None):
        raise typer.BadParameter("give either --to or --shift")
    if to is None:
        return Target(shift=shift)
    if to in _NAMED:
        return Target(time=_NAMED[to])
    if to == "current":
        return Target(shift=0)
    if to.isascii() and to.isdigit():
        if int(to) > OFFSET_MAX:
            raise typer.BadParameter(f"{to} is too large for an offset", param_hint="--to")
        return Target(offset=int(to))
    try:
        return Target(time=parse_time(to, SystemClock().now_ms()))
    except ValueError as error:
        raise typer.BadParameter(
            f"{error}; or earliest, latest, current, an offset", param_hint="--to"
        ) from None


def parse_topics(texts: Iterable[str]) -> dict[str, list[int] | None]:
    """``topic`` for all of its partitions, ``topic:0,2`` for some."""
    found: dict[str, list[int] | None] = {}
    for text in texts:
        name, colon, numbers = text.partition(":")
        parts = numbers.split(",") if colon else []
        if not name or not all(part.isascii() and part.isdigit() for part in parts):
            raise typer.BadParameter(f"{text!r} is not TOPIC or TOPIC:0,1", param_hint="--topic")
        found[name] = [int(part) for part in parts] or None
    return found


async def make_plan(
    cluster: Cluster, group: str, wanted: dict[str, list[int] | None] | None, target: Target
) -> list[Plan]:
    """Old and new offsets of the given partitions, or (None) of all that were committed."""
    committed = await fetch_committed(cluster, group)
    keys = sorted(committed) if wanted is None else await _partitions(cluster, wanted)
    if not keys:
        raise CommandError(f"group {group} has no committed offsets; name topics with --topic")
    first = await offsets_at(cluster, keys, EARLIEST)
    end = await offsets_at(cluster, keys, LATEST)
    at_time = {} if target.time is None else await offsets_at(cluster, keys, target.time)
    plan = []
    for key in keys:
        old = committed[key].offset if key in committed else None
        if target.offset is not None:
            new = target.offset
        elif target.shift is not None:
            if old is None:
                raise CommandError(f"group {group} has no committed offset for {key}: use --to")
            new = old + target.shift
        else:
            new = at_time[key] if at_time[key] >= 0 else end[key]
        plan.append(Plan(*key, old, min(max(new, first[key]), end[key])))
    return plan


async def _partitions(
    cluster: Cluster, wanted: dict[str, list[int] | None]
) -> list[TopicPartition]:
    found = []
    for name, numbers in wanted.items():
        topic = await require_topic(cluster, name)
        for number in numbers or topic.partitions:
            if number not in topic.partitions:
                raise CommandError(f"topic {name} has no partition {number}")
            found.append(TopicPartition(name, number))
    return sorted(set(found))
