"""The parts of dashboard panels: queries and their legends."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

Query = tuple[str, str]


@dataclass(frozen=True)
class Panel:
    """``queries`` are (legend, PromQL); ``$of`` stands for the selected nodes."""

    title: str
    unit: str
    queries: tuple[Query, ...]
    text: str = ""
    width: int = 8


@dataclass(frozen=True)
class Board:
    """``found_by`` is a metric that only the dashboard's nodes have."""

    title: str
    found_by: str
    rows: Mapping[str, tuple[Panel, ...]]


def rate(metric: str, by: str = "", more: str = "") -> str:
    total = f"sum by ({by})" if by else "sum"
    return f"{total} (rate({metric}{{$of{more}}}[$__rate_interval]))"


def rates(unit: str, title: str, text: str = "", **metrics: str) -> Panel:
    """A line for each metric, or for each value of the label after a slash."""
    queries = []
    for name, given in metrics.items():
        metric, _, label = given.partition("/")
        legend = f"{name} {{{{{label}}}}}" if label else name.replace("_", " ")
        queries.append((legend, rate(metric, label)))
    return Panel(title, unit, tuple(queries), text)


def quantiles(title: str, histogram: str, more: str = "", text: str = "") -> Panel:
    """Quantiles of durations."""
    buckets = rate(f"{histogram}_bucket", "le", more)
    queries = [
        (f"p{percent}", f"histogram_quantile({percent / 100}, {buckets})")
        for percent in (50, 95, 99)
    ]
    return Panel(title, "s", tuple(queries), text)


def totals(title: str, text: str, **metrics: str) -> Panel:
    queries = [(name.replace("_", " "), f"sum ({one}{{$of}})") for name, one in metrics.items()]
    return Panel(title, "short", tuple(queries), text)


def gauge(unit: str, title: str, metric: str, text: str = "") -> Panel:
    """A line for each node."""
    return Panel(title, unit, (("{{instance}}", f"sum by (instance) ({metric}{{$of}})"),), text)


def largest(unit: str, title: str, metric: str, by: str, text: str = "") -> Panel:
    """A line for each value of a label: the largest of all nodes."""
    return Panel(title, unit, ((f"{{{{{by}}}}}", f"max by ({by}) ({metric}{{$of}})"),), text)
