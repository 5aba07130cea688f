"""Pure: the report on topics as a page with plots and as a JSON document."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

from skylog.objects.metered import BUCKET_PRICES
from skylog.spark.jobs.page import (
    Series,
    bars,
    lines,
    page,
    paragraph,
    section,
    size_text,
    table,
    tiles,
)
from skylog.spark.jobs.report import HOUR_MS, Report, TopicHour, as_rows

# The number of topics with their own colour; the others share one.
_TOPICS_SHOWN: Final = 5
_OTHERS: Final = "others"
_GB: Final = 1e9


@dataclass(frozen=True, slots=True)
class Prices:
    """Dollars: by default list prices of S3 Standard."""

    put: float = BUCKET_PRICES["put"]
    get: float = BUCKET_PRICES["get"]
    gb_month: float = 0.023


@dataclass(slots=True)
class _Sum:
    batches: int = 0
    records: int = 0
    bytes: int = 0
    uploads: float = 0.0
    tiered_bytes: int = 0

    def add(self, row: TopicHour) -> None:
        self.batches += row.batches
        self.records += row.records
        self.bytes += row.bytes
        self.uploads += row.uploads
        self.tiered_bytes += row.tiered_bytes


def document(
    report: Report, at: str, prices: Prices, requests: Mapping[str, float]
) -> dict[str, Any]:
    """``requests``: what the brokers have counted since they started, by operation."""
    return {
        "version": 1,
        "at": at,
        "storage": report.storage_url,
        "prices": {"put": prices.put, "get": prices.get, "gb_month": prices.gb_month},
        "topics": [
            {"topic": name, **_costs(total, prices)} for name, total in _by_topic(report).items()
        ],
        "hours": as_rows(report),
        "requests": dict(requests),
    }


def _by_topic(report: Report) -> dict[str, _Sum]:
    found: dict[str, _Sum] = {}
    for row in report.rows:
        found.setdefault(row.topic, _Sum()).add(row)
    return dict(sorted(found.items(), key=lambda item: -item[1].bytes))


def _costs(total: _Sum, prices: Prices) -> dict[str, Any]:
    return {
        "records": total.records,
        "batches": total.batches,
        "bytes": total.bytes,
        "tiered_bytes": total.tiered_bytes,
        "uploads": round(total.uploads, 1),
        "upload_dollars": round(total.uploads * prices.put, 6),
        "storage_dollars_per_month": round(total.bytes / _GB * prices.gb_month, 6),
    }


def html(report: Report, at: str, prices: Prices, requests: Mapping[str, float]) -> str:
    topics = _by_topic(report)
    total = _Sum()
    for row in report.rows:
        total.add(row)
    hours = _hours(report)
    monthly = total.bytes / _GB * prices.gb_month
    uploads = total.uploads * prices.put
    sections = [
        tiles(
            {
                "topics": f"{len(topics):,}",
                "records": f"{total.records:,}",
                "stored": size_text(total.bytes),
                "tiered": size_text(total.tiered_bytes),
                "objects": f"{sum(count for count, _ in report.objects.values()):,}",
                "storage a month": f"${monthly:,.2f}",
                "uploads so far": f"${uploads:,.4f}",
            }
        ),
        section("Throughput", *_throughput(report, topics, hours)),
        section("Objects", *_objects(report, hours)),
        section("Topics", _topics(topics, prices)),
        section("Requests", *_requests(requests, prices)),
    ]
    return page("Topics by hour", f"{report.storage_url}, {at}", sections)


def _hours(report: Report) -> list[int]:
    """Every hour from the first to the last, including those without records."""
    known = [row.hour_ms for row in report.rows]
    if not known:
        return []
    return list(range(min(known), max(known) + 1, HOUR_MS))


def _label(hour_ms: int) -> str:
    return f"{datetime.fromtimestamp(hour_ms / 1000, UTC):%m-%d %H:00}"


def _throughput(report: Report, topics: Mapping[str, _Sum], hours: list[int]) -> list[str]:
    labels = [_label(hour) for hour in hours]
    seconds = HOUR_MS / 1000
    return [
        bars("Bytes an hour", labels, _series(report, topics, hours, lambda row: row.bytes), "B"),
        lines(
            "Records a second",
            labels,
            _series(report, topics, hours, lambda row: row.records / seconds),
        ),
    ]


def _series(
    report: Report,
    topics: Mapping[str, _Sum],
    hours: list[int],
    value: Callable[[TopicHour], float],
) -> list[Series]:
    shown = list(topics)[:_TOPICS_SHOWN]
    place = {hour: at for at, hour in enumerate(hours)}
    values = {name: [0.0] * len(hours) for name in (*shown, _OTHERS)}
    for row in report.rows:
        name = row.topic if row.topic in shown else _OTHERS
        values[name][place[row.hour_ms]] += value(row)
    if len(topics) <= _TOPICS_SHOWN:
        del values[_OTHERS]
    return [Series(name, held) for name, held in values.items()]


def _objects(report: Report, hours: list[int]) -> list[str]:
    labels = [_label(hour) for hour in hours]
    made = [report.objects.get(hour // HOUR_MS, (0, 0)) for hour in hours]
    return [
        bars("Objects uploaded an hour", labels, [Series("objects", [n for n, _ in made])]),
        lines(
            "Mean size of an object",
            labels,
            [Series("bytes", [size / count if count else 0 for count, size in made])],
            "B",
        ),
    ]


def _topics(topics: Mapping[str, _Sum], prices: Prices) -> str:
    rows = []
    for name, total in topics.items():
        costs = _costs(total, prices)
        rows.append(
            (
                name,
                total.records,
                total.batches,
                total.bytes,
                total.tiered_bytes,
                costs["uploads"],
                costs["upload_dollars"],
                costs["storage_dollars_per_month"],
            )
        )
    columns = ["topic", "records", "batches", "bytes", "tiered bytes", "uploads"]
    return table([*columns, "$ uploads", "$ storage/month"], rows)


def _requests(requests: Mapping[str, float], prices: Prices) -> list[str]:
    if not requests:
        return [
            paragraph(
                "Brokers count the requests they make; give their metrics' addresses to see them"
                " here (--metrics http://broker:port/metrics)."
            )
        ]
    price = {"put": prices.put, "list": prices.put, "get": prices.get, "head": prices.get}
    return [
        paragraph("As counted by the brokers since they started."),
        table(
            ["operation", "requests", "$"],
            [
                (name, int(count), round(count * price.get(name, 0.0), 6))
                for name, count in sorted(requests.items())
            ],
        ),
    ]
