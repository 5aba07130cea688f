"""With small segments a coordinator's state is finite, though nothing ever expires."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from skylog.testing import Broker
from tests.integration.broker_client import Client
from tests.integration.cli_support import Cli
from tests.integration.consolidation_support import (
    CONSOLIDATING,
    EARLIEST,
    PER_SEGMENT,
    consolidating_broker,
    fill,
    offset,
    read_all,
    until_pruned,
    wal_objects,
)
from tests.waiting import until

# Enough for the first database to have pages of everything; then twice as much again.
FIRST = 20 * PER_SEGMENT
ALL = 3 * FIRST
COORDINATORS = 2
# Records of a coordinator's log that a snapshot has not made superfluous yet.
SLACK = FIRST


class Level(NamedTuple):
    """What coordinators keep once everything is consolidated and deleted."""

    batches: int
    files: int
    log_records: int
    database_bytes: int
    snapshot_bytes: int


def measured(broker: Broker) -> Level:
    rows = Cli(broker).json("diskless", "coordinators")
    kept = broker.directory / "diskless-coordinators"
    return Level(
        sum(row["batches"] for row in rows),
        sum(row["live_files"] + row["free_files"] for row in rows),
        sum(row["log_end_offset"] - row["log_start_offset"] for row in rows),
        sum(path.stat().st_size for path in kept.glob("*/state.sqlite")),
        sum(newest(directory).stat().st_size for directory in kept.iterdir()),
    )


def newest(directory: Path) -> Path:
    """A coordinator's last snapshot, or what stands for none."""
    return max(directory.glob("*.checkpoint"), default=directory / "state.sqlite")


def settle(broker: Broker, client: Client, end: int) -> None:
    """Wait until what is tiered is pruned and deleted."""
    until_pruned(client, "endless", end - PER_SEGMENT)
    until(lambda: len(wal_objects(broker)) <= PER_SEGMENT, "pruned objects are deleted")
    until(lambda: measured(broker).files <= PER_SEGMENT, "and forgotten")
    until(lambda: has_snapshots_of_all(broker), "snapshots are of that")


def has_snapshots_of_all(broker: Broker) -> bool:
    """Takes them from the coordinators' databases, which may be behind their logs."""
    engine = broker.node._services.diskless
    assert engine is not None and engine.coordination is not None
    for number in range(COORDINATORS):
        broker.run(engine.coordination.local.get(number).snapshot())
    rows = Cli(broker).json("diskless", "coordinators")
    return all(row["snapshot_offset"] == row["high_watermark"] for row in rows)


def test_what_a_coordinator_keeps_is_level(tmp_path: Path) -> None:
    # DC-38
    settings = {"diskless_metadata_snapshot_bytes": "4096"}
    with (
        consolidating_broker(tmp_path, **settings) as broker,
        Client(broker.bootstrap) as client,
    ):
        client.create("endless", configs={**CONSOLIDATING, "retention.bytes": "-1"})
        fill(client, "endless", 0, FIRST)
        settle(broker, client, FIRST)
        first = measured(broker)
        fill(client, "endless", FIRST, ALL)
        settle(broker, client, ALL)
        last = measured(broker)
        for name, before, after in zip(Level._fields, first, last, strict=True):
            # Twice as much again was produced: what grows with it would be three times as much.
            assert after <= max(before * 1.7, SLACK), (name, first, last)
        assert last.batches <= PER_SEGMENT
        # Nothing has expired.
        assert offset(client, "endless", EARLIEST) == 0
        read_all(client, "endless", 0, ALL)
