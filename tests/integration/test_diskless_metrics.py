"""Every stage of diskless topics has metrics: how often, how long, failures, and how long ago."""

from __future__ import annotations

import urllib.request
from pathlib import Path

from confluent_kafka import Producer
from prometheus_client.parser import text_string_to_metric_families

from skylog.testing import Broker
from tests.integration.diskless_support import SECONDS_MAX, create_topic, read_all
from tests.waiting import until

# The stages of a record, and background work.
PASSES = {"retention", "cleaner", "orphans", "topics", "backup"}
STAGES = {"rotate", "upload", "commit", "find", "fetch", "cache", "snapshot", *PASSES}
UNTIMED = {"cache", "local"}
SETTINGS = {
    "diskless.metadata.topic.num.partitions": "2",
    "diskless.metadata.snapshot.bytes": "1",
    "diskless.metadata.backup.interval.ms": "100",
    "diskless.commit.age.max.ms": "3000",
    "diskless.coordinator.orphan.scan.grace.period.ms": "6001",
    "diskless.coordinator.orphan.scan.interval.ms": "100",
    "diskless.file.cleaner.interval.ms": "100",
    "diskless.retention.check.interval.ms": "100",
    "diskless.local.segments.enable": "false",
    "http.listener": "127.0.0.1:0",
    "log.level": "ERROR",
}
RUNS = "skylog_diskless_stage_runs_total"
ERRORS = "skylog_diskless_stage_errors_total"
AGES = "skylog_diskless_last_success_age_seconds"
Samples = dict[tuple[str, str], float]


def samples(broker: Broker) -> Samples:
    """By name and stage."""
    with urllib.request.urlopen(f"http://{broker.node.http_address}/metrics") as answer:
        text = answer.read().decode()
    return {
        (sample.name, sample.labels.get("stage", "")): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def of(found: Samples, name: str) -> dict[str, float]:
    return {stage: value for (sample, stage), value in found.items() if sample == name}


def test_every_stage_has_its_metrics(tmp_path: Path) -> None:
    settings = {**SETTINGS, "diskless.storage.url": (tmp_path / "bucket").as_uri()}
    with Broker(settings) as broker:
        create_topic(broker.bootstrap, "watched")
        producer = Producer({"bootstrap.servers": broker.bootstrap})
        producer.produce("watched", b"v", partition=0)
        assert producer.flush(SECONDS_MAX) == 0
        assert read_all(broker.bootstrap, "watched", {0: 1}) == {0: [b"v"]}

        def passes_have_run(since: dict[str, float]) -> bool:
            runs = of(samples(broker), RUNS)
            return all(runs.get(stage, 0) > since.get(stage, 0) for stage in PASSES)

        until(lambda: of(samples(broker), RUNS).keys() >= STAGES and passes_have_run({}))
        # Passes during the loading of coordinators have failed; from now on none does.
        failed, ran = of(samples(broker), ERRORS), of(samples(broker), RUNS)
        until(lambda: passes_have_run(ran))
        found = samples(broker)
        timed = STAGES - UNTIMED
        assert of(found, RUNS).keys() - {"local"} == STAGES
        assert of(found, "skylog_diskless_stage_seconds_count").keys() == timed
        assert of(found, "skylog_diskless_stage_seconds_sum").keys() == timed
        assert of(found, "skylog_diskless_stage_seconds_bucket").keys() == timed
        assert of(found, ERRORS) == failed
        assert {stage for stage, count in failed.items() if count} <= PASSES
        assert all(of(found, RUNS)[stage] for stage in STAGES)
        ages = of(found, AGES)
        assert ages.keys() - {"local"} == STAGES
        assert all(0 <= age < SECONDS_MAX * 2 for age in ages.values())


def test_errors_are_counted_and_the_age_grows(tmp_path: Path) -> None:
    bucket = tmp_path / "bucket"
    with Broker({**SETTINGS, "diskless.storage.url": bucket.as_uri()}) as broker:
        create_topic(broker.bootstrap, "watched")
        until(lambda: of(samples(broker), RUNS)["orphans"] > 0)
        # Passes that need a claim skip a bucket that another cluster has claimed.
        owner = bucket / "backup" / "owner" / "cluster-id"
        until(owner.exists)
        for scanner in (broker.node.maintenance.orphans, broker.node.maintenance.backup):
            scanner._claim._granted = False
        owner.write_bytes(b"somebody else")
        until(lambda: of(samples(broker), ERRORS)["orphans"] > 0)
        before = of(samples(broker), AGES)["orphans"]
        until(lambda: of(samples(broker), AGES)["orphans"] > before)
