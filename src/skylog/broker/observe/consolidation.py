"""Metrics of consolidation: how far the segments of diskless topics are behind their ends.

They are read on a thread, so what may change is copied first.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from skylog.broker.observe.stages import stage_metrics
from skylog.broker.tiered.assembly_source import Lag

if TYPE_CHECKING:
    from skylog.broker.tiered.consolidating import ConsolidatingPartitions

_OURS: Final = "skylog_consolidation"
# The name, the field of Lag, what it says.
_LAGS: Final = (
    ("records", "Records of a topic that are not in finished remote segments yet."),
    ("bytes", "Bytes of them; of what was not read yet, an estimate."),
    ("seconds", "How long the oldest of them has been there."),
)
# The name, the field of AssemblerStats, what it counts.
_TOTALS: Final = (
    ("assembled_bytes", "bytes", "Bytes of batches that were put together."),
    ("segments", "segments", "Segments that were put together."),
    ("segments_cut_early", "cut_early", "Those that were closed early, for lack of disk space."),
    ("disk_errors", "disk_errors", "Failures of the disk that segments are put together on."),
    ("spoiled", "spoiled", "Segments that were not copied, for their file had changed."),
)


class ConsolidationCollector(Collector):
    """The partitions that this broker leads."""

    def __init__(self, partitions: ConsolidatingPartitions) -> None:
        self._partitions = partitions

    def collect(self) -> Iterator[Metric]:
        lags = self._lags()
        for name, text in _LAGS:
            family = GaugeMetricFamily(f"{_OURS}_lag_{name}", text, labels=["topic"])
            for topic, lag in lags.items():
                family.add_metric([topic], getattr(lag, name))
            yield family
        assembler = self._partitions.assembler
        for name, field, text in _TOTALS:
            value = getattr(assembler.stats, field)
            yield CounterMetricFamily(f"{_OURS}_{name}", text, value=value)
        text = "Disk space of segments that are being put together, or copied."
        yield GaugeMetricFamily(f"{_OURS}_disk_bytes", text, value=assembler.used_bytes)
        yield from stage_metrics(_OURS, {"assemble": assembler.stage})

    def _lags(self) -> dict[str, Lag]:
        """Sums of the partitions of each topic; of their ages, the greatest."""
        found: dict[str, Lag] = {}
        for source in self._partitions.led():
            one, sum_ = source.lag, found.get(source.topic, Lag())
            found[source.topic] = Lag(
                sum_.records + one.records, sum_.bytes + one.bytes, max(sum_.seconds, one.seconds)
            )
        return found
