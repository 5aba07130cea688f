"""Metrics of tiered storage: Kafka's names, and what was counted."""

from __future__ import annotations

import re
from types import SimpleNamespace
from typing import Any

from prometheus_client.core import Metric

from skylog.broker.observe.tiered import TieredCollector
from skylog.kernel.clock import ManualClock
from skylog.kernel.settings import load_settings
from skylog.objects.metered import StoreStats
from skylog.tiered.counts import PartitionSizes, TieredCounts

# The MBeans of a Kafka 4.3.1 with tiered storage that has copied, read and deleted.
KAFKAS = """
kafka.log.remote:type=RemoteLogManager,name=LocalRetentionSizeInPercent
kafka.log.remote:type=RemoteLogManager,name=RemoteLogManagerTasksAvgIdlePercent
kafka.log.remote:type=RemoteLogManager,name=RemoteLogReaderFetchRateAndTimeMs
kafka.log.remote:type=RemoteLogManager,name=RetentionSizeInPercent
kafka.log.remote:type=RemoteStorageThreadPool,name=RemoteLogReaderAvgIdlePercent
kafka.log.remote:type=RemoteStorageThreadPool,name=RemoteLogReaderTaskQueueSize
kafka.server:type=BrokerTopicMetrics,name=BuildRemoteLogAuxStateErrorsPerSec
kafka.server:type=BrokerTopicMetrics,name=BuildRemoteLogAuxStateRequestsPerSec
kafka.server:type=BrokerTopicMetrics,name=RemoteCopyBytesPerSec
kafka.server:type=BrokerTopicMetrics,name=RemoteCopyErrorsPerSec
kafka.server:type=BrokerTopicMetrics,name=RemoteCopyLagBytes
kafka.server:type=BrokerTopicMetrics,name=RemoteCopyLagSegments
kafka.server:type=BrokerTopicMetrics,name=RemoteCopyRequestsPerSec
kafka.server:type=BrokerTopicMetrics,name=RemoteDeleteErrorsPerSec
kafka.server:type=BrokerTopicMetrics,name=RemoteDeleteLagBytes
kafka.server:type=BrokerTopicMetrics,name=RemoteDeleteLagSegments
kafka.server:type=BrokerTopicMetrics,name=RemoteDeleteRequestsPerSec
kafka.server:type=BrokerTopicMetrics,name=RemoteFetchBytesPerSec
kafka.server:type=BrokerTopicMetrics,name=RemoteFetchErrorsPerSec
kafka.server:type=BrokerTopicMetrics,name=RemoteFetchRequestsPerSec
kafka.server:type=BrokerTopicMetrics,name=RemoteLogMetadataCount
kafka.server:type=BrokerTopicMetrics,name=RemoteLogSizeBytes
kafka.server:type=DelayedRemoteFetchMetrics,name=ExpiresPerSec
kafka.server:type=DelayedRemoteListOffsetsMetrics,name=ExpiresPerSec
"""


def collected(counts: TieredCounts, reading: int = 0, waiting: int = 0) -> dict[str, Metric]:
    settings = load_settings().tiered
    reader: Any = SimpleNamespace(
        slots=SimpleNamespace(taken=reading, waiting=waiting),
        chunks=SimpleNamespace(hits=3, misses=1, at_once=0, bytes=5),
    )
    collector = TieredCollector(counts, reader, StoreStats(), lambda: settings)
    return {family.name: family for family in collector.collect()}


def sampled(counts: TieredCounts, **more: int) -> dict[tuple[str, str], float]:
    """By name and topic."""
    return {
        (sample.name, sample.labels.get("topic", "")): sample.value
        for family in collected(counts, **more).values()
        for sample in family.samples
    }


def test_kafkas_metrics_have_the_names_that_exporters_give_them() -> None:
    """RemoteLogSizeComputationTime is missing: sizes are kept here, never computed."""
    found = collected(TieredCounts(ManualClock()))
    for bean in KAFKAS.split():
        domain, kind, name = re.fullmatch(r"(.*):type=(\w+),name=(\w+)", bean).groups()  # type: ignore[union-attr]
        family = found[
            "_".join((domain.replace(".", "_"), kind, name.removesuffix("PerSec"))).lower()
        ]
        assert (family.type == "counter") == name.endswith("PerSec"), bean


def test_counts_are_shown_by_topic() -> None:
    counts = TieredCounts(ManualClock())
    counts.of("t").copy_bytes += 7
    counts.of("t").fetch_errors += 1
    counts.looked_at("t", 0, PartitionSizes(copy_lag_bytes=5, segments=2, size_bytes=9))
    counts.looked_at("t", 1, PartitionSizes(copy_lag_bytes=6, retention_percent=40))
    counts.fetches_expired += 3
    counts.holes += 1
    found = sampled(counts)
    topics = "kafka_server_brokertopicmetrics"
    assert found[f"{topics}_remotecopybytes_total", "t"] == 7
    assert found[f"{topics}_remotefetcherrors_total", "t"] == 1
    assert found[f"{topics}_remotecopylagbytes", "t"] == 11
    assert found[f"{topics}_remotelogmetadatacount", "t"] == 2
    assert found[f"{topics}_remotelogsizebytes", "t"] == 9
    assert found["kafka_log_remote_remotelogmanager_retentionsizeinpercent", "t"] == 40
    assert found["kafka_server_delayedremotefetchmetrics_expires_total", ""] == 3
    assert found["skylog_tiered_holes_total", ""] == 1


def test_pools_are_idle_by_what_may_run_at_once() -> None:
    counts = TieredCounts(ManualClock())
    counts.copies_running = 12
    found = sampled(counts, reading=4, waiting=2)
    pool = "kafka_log_remote_remotestoragethreadpool_remotelogreader"
    manager = "kafka_log_remote_remotelogmanager"
    assert found[f"{pool}avgidlepercent", ""] == 0.6
    assert found[f"{pool}taskqueuesize", ""] == 2
    # More than the pool has, after it has shrunk, is not less than nothing.
    assert found[f"{manager}_remotelogmanagertasksavgidlepercent", ""] == 0


def test_waits_and_durations_are_milliseconds() -> None:
    clock = ManualClock()
    counts = TieredCounts(clock)
    counts.copy_throttle.waited(0.5)
    counts.copy_throttle.waited(1.5)
    began = counts.remote_read.begin()
    clock.advance(20)
    counts.remote_read.succeeded(began)
    found = collected(counts)
    throttle = "kafka_server_remotelogmanager_remote_copy_throttle_time"
    assert found[f"{throttle}_avg"].samples[0].value == 1000
    assert found[f"{throttle}_max"].samples[0].value == 1500
    reads = found["kafka_log_remote_remotelogmanager_remotelogreaderfetchrateandtimems"].samples
    buckets = {sample.labels.get("le"): sample.value for sample in reads}
    assert (buckets["10"], buckets["25"], buckets["+Inf"]) == (0, 1, 1)
    assert [round(s.value) for s in reads if s.name.endswith("_sum")] == [20]
    assert {"copy", "expire", "remote-read", "orphans", "prune"} == {
        sample.labels["stage"] for sample in found["skylog_tiered_last_success_age_seconds"].samples
    }
