"""What a broker counts of tiered storage, over its life of copying, reading and deleting."""

from __future__ import annotations

import urllib.request
from pathlib import Path

from prometheus_client.parser import text_string_to_metric_families

from skylog.testing import Broker
from tests.integration.cli_support import Cli
from tests.waiting import until

SETTINGS = {
    "remote.log.storage.system.enable": "true",
    "remote.log.manager.task.interval.ms": "200",
    "log.retention.check.interval.ms": "200",
    "log.initial.task.delay.ms": "0",
    "rlmm.config.remote.log.metadata.topic.num.partitions": "3",
    "http.listener": "127.0.0.1:0",
}
TOPIC = "watched"
TOPICS = "kafka_server_brokertopicmetrics"


def samples(broker: Broker) -> dict[str, float]:
    """Those of the topic, of a stage (as name/stage) or of the broker, over all other labels."""
    with urllib.request.urlopen(f"http://{broker.node.http_address}/metrics") as answer:
        text = answer.read().decode()
    found: dict[str, float] = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            stage = sample.labels.get("stage")
            name = f"{sample.name}/{stage}" if stage else sample.name
            if sample.labels.get("topic", TOPIC) == TOPIC:
                found[name] = found.get(name, 0) + sample.value
    return found


def test_a_life_in_numbers(tmp_path: Path) -> None:
    url = (tmp_path / "bucket").as_uri()
    with Broker({**SETTINGS, "tiered.storage.url": url}) as broker:
        cli = Cli(broker)
        configs = ("remote.storage.enable=true", "segment.bytes=1048576", "local.retention.bytes=1")
        options = [part for config in configs for part in ("--config", config)]
        cli.ok("topics", "create", TOPIC, *options)
        cli.ok("perf", "produce", TOPIC, "--records", "4000", "--size", "1024")
        until(lambda: samples(broker).get(f"{TOPICS}_remotelogmetadatacount") == 4)
        until(lambda: samples(broker)[f"{TOPICS}_remotecopylagsegments"] == 0)
        until(lambda: samples(broker)["skylog_tiered_stage_runs_total/copy"] == 4)
        copied = samples(broker)
        assert copied[f"{TOPICS}_remotecopyrequests_total"] == 4
        assert copied[f"{TOPICS}_remotecopybytes_total"] == copied[f"{TOPICS}_remotelogsizebytes"]
        assert copied["skylog_tiered_stage_runs_total/copy"] == 4
        assert copied["skylog_tiered_stage_errors_total/copy"] == 0
        assert copied["skylog_tiered_objects_bytes_total"] > 0

        until(lambda: cli.json("tiered", "regions", TOPIC)[0]["local_start_offset"] > 1000)
        cli.ok("consume", TOPIC, "--from-beginning", "--max-messages", "4000")
        read = samples(broker)
        assert read[f"{TOPICS}_remotefetchrequests_total"] > 0
        assert read[f"{TOPICS}_remotefetchbytes_total"] > 1 << 20
        assert read[f"{TOPICS}_remotefetcherrors_total"] == 0
        assert read["skylog_tiered_stage_runs_total/remote-read"] > 0
        assert read["skylog_tiered_holes_total"] == read["skylog_tiered_corrupt_total"] == 0

        cli.ok("configs", "set", "--topic", TOPIC, "retention.ms=1")
        until(lambda: samples(broker)[f"{TOPICS}_remotedeleterequests_total"] >= 4)
        until(lambda: samples(broker)[f"{TOPICS}_remotelogsizebytes"] == 0)
        assert samples(broker)["skylog_tiered_stage_runs_total/expire"] > 0
        cli.ok("topics", "delete", TOPIC, "--yes")
        until(lambda: f"{TOPICS}_remotelogsizebytes" not in samples(broker))
