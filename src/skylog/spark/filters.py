"""Spark's filters, as bounds on what must be read.

Pure. A bound may let through more than the filter does, never less: every filter is returned to
Spark, which applies it again.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from pyspark.sql.datasource import (
    EqualNullSafe,
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    LessThan,
    LessThanOrEqual,
)

from skylog.spark.ranges import Range

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND: Final = timedelta(microseconds=1)


@dataclass(frozen=True, slots=True)
class Bounds:
    """What can match the filters; None: unbounded. Both ends are inclusive."""

    topics: frozenset[str] | None = None
    partitions: frozenset[int] | None = None
    offset_min: int | None = None
    offset_max: int | None = None
    timestamp_min: int | None = None
    timestamp_max: int | None = None

    def narrow(self, ranges: Iterable[Range]) -> list[Range]:
        """The parts of ranges whose offsets can match."""
        found = []
        for key, start, end in ranges:
            if self.topics is not None and key.topic not in self.topics:
                continue
            if self.partitions is not None and key.partition not in self.partitions:
                continue
            first = start if self.offset_min is None else max(start, self.offset_min)
            after = end if self.offset_max is None else min(end, self.offset_max + 1)
            if first < after:
                found.append(Range(key, first, after))
        return found


def bounds_of(filters: Sequence[Filter], bounds: Bounds | None = None) -> Bounds:
    """The combined bounds of all filters, within given ones."""
    bounds = bounds or Bounds()
    for item in filters:
        bounds = _bound(bounds, item)
    return bounds


def _bound(bounds: Bounds, item: Filter) -> Bounds:
    attribute: tuple[str, ...] = getattr(item, "attribute", ())
    if len(attribute) != 1:
        return bounds
    column = attribute[0].lower()
    if column in ("topic", "partition"):
        return _among(bounds, column + "s", item)
    if column in ("offset", "timestamp"):
        return _between(bounds, column, item)
    return bounds


def _among(bounds: Bounds, field: str, item: Filter) -> Bounds:
    match item:
        case EqualTo(_, value) | EqualNullSafe(_, value):
            values = frozenset({value})
        case In(_, several):
            values = frozenset(several)
        case _:
            return bounds
    known = getattr(bounds, field)
    changes: Any = {field: values if known is None else known & values}
    return replace(bounds, **changes)


def _between(bounds: Bounds, column: str, item: Filter) -> Bounds:
    """A value is a point on a scale of which the column has only whole numbers."""
    match item:
        case EqualTo(_, value) | EqualNullSafe(_, value):
            low, high, is_open = value, value, False
        case In(_, values) if values and None not in values:
            low, high, is_open = min(values), max(values), False
        case GreaterThan(_, value):
            low, high, is_open = value, None, True
        case GreaterThanOrEqual(_, value):
            low, high, is_open = value, None, False
        case LessThan(_, value):
            low, high, is_open = None, value, True
        case LessThanOrEqual(_, value):
            low, high, is_open = None, value, False
        case _:
            return bounds
    least = _whole(low, is_low=True, is_open=is_open)
    most = _whole(high, is_low=False, is_open=is_open)
    changes: Any = {}
    known_min, known_max = getattr(bounds, f"{column}_min"), getattr(bounds, f"{column}_max")
    if least is not None:
        changes[f"{column}_min"] = least if known_min is None else max(known_min, least)
    if most is not None:
        changes[f"{column}_max"] = most if known_max is None else min(known_max, most)
    return replace(bounds, **changes)


def _whole(value: Any, *, is_low: bool, is_open: bool) -> int | None:
    """The first or last whole number (millisecond, offset) that a bound includes."""
    if isinstance(value, datetime):
        if value.tzinfo is None:
            return None
        micros = (value - _EPOCH) // _MICROSECOND
        whole, rest = divmod(micros, 1000)
    elif isinstance(value, int) and not isinstance(value, bool):
        whole, rest = value, 0
    else:
        return None
    if is_low:
        return whole + 1 if rest or is_open else whole
    return whole - 1 if is_open and not rest else whole
