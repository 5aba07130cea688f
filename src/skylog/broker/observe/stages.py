"""Stages for Prometheus: number of runs, failures, duration, and time of the last success."""

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
    runs = CounterMetricFamily(
        f"{prefix}_stage_runs", "Runs of a stage, with or without success.", labels=_LABELS
    )
    errors = CounterMetricFamily(
        f"{prefix}_stage_errors", "Runs of a stage that failed.", labels=_LABELS
    )
    seconds = HistogramMetricFamily(
        f"{prefix}_stage_seconds",
        "Duration of a stage's runs, with or without success.",
        labels=_LABELS,
    )
    ages = GaugeMetricFamily(
        f"{prefix}_last_success_age_seconds",
        "Time since a stage last succeeded, or since the node started if it never has.",
        labels=_LABELS,
    )
    for name, stage in stages.items():
        runs.add_metric([name], stage.runs)
        errors.add_metric([name], stage.errors)
        ages.add_metric([name], stage.age_seconds)
        if stage.timed:
            seconds.add_metric([name], buckets_of(stage), stage.seconds)
    yield from (runs, errors, seconds, ages)


def buckets_of(*stages: Stage) -> list[tuple[str, float]]:
    """How many runs took at most as long as each bound, over all stages."""
    counts = map(sum, zip(*(tuple(stage.buckets) for stage in stages), strict=True))
    return list(zip(_BOUNDS, accumulate(counts), strict=True))
