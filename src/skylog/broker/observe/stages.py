"""Stages for Prometheus: how often, how often in vain, how long, and when it last worked."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import accumulate
from typing import Final

from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
)

from skylog.kernel.stages import BOUNDS, Stage

_LABELS: Final = ["stage"]
_BOUNDS: Final = [*map(str, BOUNDS), "+Inf"]


def stage_metrics(prefix: str, stages: Mapping[str, Stage]) -> Iterator[Metric]:
    """Four families with a label that names the stage."""
    runs = CounterMetricFamily(f"{prefix}_stage_runs", "How often it was done", labels=_LABELS)
    errors = CounterMetricFamily(f"{prefix}_stage_errors", "How often it failed", labels=_LABELS)
    seconds = HistogramMetricFamily(
        f"{prefix}_stage_seconds", "How long it took, well or not", labels=_LABELS
    )
    ages = GaugeMetricFamily(
        f"{prefix}_last_success_age_seconds",
        "Time since it last worked; since the start if it never has",
        labels=_LABELS,
    )
    for name, stage in stages.items():
        runs.add_metric([name], stage.runs)
        errors.add_metric([name], stage.errors)
        ages.add_metric([name], stage.age_seconds)
        if stage.timed:
            counts = list(accumulate(tuple(stage.buckets)))
            seconds.add_metric([name], list(zip(_BOUNDS, counts, strict=True)), stage.seconds)
    yield from (runs, errors, seconds, ages)
