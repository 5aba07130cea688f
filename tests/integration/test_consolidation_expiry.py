"""Consolidated topics on a real broker: what is deleted from their start, what is not, and when
the WAL stays."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from skylog.broker.background.orphans import open_scanner
from skylog.kernel.ids import Uuid
from skylog.kernel.stages import Stage
from skylog.testing import Broker
from skylog.wire.messages.incremental_alter_configs_request import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from tests.integration.broker_client import Client
from tests.integration.cli_support import Cli
from tests.integration.consolidation_support import (
    CONSOLIDATING,
    EARLIEST,
    LATEST,
    PER_SEGMENT,
    WAL_START,
    consolidating_broker,
    covered,
    fill,
    offset,
    read_all,
    segments,
    tiered_objects,
    tiered_of,
    until_pruned,
    wal_objects,
)
from tests.integration.tiered_topics import alter, delete_records
from tests.waiting import until

END = 6 * PER_SEGMENT + 2
PRUNED = 6 * PER_SEGMENT
BROKER = 4  # the type of a resource


@pytest.fixture
def broker() -> Iterator[Broker]:
    with consolidating_broker(
        tiered_orphan_scan_grace_period_ms="1", tiered_orphan_scan_interval_ms="3600000"
    ) as running:
        yield running


@pytest.fixture
def client(broker: Broker) -> Iterator[Client]:
    with Client(broker.bootstrap) as connected:
        yield connected


def pruned(client: Client, topic: str = "orders", **configs: str) -> None:
    """A topic of six tiered segments, which are no longer in the WAL, and two records that are."""
    more = {name.replace("_", "."): text for name, text in configs.items()}
    client.create(topic, configs={**CONSOLIDATING, **more})
    fill(client, topic, 0, END)
    until_pruned(client, topic, PRUNED)


def starts(broker: Broker, topic: str = "orders") -> list[int]:
    return [one.start_offset for one in segments(broker, topic)]


def stored(broker: Broker, topic: str = "orders") -> list[int]:
    """The first offsets of segments of which an object is there."""
    found = tiered_objects(broker, topic).values()
    return sorted({int(path.name[:20]) for paths in found for path in paths})


def until_stored(broker: Broker, *first: int, topic: str = "orders") -> None:
    until(lambda: stored(broker, topic) == list(first), f"segments {first} are left")
    until(lambda: starts(broker, topic) == list(first), f"segments {first} are known")


def test_deleted_records_take_their_segments(broker: Broker, client: Client) -> None:
    pruned(client)
    assert delete_records(client, "orders", 12) == 12
    until_stored(broker, 10, 15, 20, 25)
    assert offset(client, "orders", EARLIEST) == 12
    assert client.fetch("orders", 11).error_code == 1
    read_all(client, "orders", 12, END)
    # Into what is still in the WAL: nothing is remote any more, and the log goes on.
    assert delete_records(client, "orders", PRUNED + 1) == PRUNED + 1
    until_stored(broker)
    read_all(client, "orders", PRUNED + 1, END)
    fill(client, "orders", END, END + PER_SEGMENT)
    until_pruned(client, "orders", 7 * PER_SEGMENT)
    read_all(client, "orders", PRUNED + 1, END + PER_SEGMENT)


def test_size_takes_segments_from_the_start_alone(broker: Broker, client: Client) -> None:
    pruned(client)
    size = segments(broker, "orders")[0].size
    # Both tiers count: the records in the WAL are less than a segment.
    alter(client, "orders", retention_bytes=str(3 * size))
    until_stored(broker, 15, 20, 25)
    assert offset(client, "orders", EARLIEST) == 15
    assert offset(client, "orders", WAL_START) == PRUNED
    read_all(client, "orders", 15, END)
    # More records take more of the start; the WAL is never shortened before what is tiered.
    fill(client, "orders", END, END + 2 * PER_SEGMENT)
    until_stored(broker, 25, 30, 35)
    assert offset(client, "orders", EARLIEST) == 25
    read_all(client, "orders", 25, END + 2 * PER_SEGMENT)


def test_age_takes_segments_and_then_what_is_in_the_wal(broker: Broker, client: Client) -> None:
    pruned(client)
    alter(client, "orders", retention_ms="1")
    until_stored(broker)
    # Then there is no tiered part, and the coordinator goes on.
    until(lambda: offset(client, "orders", EARLIEST) == END, "the WAL follows")
    assert offset(client, "orders", LATEST) == END
    until(lambda: not wal_objects(broker), "its objects go, too")


def test_what_is_young_stays_though_the_wal_is_pruned(broker: Broker, client: Client) -> None:
    pruned(client, retention_ms="3600000", retention_bytes="100000000")
    expiry = tiered_of(broker).counts.prune
    runs = expiry.runs
    until(lambda: expiry.runs > runs + 5)
    assert starts(broker) == list(range(0, PRUNED, PER_SEGMENT))
    assert offset(client, "orders", EARLIEST) == 0
    read_all(client, "orders", 0, END)


def test_a_policy_of_other_topics_leaves_what_is_tiered_readable(
    broker: Broker, client: Client
) -> None:
    """A diskless topic is never compacted, whatever brokers do with topics by default."""
    pruned(client)
    change = [AlterableConfig("log.cleanup.policy", 0, "compact")]
    request = IncrementalAlterConfigsRequest([AlterConfigsResource(BROKER, "", change)])
    assert client.ask(request).responses[0].error_code == 0
    configs = broker.node._services.configs
    until(lambda: configs.log_config("orders").compacts)
    read_all(client, "orders", 0, END)
    assert starts(broker) == list(range(0, PRUNED, PER_SEGMENT))


def test_a_topic_that_is_deleted_takes_its_segments(broker: Broker, client: Client) -> None:
    pruned(client)
    pruned(client, "others")
    Cli(broker).ok("topics", "delete", "orders", "--yes")
    until(lambda: not stored(broker, "orders"), "its segments are gone")
    assert len(stored(broker, "others")) == 6
    read_all(client, "others", 0, END)
    # Another one of the same name has nothing of it.
    client.create("orders", configs=dict(CONSOLIDATING))
    fill(client, "orders", 0, PER_SEGMENT + 1)
    until_pruned(client, "orders", PER_SEGMENT)
    read_all(client, "orders", 0, PER_SEGMENT + 1)


def test_a_restart_knows_what_is_tiered_alone(tmp_path: Path) -> None:
    with consolidating_broker(tmp_path) as broker, Client(broker.bootstrap) as client:
        pruned(client)
        delete_records(client, "orders", 7)
        until_stored(broker, 5, 10, 15, 20, 25)
    with consolidating_broker(tmp_path) as broker, Client(broker.bootstrap) as client:
        until(lambda: covered(broker, "orders") == PRUNED)
        read_all(client, "orders", 7, END)
        size = segments(broker, "orders")[0].size
        alter(client, "orders", retention_bytes=str(2 * size))
        until_stored(broker, 20, 25)
        read_all(client, "orders", 20, END)


def test_the_scan_for_orphans_knows_consolidated_segments(broker: Broker, client: Client) -> None:
    pruned(client)
    some = tiered_objects(broker, "orders")["log"][0]
    orphan = some.with_name(f"{0:020}-{'A' * 22}.log")  # a copy that was given up
    orphan.write_bytes(some.read_bytes())
    services = broker.node._services
    scanner = open_scanner(services, services.configs.current.tiered)
    assert scanner is not None
    until(lambda: time.time() > orphan.stat().st_mtime + 0.1)
    broker.run(scanner.run_once())
    assert scanner.stats.unanswered == 0
    assert not orphan.exists()
    assert stored(broker) == list(range(0, PRUNED, PER_SEGMENT))
    read_all(client, "orders", 0, END)


@pytest.mark.parametrize("damage", ["missing", "short", "other"])
def test_a_segment_that_is_not_whole_keeps_the_wal(
    broker: Broker, client: Client, damage: str
) -> None:
    """Between its copy and the prune; when it is whole again the prune goes on."""
    tiered = tiered_of(broker)
    with_prunes_held = tiered.consolidating.led
    tiered.consolidating.led = lambda: iter(())  # type: ignore[method-assign]
    client.create("orders", configs=dict(CONSOLIDATING))
    fill(client, "orders", 0, END)
    until(lambda: len(stored(broker)) == 6 and covered(broker, "orders") == PRUNED)
    suffix = "log" if damage == "short" else "rsm-manifest"
    victim = tiered_objects(broker, "orders")[suffix][2]
    data = victim.read_bytes()
    match damage:
        case "missing":
            victim.unlink()
        case "short":
            victim.write_bytes(data[:-1])
        case "other":
            victim.write_bytes(tiered_objects(broker, "orders")[suffix][3].read_bytes())
    tiered.consolidating.led = with_prunes_held  # type: ignore[method-assign]
    until_pruned(client, "orders", 2 * PER_SEGMENT)
    until(lambda: tiered.counts.prunes_refused == 1)
    runs = tiered.counts.prune.runs
    until(lambda: tiered.counts.prune.runs > runs + 3, "there was time to prune")
    assert offset(client, "orders", WAL_START) == 2 * PER_SEGMENT
    victim.write_bytes(data)
    until_pruned(client, "orders", PRUNED)
    assert tiered.counts.prunes_refused == 0
    read_all(client, "orders", 0, END)


def test_nothing_is_pruned_while_the_backup_fails(tmp_path: Path) -> None:
    bucket = tmp_path / "bucket"
    settings = {
        "diskless_storage_url": bucket.as_uri(),
        "diskless_metadata_backup_interval_ms": "200",
        "diskless_tiering_prune_delay_ms": "400",
    }
    with consolidating_broker(**settings) as broker, Client(broker.bootstrap) as client:
        assert broker.node.maintenance.backup is not None
        backup = broker.node.maintenance.backup
        works = backup.run_once

        async def fails() -> None:
            raise TimeoutError

        backup.run_once = fails  # type: ignore[method-assign]
        stage = _stage(broker)
        until(lambda: stage.age_seconds > 0.5)
        client.create("orders", configs=dict(CONSOLIDATING))
        fill(client, "orders", 0, END)
        until(lambda: covered(broker, "orders") == PRUNED)
        runs = tiered_of(broker).counts.prune.runs
        until(lambda: tiered_of(broker).counts.prune.runs > runs + 10)
        assert offset(client, "orders", WAL_START) == 0
        backup.run_once = works  # type: ignore[method-assign]
        until_pruned(client, "orders", PRUNED)
        read_all(client, "orders", 0, END)


def _stage(broker: Broker) -> Stage:
    return next(one.stage for one in broker.node.maintenance.passes if one.name == "backup")


def copied_behind(broker: Broker, start: int) -> str:
    """The last segment again, as one of other offsets; returns its id."""
    other = str(Uuid(b"another segment!"))
    for paths in tiered_objects(broker, "orders").values():
        last = paths[-1]
        data = last.read_bytes()
        if last.suffix == ".rsm-manifest":
            told = json.loads(data)
            described = told["remoteLogSegmentMetadata"]
            described["remoteLogSegmentId"]["id"] = other
            described |= {"startOffset": start, "endOffset": start + 4}
            described["segmentLeaderEpochs"] = {"0": start}
            data = json.dumps(told).encode()
        last.with_name(f"{start:020}-{other}{last.suffix}").write_bytes(data)
    return other


def test_verify_and_rebuild(broker: Broker, client: Client) -> None:
    pruned(client)
    cli, url = Cli(broker), (broker.directory / "tiered-objects").as_uri()
    store = ("--storage-url", url)
    whole = cli.json("tiered", "verify", "orders", *store)
    assert (whole["segments"], whole["problems"]) == (6, [])
    lost = tiered_objects(broker, "orders")["log"][1]
    data = lost.read_bytes()
    lost.unlink()
    damaged = cli.run("tiered", "verify", "orders", "--json", *store)
    assert damaged.exit_code == 1
    lost.write_bytes(data)
    # The metadata is lost: what is tiered alone is in no other place. A segment above the high
    # watermark, of before a restore, is none of this log.
    foreign = copied_behind(broker, END + 100)
    cli.ok("topics", "delete", "__remote_log_metadata", "--yes")
    rebuilt = cli.run("tiered", "rebuild", "--from", url, "--yes")
    assert rebuilt.exit_code == 0, rebuilt.output
    assert f"{foreign} ends above the high watermark" in rebuilt.stderr
    until(lambda: covered(broker, "orders") == PRUNED)
    assert offset(client, "orders", EARLIEST) == 0
    read_all(client, "orders", 0, END)
    fill(client, "orders", END, END + PER_SEGMENT)
    until_pruned(client, "orders", PRUNED + PER_SEGMENT)
    assert cli.json("tiered", "verify", "orders", *store)["problems"] == []
    read_all(client, "orders", 0, END + PER_SEGMENT)
