"""Metrics of tiered storage: Kafka's, under the names that exporters give them, and our own.

They are read on a thread, so what may change is copied first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import accumulate
from typing import TYPE_CHECKING, Final

from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
)
from prometheus_client.registry import Collector

from skylog.broker.observe.stages import stage_metrics
from skylog.kernel.stages import BOUNDS
from skylog.objects.metered import StoreCollector

if TYPE_CHECKING:
    from skylog.kernel.settings.tiered import TieredSettings
    from skylog.kernel.stages import Stage
    from skylog.objects.metered import StoreStats
    from skylog.tiered.counts import TieredCounts, Waits
    from skylog.tiered.reading.reader import RemoteReader

_TOPICS: Final = "kafka_server_brokertopicmetrics"
_MANAGER: Final = "kafka_log_remote_remotelogmanager"
_POOL: Final = "kafka_log_remote_remotestoragethreadpool"
_OURS: Final = "skylog_tiered"
# Kafka's name, the field of TopicCounts, what it counts.
_TOPIC_TOTALS: Final = (
    ("remotecopybytes", "copy_bytes", "Bytes of segments that were copied."),
    ("remotecopyrequests", "copy_requests", "Segments that were begun to be copied."),
    ("remotecopyerrors", "copy_errors", "Copies of segments that failed."),
    ("remotefetchbytes", "fetch_bytes", "Bytes that consumers read from remote segments."),
    ("remotefetchrequests", "fetch_requests", "Reads of remote segments for consumers."),
    ("remotefetcherrors", "fetch_errors", "Such reads that failed."),
    ("remotedeleterequests", "delete_requests", "Remote segments that were begun to be deleted."),
    ("remotedeleteerrors", "delete_errors", "Deletions of remote segments that failed."),
    (
        "buildremotelogauxstaterequests",
        "aux_state_requests",
        "Times that a follower here began to build its state from a remote segment.",
    ),
    (
        "buildremotelogauxstateerrors",
        "aux_state_errors",
        "Times that a follower here failed to.",
    ),
)
# Kafka's name, the field of PartitionSizes, what it says.
_TOPIC_SIZES: Final = (
    ("remotecopylagbytes", "copy_lag_bytes", "Bytes of closed segments that are not copied yet."),
    ("remotecopylagsegments", "copy_lag_segments", "Closed segments that are not copied yet."),
    (
        "remotedeletelagbytes",
        "delete_lag_bytes",
        "Bytes of remote segments that are to be deleted and are not yet.",
    ),
    (
        "remotedeletelagsegments",
        "delete_lag_segments",
        "Remote segments that are to be deleted and are not yet.",
    ),
    ("remotelogmetadatacount", "segments", "Remote segments, in whatever state."),
    ("remotelogsizebytes", "size_bytes", "Bytes of remote segments."),
)
_PERCENTS: Final = (
    (
        "retentionsizeinpercent",
        "retention_percent",
        "Share of retention.bytes that a partition uses, in percent; 0 without a limit.",
    ),
    (
        "localretentionsizeinpercent",
        "local_retention_percent",
        "Share of local.retention.bytes that a partition uses on disk, in percent.",
    ),
)
# The name, the field of TieredCounts, what it counts.
_OWN_TOTALS: Final = (
    ("holes", "holes", "Reads of offsets that should be there and that no remote segment covers."),
    ("corrupt", "corrupt", "Answers of the store that were not what had been stored."),
    (
        "void_records",
        "void_records",
        "Own records of the metadata topic that a newer leader's had made void.",
    ),
    (
        "orphans",
        "orphans_deleted",
        "Objects that belonged to no remote segment and were deleted.",
    ),
)


class TieredCollector(Collector):
    """Reads what manager, reader and followers have counted."""

    def __init__(
        self,
        counts: TieredCounts,
        reader: RemoteReader,
        store: StoreStats,
        settings: Callable[[], TieredSettings],
    ) -> None:
        self._counts = counts
        self._reader = reader
        self._store = StoreCollector(store, f"{_OURS}_objects")
        self._settings = settings

    def collect(self) -> Iterator[Metric]:
        yield from self._topics()
        yield from self._partitions()
        yield from self._pools()
        counts = self._counts
        for kind, expired in (
            ("fetch", counts.fetches_expired),
            ("listoffsets", counts.list_offsets_expired),
        ):
            text = "Remote reads that were not done in time, by what asked for them."
            name = f"kafka_server_delayedremote{kind}metrics_expires"
            yield CounterMetricFamily(name, text, value=expired)
        yield from _throttle("copy", counts.copy_throttle)
        yield from _throttle("fetch", counts.fetch_throttle)
        for name, field, text in _OWN_TOTALS:
            yield CounterMetricFamily(f"{_OURS}_{name}", text, value=getattr(counts, field))
        yield GaugeMetricFamily(
            f"{_OURS}_prunes_refused",
            "Diskless partitions led here whose WAL is kept because a remote segment was not found "
            "whole in the store.",
            value=counts.prunes_refused,
        )
        yield from self._cache()
        yield from self._store.collect()
        yield from stage_metrics(_OURS, counts.stages())

    def _cache(self) -> Iterator[Metric]:
        chunks = self._reader.chunks
        for name, text, value in (
            ("hits", "Reads of remote segments served from memory.", chunks.hits),
            ("misses", "Reads of remote segments that waited for the store.", chunks.misses),
            ("at_once", "Reads of remote segments from a directory's page cache.", chunks.at_once),
        ):
            yield CounterMetricFamily(f"{_OURS}_cache_{name}", text, value=value)
        yield GaugeMetricFamily(
            f"{_OURS}_cache_bytes",
            "Bytes of remote segments in memory.",
            value=chunks.bytes,
        )

    def _topics(self) -> Iterator[Metric]:
        topics = tuple(self._counts.topics.items())
        for name, field, text in _TOPIC_TOTALS:
            totals = CounterMetricFamily(f"{_TOPICS}_{name}", text, labels=["topic"])
            for topic, counts in topics:
                totals.add_metric([topic], getattr(counts, field))
            yield totals
        sums = self._counts.by_topic()
        for name, field, text in _TOPIC_SIZES:
            sizes = GaugeMetricFamily(f"{_TOPICS}_{name}", text, labels=["topic"])
            for topic, found in sums.items():
                sizes.add_metric([topic], getattr(found, field))
            yield sizes

    def _partitions(self) -> Iterator[Metric]:
        partitions = tuple(self._counts.partitions.items())
        for name, field, text in _PERCENTS:
            family = GaugeMetricFamily(f"{_MANAGER}_{name}", text, labels=["topic", "partition"])
            for (topic, index), sizes in partitions:
                family.add_metric([topic, str(index)], getattr(sizes, field))
            yield family

    def _pools(self) -> Iterator[Metric]:
        counts, settings = self._counts, self._settings()
        yield GaugeMetricFamily(
            f"{_MANAGER}_remotelogmanagertasksavgidlepercent",
            "Share of copies that could run at once and do not, from 0 to 1.",
            value=_idle(counts.copies_running, settings.copiers),
        )
        yield _milliseconds(
            f"{_MANAGER}_remotelogreaderfetchrateandtimems",
            "How long remote reads take, in milliseconds.",
            counts.remote_read,
        )
        yield GaugeMetricFamily(
            f"{_POOL}_remotelogreadertaskqueuesize",
            "Remote reads that wait for others.",
            value=self._reader.slots.waiting,
        )
        yield GaugeMetricFamily(
            f"{_POOL}_remotelogreaderavgidlepercent",
            "Share of remote reads that could run at once and do not, from 0 to 1.",
            value=_idle(self._reader.slots.taken, settings.readers),
        )


def _idle(running: int, at_once: int) -> float:
    return max(0.0, 1 - running / at_once)


def _milliseconds(name: str, text: str, stage: Stage) -> Metric:
    bounds = [*(f"{bound * 1000:g}" for bound in BOUNDS), "+Inf"]
    buckets = list(zip(bounds, accumulate(tuple(stage.buckets)), strict=True))
    return HistogramMetricFamily(name, text, buckets=buckets, sum_value=stage.seconds * 1000)


def _throttle(what: str, waits: Waits) -> Iterator[Metric]:
    prefix = f"kafka_server_remotelogmanager_remote_{what}_throttle_time"
    mean = waits.seconds / waits.count if waits.count else 0.0
    for name, text, seconds in (
        ("avg", f"Mean wait of a {what} for its quota, in milliseconds.", mean),
        ("max", f"Longest wait of a {what} for its quota, in milliseconds.", waits.seconds_max),
    ):
        yield GaugeMetricFamily(f"{prefix}_{name}", text, value=seconds * 1000)
