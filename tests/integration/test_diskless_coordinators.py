"""Coordinators over real logs, threads and files: concurrent writers, snapshots, restarts."""

from __future__ import annotations

import asyncio
import random
import shutil
from pathlib import Path

from skylog.diskless.coordinator import requests as ask
from skylog.diskless.coordinator.registry import DisklessCoordinators
from skylog.diskless.coordinator.replica import ReplicaStore
from skylog.diskless.coordinator.settings import RuntimeSettings
from skylog.diskless.coordinator.state import digest
from skylog.diskless.plane import FileToCommit, FindRequest
from skylog.diskless.planes.topic import TopicPlane
from skylog.kernel.clock import SystemClock
from skylog.kernel.errors import ErrorCode
from skylog.kernel.executor import ThreadExecutor
from skylog.kernel.ids import Uuid
from skylog.log.config import LogConfig
from skylog.log.files import Files
from skylog.log.host import LogHost
from skylog.log.log import Log
from skylog.objects.keys import ObjectKey
from skylog.replication.partition import Partition
from tests.unit.diskless.batches import to_commit
from tests.unit.replication.support import Host, state

COORDINATORS = 2
PARTITIONS = 6
TOPIC = Uuid(b"topic-a---------")
METADATA = Uuid(b"metadata-topic--")
NAME = "__diskless_metadata"


class Node:
    """A broker's coordinators in one directory."""

    def __init__(self, directory: Path, snapshot_bytes: int = 8_192) -> None:
        self.clock = SystemClock()
        self.rng = random.Random(5)
        files = Files(64)
        self.background = ThreadExecutor(2, "background")
        # Small segments and frequent snapshots, so that the logs are pruned.
        config = LogConfig(segment_bytes=16_384)
        self.logs = []
        for index in range(COORDINATORS):
            path = str(directory / f"{NAME}-{index}")
            self.logs.append(Log.open((NAME, index), path, LogHost(files), config, 0))
        store = ReplicaStore(directory / "coordinators", files, self.background)
        settings = RuntimeSettings(snapshot_bytes=snapshot_bytes)
        self.coordinators = DisklessCoordinators(store, settings, self.clock)
        self.plane = TopicPlane(
            self.coordinators, lambda partition: partition[1] % COORDINATORS, self.rng
        )

    async def start(self) -> None:
        for index, log in enumerate(self.logs):
            partition = Partition(Host(0), NAME, index, METADATA, log)
            partition.update(state(0, log.latest_epoch + 1, [0]))
            self.coordinators.partition_led(index, partition)
        await self.plane.start()

    async def stop(self) -> None:
        await self.plane.close()
        for log in self.logs:
            log.close()
        self.background.close()

    async def digests(self) -> list[str]:
        runtimes = [self.coordinators.get(index) for index in range(COORDINATORS)]
        return [await runtime.look(lambda view, _: digest(view)) for runtime in runtimes]

    def file(self) -> FileToCommit:
        key = ObjectKey.new("wal", self.clock.now_ms(), self.rng).text
        batches = [
            to_commit(
                key,
                topic_id=TOPIC,
                partition=index,
                byte_offset=1 + 100 * index,
                byte_size=100,
                base_offset=0,
                last_offset=1,
                batch_max_timestamp=self.clock.now_ms(),
            )
            for index in range(PARTITIONS)
        ]
        return FileToCommit(object_key=key, size=1 + 100 * PARTITIONS, batches=batches)


def lose_caches(directory: Path) -> None:
    for path in directory.glob("coordinators/*/state.sqlite*"):
        path.unlink()


async def write(node: Node, files: int, offsets: list[list[int]]) -> None:
    for _ in range(files):
        results = await node.plane.commit_file(node.file())
        assert {result.error for result in results} == {ErrorCode.NONE}
        for index, result in enumerate(results):
            offsets[index].append(result.assigned_base_offset)


async def test_writers_snapshots_and_restarts(tmp_path: Path) -> None:
    # DC-26, DC-29, DC-32, DC-39, DC-42
    node = Node(tmp_path)
    await node.start()
    await node.plane.create_partitions([(TOPIC, "a", PARTITIONS)])
    offsets: list[list[int]] = [[] for _ in range(PARTITIONS)]
    await asyncio.gather(*(write(node, 25, offsets) for _ in range(12)))
    # Every offset once, for all writers.
    assert all(sorted(given) == list(range(0, 600, 2)) for given in offsets)
    await node.plane.delete_records([(TOPIC, 0, 100), (TOPIC, 1, 599)])
    await asyncio.gather(*(node.coordinators.get(n).snapshot() for n in range(COORDINATORS)))
    await write(node, 1, offsets)
    assert all(log.log_start_offset > 0 for log in node.logs)
    before = await node.digests()
    await node.stop()

    node = Node(tmp_path)
    await node.start()
    assert await node.digests() == before
    await write(node, 1, offsets)
    assert [given[-1] for given in offsets] == [602] * PARTITIONS
    before = await node.digests()
    await node.stop()

    lose_caches(tmp_path)
    node = Node(tmp_path)
    await node.start()
    assert await node.digests() == before
    find = [FindRequest(TOPIC, 1, 599, 1000)]
    (found,) = await node.plane.find_batches(find, 1000)
    assert [batch.stamp.base_offset for batch in found.batches] == [598, 600, 602]
    await node.stop()


async def test_a_copy_of_running_coordinators_has_everything_acknowledged(
    tmp_path: Path,
) -> None:
    """Acknowledged writes are in the files at any moment, whatever else is being written."""
    node = Node(tmp_path / "running", snapshot_bytes=1 << 30)
    await node.start()
    await node.plane.create_partitions([(TOPIC, "a", PARTITIONS)])
    offsets: list[list[int]] = [[] for _ in range(PARTITIONS)]
    writers = [asyncio.ensure_future(write(node, 10, offsets)) for _ in range(8)]
    await asyncio.wait(writers, return_when=asyncio.FIRST_COMPLETED)
    answered = [list(given) for given in offsets]
    copy = tmp_path / "crashed"
    for index in range(COORDINATORS):
        name = f"{NAME}-{index}"
        shutil.copytree(tmp_path / "running" / name, copy / name)
    await asyncio.gather(*writers)
    await node.stop()

    node = Node(copy)
    await node.start()
    ends = await node.plane.log_info([(TOPIC, index) for index in range(PARTITIONS)])
    for given, info in zip(answered, ends, strict=True):
        assert info.high_watermark > max(given)
    assert node.coordinators.get(0).applied_offset == node.logs[0].log_end_offset
    (listed,) = await node.coordinators.get(0).submit(ask.ListOffsets([(TOPIC, 0, -2)]))
    assert listed.offset == 0
    await node.stop()
