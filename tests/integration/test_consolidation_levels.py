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

ROUNDS = 8
# Records of a round, and of all rounds that are not looked at: everything is filling up.
PER_ROUND = 6 * PER_SEGMENT
WARM_UP = 3


class Level(NamedTuple):
    """What a coordinator keeps once a round is consolidated."""

    batches: int
    live_files: int
    log_records: int
    database_bytes: int
    snapshot_bytes: int


def measured(broker: Broker, cli: Cli) -> Level:
    rows = cli.json("diskless", "coordinators")
    kept = broker.directory / "diskless-coordinators"
    snapshots = sorted(kept.glob("*/*.checkpoint"))
    return Level(
        sum(row["batches"] for row in rows),
        sum(row["live_files"] for row in rows),
        sum(row["log_end_offset"] - row["log_start_offset"] for row in rows),
        sum(path.stat().st_size for path in kept.glob("*/state.sqlite")),
        snapshots[-1].stat().st_size,
    )


def test_what_a_coordinator_keeps_is_level(tmp_path: Path) -> None:
    # DC-38
    settings = {"diskless_metadata_snapshot_bytes": "4096"}
    with (
        consolidating_broker(tmp_path, **settings) as broker,
        Client(broker.bootstrap) as client,
    ):
        cli = Cli(broker)
        client.create("endless", configs={**CONSOLIDATING, "retention.bytes": "-1"})
        levels: list[Level] = []
        for number in range(ROUNDS):
            first, end = number * PER_ROUND, (number + 1) * PER_ROUND
            fill(client, "endless", first, end)
            until_pruned(client, "endless", end - PER_SEGMENT)
            levels.append(measured(broker, cli))
        early, late = levels[WARM_UP - 1 : ROUNDS // 2 + 1], levels[ROUNDS // 2 + 1 :]
        for name in Level._fields:
            before = max(getattr(one, name) for one in early)
            after = max(getattr(one, name) for one in late)
            assert after <= before * 1.5, (name, levels)
        assert levels[-1].batches <= 2 * PER_SEGMENT < PER_ROUND
        until(lambda: len(wal_objects(broker)) <= 2 * PER_SEGMENT, "pruned objects are deleted")
        # Nothing has expired.
        assert offset(client, "endless", EARLIEST) == 0
        read_all(client, "endless", 0, ROUNDS * PER_ROUND)
