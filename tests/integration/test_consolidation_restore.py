"""Disks are lost after the WAL was pruned: what was backed up can be read, from both tiers. # T13

Segments that were finished after the backup, and reach above what it has of their partition, are
held and told; their records are lost as those of newer WAL objects are.
"""

from __future__ import annotations

import asyncio
import contextlib
import shutil
from functools import partial
from pathlib import Path

import pytest

from skylog.cli.restore import restore_node
from skylog.diskless.files.manifest import Manifest
from skylog.diskless.files.restore import RestoreReport
from skylog.kernel.settings import load_settings
from skylog.testing.cluster import Cluster, ClusterNode, start_together
from skylog.tiered.rebuild import RebuiltLogs
from tests.consolidating import CONSOLIDATING, SETTINGS, consolidating_broker
from tests.integration.broker_client import Client
from tests.integration.test_cluster_restore import backed_up, marks
from tests.integration.tiered_topics import (
    EARLIEST_LOCAL,
    alter,
    delete_records,
    fill,
    offsets,
    read_all,
)
from tests.waiting import until

BACKED_UP = {
    **SETTINGS,
    "diskless.metadata.backup.interval.ms": "100",
    "diskless.tiering.prune.delay.ms": "200",
    "log.level": "ERROR",
}
OPTIONS = {name.replace(".", "_"): text for name, text in BACKED_UP.items()}


def restore(bucket: Path, directory: Path, node_id: int = 1) -> tuple[RestoreReport, RebuiltLogs]:
    given = {
        **BACKED_UP,
        "node.id": str(node_id),
        "log.dirs": str(directory),
        "diskless.storage.url": bucket.as_uri(),
    }
    settings = load_settings(None, {}, [f"{name}={text}" for name, text in given.items()])
    report, remote = asyncio.run(restore_node(settings))
    assert remote is not None
    return report, remote


def until_pruned(client: Client, topic: str, offset: int) -> None:
    until(lambda: client.offset(topic, EARLIEST_LOCAL).offset == offset, f"not pruned to {offset}")


def keep_backup(directory: Path, to: Path) -> None:
    """Copy backups while newer ones are made, and old ones deleted."""

    def kept() -> bool:
        shutil.rmtree(to, ignore_errors=True)
        with contextlib.suppress(shutil.Error, FileNotFoundError):
            shutil.copytree(directory, to)
        newest: dict[Path, Path] = {path.parent: path for path in sorted(to.rglob("manifests/*"))}
        manifests = [Manifest.from_bytes(path.read_bytes()) for path in newest.values()]
        keys = [part.key for one in manifests for log in one.logs for part in log.parts]
        # What was made while the rest was copied; a slow machine would never get all at once.
        for name in {key.rpartition("/")[2] for key in keys}:
            for path in directory.rglob(name):
                with contextlib.suppress(FileNotFoundError):
                    shutil.copy(path, to / path.relative_to(directory))
        names = {path.name for path in to.rglob("*")}
        return bool(keys) and all(key.rpartition("/")[2] in names for key in keys)

    until(kept)


def reads(client: Client) -> bool:
    """Until a broker knows its remote segments, a client has to ask again."""
    return int(client.fetch("t", 0).error_code) == 0


def test_a_backup_from_before_a_prune(tmp_path: Path) -> None:
    bucket, directory, kept = tmp_path / "bucket", tmp_path / "data", tmp_path / "kept"
    with (
        consolidating_broker(bucket, directory=directory, **OPTIONS) as broker,
        Client(broker.bootstrap) as client,
    ):
        client.create("t", 1, CONSOLIDATING)
        fill(client, "t", 0, 23)
        until_pruned(client, "t", 20)
        backup = broker.node.maintenance.backup
        assert backup is not None
        broker.run(backup.run_once())
        keep_backup(bucket / "backup", kept)
        fill(client, "t", 23, 43)
        until_pruned(client, "t", 40)
    shutil.rmtree(directory)
    shutil.rmtree(bucket / "backup")
    kept.rename(bucket / "backup")

    report, remote = restore(bucket, directory)
    (partition,) = report.partitions
    assert (partition.log_start_offset, partition.high_watermark) == (0, 23)
    assert report.missing == []
    assert remote.count == 4
    assert sorted(one.start_offset for one in remote.held) == [20, 25, 30, 35]
    held = {path for path in bucket.rglob("*.log") if int(path.name[:20]) >= 20}

    with (
        consolidating_broker(bucket, directory=directory, **OPTIONS) as broker,
        Client(broker.bootstrap) as client,
    ):
        until(partial(reads, client))
        read_all(client, "t", 0, 23)
        assert offsets(client, "t", -2, -1) == [0, 23]
        # It goes on, and is consolidated and pruned again, beside what is held.
        fill(client, "t", 23, 48)
        until_pruned(client, "t", 45)
        read_all(client, "t", 0, 48)
    assert len(held) == 4 and all(path.exists() for path in held)


@pytest.mark.parametrize("released", [False, True])
def test_what_one_restore_held_another_one_does_not_take(tmp_path: Path, released: bool) -> None:
    """Other records have been written at those offsets since."""
    bucket, directory, kept = tmp_path / "bucket", tmp_path / "data", tmp_path / "kept"
    with (
        consolidating_broker(bucket, directory=directory, **OPTIONS) as broker,
        Client(broker.bootstrap) as client,
    ):
        client.create("t", 1, CONSOLIDATING)
        fill(client, "t", 0, 23)
        until(lambda: offsets(client, "t", -5) == [19])
        backup = broker.node.maintenance.backup
        assert backup is not None
        broker.run(backup.run_once())
        keep_backup(bucket / "backup", kept)
        for number in range(23, 43):
            assert client.produce("t", b"9%05d" % number).error_code == 0
        until(lambda: offsets(client, "t", -5) == [39])
    shutil.rmtree(directory)
    shutil.rmtree(bucket / "backup")
    kept.rename(bucket / "backup")
    _, remote = restore(bucket, directory)
    held = {one.id for one in remote.held}
    assert len(held) == 4

    with (
        consolidating_broker(bucket, directory=directory, **OPTIONS) as broker,
        Client(broker.bootstrap) as client,
    ):
        until(partial(reads, client))
        fill(client, "t", 23, 48)
        until(lambda: offsets(client, "t", -5) == [44])
        stage = next(one.stage for one in broker.node.maintenance.passes if one.name == "backup")
        runs = stage.runs
        until(lambda: stage.runs >= runs + 2, "a backup was begun since")
    shutil.rmtree(directory)
    if released:  # and no scan has deleted it yet
        for path in list(bucket.rglob("holds")):
            shutil.rmtree(path)
    report, remote = restore(bucket, directory)
    assert report.partitions[0].high_watermark == 48
    assert {one.id for one in (remote.spare if released else remote.held)} == held
    with (
        consolidating_broker(bucket, directory=directory, **OPTIONS) as broker,
        Client(broker.bootstrap) as client,
    ):
        until(partial(reads, client))
        read_all(client, "t", 0, 48)


def test_segments_that_were_deleted_since_the_backup_are_not_waited_for(tmp_path: Path) -> None:
    """They are in neither tier: the log begins behind them, and readers are not stopped there."""
    bucket, directory, kept = tmp_path / "bucket", tmp_path / "data", tmp_path / "kept"
    with (
        consolidating_broker(bucket, directory=directory, **OPTIONS) as broker,
        Client(broker.bootstrap) as client,
    ):
        client.create("t", 1, CONSOLIDATING)
        fill(client, "t", 0, 43)
        until_pruned(client, "t", 40)
        backup = broker.node.maintenance.backup
        assert backup is not None
        broker.run(backup.run_once())
        keep_backup(bucket / "backup", kept)
        delete_records(client, "t", 21)
        until(lambda: min(int(path.name[:20]) for path in bucket.rglob("*.rsm-manifest")) == 20)
    shutil.rmtree(directory)
    shutil.rmtree(bucket / "backup")
    kept.rename(bucket / "backup")

    report, remote = restore(bucket, directory)
    assert report.partitions[0].log_start_offset == 0
    assert len(remote.missing) == 4
    with (
        consolidating_broker(bucket, directory=directory, **OPTIONS) as broker,
        Client(broker.bootstrap) as client,
    ):
        until(lambda: offsets(client, "t", -2) == [20], "the log begins with what there is")
        read_all(client, "t", 20, 43)
        fill(client, "t", 43, 53)
        until_pruned(client, "t", 50)
        read_all(client, "t", 20, 53)


def test_objects_that_were_pruned_since_the_backup_are_not_missed(tmp_path: Path) -> None:
    """The restored coordinator still names them, but remote segments have their records."""
    bucket, directory, kept = tmp_path / "bucket", tmp_path / "data", tmp_path / "kept"
    with (
        consolidating_broker(bucket, directory=directory, **OPTIONS) as broker,
        Client(broker.bootstrap) as client,
    ):
        client.create("t", 1, {**CONSOLIDATING, "remote.log.copy.disable": "true"})
        fill(client, "t", 0, 20)
        backup = broker.node.maintenance.backup
        assert backup is not None
        broker.run(backup.run_once())
        keep_backup(bucket / "backup", kept)
        wal = [path for path in (bucket / "wal").rglob("*") if path.is_file()]
        fill(client, "t", 20, 21)
        alter(client, "t", remote_log_copy_disable="false")
        until_pruned(client, "t", 20)
    shutil.rmtree(directory)
    shutil.rmtree(bucket / "backup")
    kept.rename(bucket / "backup")
    assert wal
    for path in wal:
        path.unlink()

    report, remote = restore(bucket, directory)
    assert report.missing == []
    assert (remote.count, remote.held) == (4, [])
    with (
        consolidating_broker(bucket, directory=directory, **OPTIONS) as broker,
        Client(broker.bootstrap) as client,
    ):
        until(partial(reads, client))
        read_all(client, "t", 0, 20)
        until_pruned(client, "t", 20)
        read_all(client, "t", 0, 20)


def logs(node: ClusterNode, topic: str) -> dict[str, bytes]:
    return {path.parent.name: path.read_bytes() for path in node.directory.glob(f"{topic}-*/*.log")}


def test_nodes_with_different_backups_restore_the_same(tmp_path: Path) -> None:
    """The last backup of one is older than that of the other; whoever leads then, both have the
    same coordinators, and the same remote segments."""
    bucket = tmp_path / "bucket"
    given = {
        **BACKED_UP,
        "diskless.storage.url": bucket.as_uri(),
        "diskless.metadata.topic.num.partitions": "2",
        "diskless.metadata.topic.replication.factor": "2",
        "diskless.metadata.topic.min.isr": "1",
        "rlmm.config.remote.log.metadata.topic.replication.factor": "2",
        "rlmm.config.remote.log.metadata.topic.min.isr": "1",
        "offsets.topic.num.partitions": "1",
    }
    with Cluster(brokers=2, controllers=1, settings=given, directory=tmp_path / "nodes") as cluster:
        controller, brokers = cluster.controllers[0], cluster.brokers
        with Client(brokers[0].bootstrap) as client:
            client.create("t", 1, CONSOLIDATING)
            fill(client, "t", 0, 23)
            until_pruned(client, "t", 20)
            for node in (controller, *brokers):
                until(partial(backed_up, bucket, node, marks(node)))
            old = bucket / "backup" / f"node-{brokers[0].node_id}"
            keep_backup(old, tmp_path / "old")
            fill(client, "t", 23, 33)
            until_pruned(client, "t", 30)
            until(partial(backed_up, bucket, brokers[1], marks(brokers[1])))
        for node in (controller, *brokers):
            node.kill()
            shutil.rmtree(node.directory)
        shutil.rmtree(old)
        (tmp_path / "old").rename(old)

        restored = [restore(bucket, node.directory, node.node_id) for node in brokers]
        reports, remotes = [one[0] for one in restored], [one[1] for one in restored]
        assert [one.high_watermark for report in reports for one in report.partitions] == [33, 33]
        assert reports[0].missing == reports[1].missing == []
        for topic in ("__remote_log_metadata", "__diskless_metadata"):
            assert logs(brokers[0], topic) == logs(brokers[1], topic) != {}
        assert remotes[0].held == remotes[1].held == []
        plain(bucket, controller)
        start_together([controller, *brokers])
        for broker in brokers:
            with Client(broker.bootstrap) as client:
                until(partial(reads, client))
                read_all(client, "t", 0, 33)


def plain(bucket: Path, node: ClusterNode) -> None:
    """A controller has no remote segments to restore."""
    given = [
        f"node.id={node.node_id}",
        f"log.dirs={node.directory}",
        f"diskless.storage.url={bucket.as_uri()}",
    ]
    asyncio.run(restore_node(load_settings(None, {}, given)))
