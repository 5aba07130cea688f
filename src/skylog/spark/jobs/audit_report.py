"""Pure: an audit as an HTML page and as a JSON document."""

from __future__ import annotations

from itertools import islice
from typing import Any, Final

from skylog.spark.jobs.audit import Audit
from skylog.spark.jobs.audit_check import repair_plan
from skylog.spark.jobs.audit_found import FINDINGS_KEPT, Kind, Tally
from skylog.spark.jobs.page import (
    Series,
    bars,
    page,
    paragraph,
    section,
    size_text,
    table,
    tiles,
)

# The number of rows on a page; the JSON document has more.
_SHOWN: Final = 500
_TOPICS_SHOWN: Final = 40


def document(audit: Audit, at: str) -> dict[str, Any]:
    """``at``: the time of the audit."""
    return {
        "version": 1,
        "at": at,
        "storage": audit.storage_url,
        "sound": audit.findings.sound,
        "topics": [
            {
                "topic": name,
                "partitions": count,
                "batches": tally.batches,
                "records": tally.records,
                "bytes": tally.bytes,
                "tiered_segments": tally.segments,
            }
            for name, (count, tally) in by_topic(audit).items()
        ],
        "objects": {
            state: {"count": count, "bytes": size}
            for state, (count, size) in sorted(audit.objects.items())
        },
        "counts": {kind.value: audit.findings.counts[kind] for kind in Kind},
        "findings": [finding.as_row() for finding in audit.findings],
        "plan": repair_plan(audit.findings),
    }


def by_topic(audit: Audit) -> dict[str, tuple[int, Tally]]:
    """Partitions and sums by topic, the largest first."""
    found: dict[str, tuple[int, Tally]] = {}
    for (topic, _), tally in audit.checked.tallies.items():
        count, total = found.get(topic, (0, Tally()))
        total.add(tally)
        found[topic] = (count + 1, total)
    return dict(sorted(found.items(), key=lambda item: -item[1][1].bytes))


def html(audit: Audit, at: str) -> str:
    topics = by_topic(audit)
    total = Tally()
    for _, tally in topics.values():
        total.add(tally)
    sections = [
        section("Verdict", *_verdict(audit)),
        section(
            "What was looked at",
            tiles(
                {
                    "topics": f"{len(topics):,}",
                    "records": f"{total.records:,}",
                    "batches": f"{total.batches:,}",
                    "tiered segments": f"{total.segments:,}",
                    "read and checked": size_text(total.bytes),
                    "objects": f"{sum(count for count, _ in audit.objects.values()):,}",
                }
            ),
        ),
        _topics(topics),
        _objects(audit),
    ]
    if audit.findings:
        sections += [_findings(audit), _plan(audit)]
    return page("Audit of diskless topics", f"{audit.storage_url}, {at}", sections)


def _verdict(audit: Audit) -> list[str]:
    if not audit.findings:
        return [paragraph("Sound: every batch is there, whole, and nothing else is.", mood="good")]
    counts = audit.findings.counts
    told = [f"{kind.value}: {counts[kind]:,}" for kind in Kind if kind in counts]
    if audit.findings.sound:
        return [
            paragraph("Sound: every batch is there, and whole.", mood="good"),
            paragraph("Beside them: " + "; ".join(told) + "."),
        ]
    return [paragraph("Damaged: " + "; ".join(told) + ".", mood="bad")]


def _topics(topics: dict[str, tuple[int, Tally]]) -> str:
    shown = list(topics.items())[:_TOPICS_SHOWN]
    rows = [
        (name, count, tally.batches, tally.segments, tally.records, tally.bytes)
        for name, (count, tally) in topics.items()
    ]
    return section(
        "Topics",
        bars(
            "Bytes by topic",
            [name for name, _ in shown],
            [Series("bytes", [tally.bytes for _, (_, tally) in shown])],
            "B",
        ),
        table(
            ["topic", "partitions", "batches", "tiered segments", "records", "bytes"],
            rows[:_SHOWN],
        ),
    )


def _objects(audit: Audit) -> str:
    states = sorted(audit.objects.items())
    return section(
        "Objects in the bucket",
        bars(
            "Bytes by state",
            [state for state, _ in states],
            [Series("bytes", [size for _, (_, size) in states])],
            "B",
        ),
        table(
            ["state", "objects", "bytes"], [(state, count, size) for state, (count, size) in states]
        ),
    )


def _findings(audit: Audit) -> str:
    rows = [
        (
            finding.kind.value,
            f"{finding.topic}-{finding.partition}" if finding.topic else "",
            str(finding.offset) if finding.offset >= 0 else "",
            finding.object_key,
            finding.detail,
        )
        for finding in islice(audit.findings, _SHOWN)
    ]
    more = audit.findings.counts.total() - len(rows)
    return section(
        "Findings",
        table(["what", "partition", "offset", "object", "detail"], rows),
        *(
            [paragraph(f"and {more:,} more; audit.json has up to {FINDINGS_KEPT:,} of a kind")]
            if more > 0
            else []
        ),
    )


def _plan(audit: Audit) -> str:
    steps = [
        (str(step["for"]), "damage" if step["damage"] else "waste", str(step["do"]))
        for step in repair_plan(audit.findings)
    ]
    return section("What to do", table(["for", "is", "do"], steps))
