"""Throughput and latency as numbers. Pure: times are parameters."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

PERCENTILES: Final = (50.0, 95.0, 99.0, 99.9)
_MEGABYTE: Final = 1024 * 1024


def percentile(ascending: Sequence[float], percent: float) -> float:
    """The smallest value that at least this percentage of all values do not exceed."""
    if not ascending:
        return 0.0
    rank = -(-len(ascending) * percent // 100)
    return ascending[max(int(rank) - 1, 0)]


def throughput(records: int, size: int, seconds: float) -> dict[str, Any]:
    """Records and bytes per second, as Kafka's tools count them (1 MB = 2²⁰ bytes)."""
    rate = records / seconds if seconds > 0 else 0.0
    return {
        "records": records,
        "bytes": size,
        "seconds": round(seconds, 3),
        "records_per_second": round(rate, 1),
        "mb_per_second": round(rate * size / max(records, 1) / _MEGABYTE, 3),
    }


def latencies(seconds: Sequence[float]) -> dict[str, float]:
    """Average, percentiles and maximum in milliseconds."""
    ordered = sorted(value * 1000 for value in seconds)
    found = {"average_ms": sum(ordered) / len(ordered) if ordered else 0.0}
    for percent in PERCENTILES:
        found[f"p{percent:g}_ms"] = percentile(ordered, percent)
    found["max_ms"] = ordered[-1] if ordered else 0.0
    return {name: round(value, 3) for name, value in found.items()}
