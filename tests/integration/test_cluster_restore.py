"""A cluster that lost all disks is restored from its bucket, with separate controllers."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Mapping
from functools import partial
from pathlib import Path

from skylog.cli.restore import restore_node
from skylog.diskless.files.backup_reader import latest_backup
from skylog.diskless.files.restore import RestoreReport
from skylog.kernel.errors import StorageError
from skylog.kernel.settings import load_settings
from skylog.kernel.topics import CLUSTER_METADATA, DISKLESS_METADATA
from skylog.objects.open import open_store
from skylog.testing.cluster import Cluster, ClusterNode, start_together
from tests.integration.test_diskless_restore import consume, create, produce
from tests.waiting import until

Marks = Mapping[tuple[str, int], int]


def marks(node: ClusterNode) -> Marks:
    """The high watermarks of the logs that a backup of this node must contain."""
    services = node.node._services
    found = {(CLUSTER_METADATA, 0): services.quorum.stored.high_watermark}
    for log in services.logs.logs():
        if log.topic == DISKLESS_METADATA:
            found[log.topic, log.partition] = log.high_watermark
    return found


def backed_up(bucket: Path, node: ClusterNode, wanted: Marks) -> bool:
    return asyncio.run(_backed_up(bucket, node, wanted))


async def _backed_up(bucket: Path, node: ClusterNode, wanted: Marks) -> bool:
    store = open_store(bucket.as_uri(), load_settings(None, {}, []).storage)
    try:
        manifest = await latest_backup(store, node.node_id)
    except StorageError:
        return False
    finally:
        await store.close()
    ends = {(log.topic, log.partition): log.end_offset for log in manifest.logs}
    return all(ends.get(key, -1) >= mark for key, mark in wanted.items())


def restore(bucket: Path, node: ClusterNode) -> RestoreReport:
    settings = load_settings(
        None,
        {},
        [
            f"node.id={node.node_id}",
            f"log.dirs={node.directory}",
            f"diskless.storage.url={bucket.as_uri()}",
        ],
    )
    return asyncio.run(restore_node(settings))[0]


def test_a_cluster_is_restored_with_its_controllers(tmp_path: Path) -> None:
    bucket, values = tmp_path / "bucket", [f"value-{n}" for n in range(30)]
    given = {
        "diskless.storage.url": bucket.as_uri(),
        "diskless.metadata.topic.num.partitions": "2",
        "diskless.metadata.backup.interval.ms": "100",
        "log.level": "ERROR",
    }
    with Cluster(brokers=1, controllers=1, settings=given, directory=tmp_path / "nodes") as cluster:
        nodes = [*cluster.controllers, *cluster.brokers]
        create(cluster, "orders")
        produce(cluster, "orders", values)
        for node in nodes:
            until(partial(backed_up, bucket, node, marks(node)))
        for node in nodes:
            node.kill()
            shutil.rmtree(node.directory)
        reports = [restore(bucket, node) for node in nodes]
        assert {report.cluster_id for report in reports} == {cluster.cluster_id}
        # Offsets are in the coordinators' logs, which are on brokers.
        assert (reports[0].partitions, reports[0].newer) == ([], [])
        assert [one.high_watermark for one in reports[1].partitions] == [10] * 3
        start_together(nodes)
        assert consume(cluster, "orders", 30) == set(values)
