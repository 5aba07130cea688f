"""Consolidation on the Postgres plane: pruned there, read from both tiers, also on new disks."""

from __future__ import annotations

import asyncio
import shutil
from pathlib import Path

import pytest

from skylog.cli.restore import restore_node
from skylog.kernel.settings import load_settings
from skylog.testing import Broker
from tests.consolidating import CONSOLIDATING, SETTINGS
from tests.contract.postgres_server import server
from tests.integration.broker_client import Client
from tests.integration.test_consolidation_restore import keep_backup
from tests.integration.tiered_topics import (
    EARLIEST,
    EARLIEST_LOCAL,
    alter,
    delete_records,
    fill,
    offsets,
    read_all,
    until_offset,
)
from tests.waiting import until

pytestmark = pytest.mark.interop


def settings(bucket: Path) -> dict[str, str]:
    address = asyncio.run(server().create_database())
    return {
        **SETTINGS,
        "diskless.control.plane": "postgres",
        "diskless.control.plane.postgres.connection.string": address.reveal(),
        "diskless.storage.url": bucket.as_uri(),
        "diskless.metadata.backup.interval.ms": "100",
        "diskless.tiering.prune.delay.ms": "200",
        "log.level": "ERROR",
    }


def test_a_topic_on_postgres_is_consolidated(tmp_path: Path) -> None:
    bucket, disk = tmp_path / "bucket", tmp_path / "disk"
    given = settings(bucket)
    with Broker(given, directory=disk) as broker, Client(broker.bootstrap) as client:
        client.create("t", 1, CONSOLIDATING)
        fill(client, "t", 0, 23)
        until_offset(client, "t", EARLIEST_LOCAL, 20)
        read_all(client, "t", 0, 23)
        assert offsets(client, "t", -1, -2, -5, -6) == [23, 0, 19, 20]
        assert delete_records(client, "t", 7) == 7
        backup = broker.node.maintenance.backup
        assert backup is not None
        broker.run(backup.run_once())
        # Finished and pruned after the last backup; the database knows of it all the same.
        keep_backup(bucket / "backup", tmp_path / "kept")
        fill(client, "t", 23, 33)
        until_offset(client, "t", EARLIEST_LOCAL, 30)
    shutil.rmtree(disk)
    shutil.rmtree(bucket / "backup")
    (tmp_path / "kept").rename(bucket / "backup")
    overrides = [f"{name}={text}" for name, text in {**given, "log.dirs": str(disk)}.items()]
    _, remote = asyncio.run(restore_node(load_settings(None, {}, overrides)))
    assert remote is not None
    assert (remote.held, remote.unreadable) == ([], [])
    with Broker(given, directory=disk) as broker, Client(broker.bootstrap) as client:
        until(lambda: client.fetch("t", 7).error_code == 0)
        read_all(client, "t", 7, 33)
        fill(client, "t", 33, 48)
        until_offset(client, "t", EARLIEST_LOCAL, 45)
        read_all(client, "t", 7, 48)
        # The leader's expiry moves the start that the database has.
        alter(client, "t", retention_bytes="1")
        until_offset(client, "t", EARLIEST, 45)
        read_all(client, "t", 45, 48)


def test_a_restore_leaves_the_start_to_the_database(tmp_path: Path) -> None:
    """A segment is damaged, for which the WAL is kept: only the database knows that it is."""
    bucket, disk = tmp_path / "bucket", tmp_path / "disk"
    given = settings(bucket) | {"diskless.tiering.prune.delay.ms": "3600000"}
    with Broker(given, directory=disk) as broker, Client(broker.bootstrap) as client:
        client.create("t", 1, CONSOLIDATING)
        fill(client, "t", 0, 23)
        until(lambda: offsets(client, "t", -5) == [19])
        backup = broker.node.maintenance.backup
        assert backup is not None
        broker.run(backup.run_once())
    (manifest,) = bucket.rglob(f"{0:020}-*.rsm-manifest")
    manifest.unlink()
    shutil.rmtree(disk)
    overrides = [f"{name}={text}" for name, text in {**given, "log.dirs": str(disk)}.items()]
    _, remote = asyncio.run(restore_node(load_settings(None, {}, overrides)))
    assert remote is not None
    assert [one.start_offset for one in remote.missing] == [0]
    with Broker(given, directory=disk) as broker, Client(broker.bootstrap) as client:
        until(lambda: offsets(client, "t", -5) == [19], "it is copied again")
        assert offsets(client, "t", -2) == [0]
        read_all(client, "t", 0, 23)
