"""The page of metrics is readable, and other pages name existing metrics."""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
# The specification has these names.
GAUGES_WITH_TOTAL = "kafka_controller_diskless_"
UNITS = {"Bytes": "bytes", "Time": "seconds", "Duration": "seconds", "Delay": "seconds"}


class Metric(NamedTuple):
    name: str
    type: str
    labels: str
    help: str


METRICS = [
    Metric(*row)
    for row in re.findall(
        r"^\| `(\w+)` \| (\w+) \| (.*?) \| (.*) \|$",
        (DOCS / "reference" / "metrics.md").read_text(),
        re.MULTILINE,
    )
]


def test_every_metric_has_a_sentence() -> None:
    assert len(METRICS) > 80
    names = [metric.name for metric in METRICS]
    assert len(set(names)) == len(names)
    for metric in METRICS:
        assert re.fullmatch(r"[A-Z1].+ .+\.", metric.help), metric


def test_names_say_what_they_count_and_in_which_unit() -> None:
    for metric in METRICS:
        is_total = metric.name.endswith("_total")
        if not metric.name.startswith(GAUGES_WITH_TOTAL):
            assert is_total == (metric.type == "counter"), metric
        unit = UNITS.get(metric.help.split()[0])
        assert unit is None or unit in metric.name, metric
        assert not re.search(r"_(ms|millis|kb|mb|minutes|percent)(_|$)", metric.name), metric


def test_pages_name_existing_metrics() -> None:
    named = re.compile(r"\b(?:skylog|kafka_server|kafka_controller)_\w+")
    known = {metric.name for metric in METRICS}
    known |= {f"{metric.name}_bucket" for metric in METRICS if metric.type == "histogram"}
    for page in DOCS.glob("*.md"):
        for name in named.findall(page.read_text()):
            is_prefix = name.endswith("_") and any(one.startswith(name) for one in known)
            assert is_prefix or name in known, (page.name, name)
