"""A quorum of one: leading, committing, restarting, following."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import pytest

from skylog.kernel.errors import ErrorCode, KafkaError, StorageError
from skylog.kernel.limits import METADATA_BATCH_BYTES_MAX
from skylog.quorum.election import ElectionState
from skylog.quorum.node import LeaderAndEpoch
from skylog.quorum.voters import Endpoint
from skylog.replicated.log import LoadedBatch
from skylog.wire.batch import split_batches
from skylog.wire.control_records import ControlType, parse_control
from skylog.wire.records import decode_records
from tests.unit.quorum.support import NODE_ID, CrashFiles, Rig, started, tree, value

T = TypeVar("T")


class GatedExecutor:
    """Work waits until the test releases it."""

    def __init__(self) -> None:
        self.gate = asyncio.Event()
        self.gate.set()
        self.waiting = asyncio.Event()

    async def run(self, work: Callable[[], T]) -> T:
        if not self.gate.is_set():
            self.waiting.set()
            await self.gate.wait()
        return work()


def control_types(rig: Rig) -> list[list[int]]:
    """The control batches of the first segment."""
    content = (rig.storage.metadata_log / "00000000000000000000.log").read_bytes()
    return [
        [parse_control(record.key, record.value)[0] for record in decode_records(batch)]
        for batch in split_batches(content)
        if batch.is_control
    ]


def saved(rig: Rig) -> ElectionState:
    return ElectionState.from_json((rig.storage.metadata_log / "quorum-state").read_text())


async def test_it_leads_the_first_epoch_at_once(tmp_path: Path) -> None:
    rig = await started(tmp_path)
    assert rig.node.leader_and_epoch == LeaderAndEpoch(NODE_ID, 1)
    assert rig.node.is_leader
    assert rig.node.high_watermark == rig.node.end_offset == 3
    assert saved(rig) == ElectionState(1, NODE_ID)


async def test_the_first_epoch_begins_with_the_voters_and_later_ones_do_not(tmp_path: Path) -> None:
    for epoch in range(1, 4):
        rig = await started(tmp_path)
        assert rig.node.epoch == epoch
        await rig.node.close()
    first = [ControlType.LEADER_CHANGE, ControlType.KRAFT_VERSION, ControlType.KRAFT_VOTERS]
    assert control_types(rig) == [first, [ControlType.LEADER_CHANGE], [ControlType.LEADER_CHANGE]]


async def test_a_controller_that_has_moved_says_so_in_the_log(tmp_path: Path) -> None:
    await (await started(tmp_path)).node.close()
    moved = Endpoint("CONTROLLER", "elsewhere", 9999)
    rig = await started(tmp_path, endpoint=moved)
    assert rig.node.describe().nodes[0].listeners[0].host == "elsewhere"
    await rig.node.close()
    rig = await started(tmp_path, endpoint=moved)
    assert [len(types) for types in control_types(rig)] == [3, 3, 1]


async def test_the_epoch_grows_even_when_nothing_was_closed(tmp_path: Path) -> None:
    for epoch in range(1, 5):
        rig = await started(tmp_path)
        assert rig.node.epoch == epoch
        await rig.commit([value(epoch)])
    assert await rig.values() == [value(epoch)[1] for epoch in range(1, 5)]


async def test_a_crash_between_vote_and_leading_begins_the_next_epoch(tmp_path: Path) -> None:
    rig = Rig(tmp_path)
    voted = ElectionState(7, None, rig.storage.replica)
    (rig.storage.metadata_log / "quorum-state").write_text(voted.to_json())
    await rig.node.start()
    assert rig.node.epoch == 8


async def test_a_lost_quorum_state_never_reuses_an_epoch_of_the_log(tmp_path: Path) -> None:
    rig = await started(tmp_path)
    await rig.commit([value(1)])
    await rig.node.close()
    (rig.storage.metadata_log / "quorum-state").unlink()
    assert (await started(tmp_path)).node.epoch == 2


async def test_other_voters_are_refused(tmp_path: Path) -> None:
    rig = await started(tmp_path)
    await rig.node.close()
    meta = tmp_path / "meta.properties"
    other = "directory.id=d_YHR3mHSAqVnfwACqYwfw"
    lines = [line for line in meta.read_text().splitlines() if not line.startswith("directory.id")]
    meta.write_text("\n".join([*lines, other, ""]))
    with pytest.raises(StorageError, match="names other voters"):
        await Rig(tmp_path).node.start()


async def test_appends_of_one_turn_share_a_sync(tmp_path: Path) -> None:
    files = CrashFiles()
    rig = await started(tmp_path, files=files)
    before = files.syncs
    for number in range(20):
        assert rig.node.append([value(number)]) == rig.node.end_offset
    assert rig.node.high_watermark == 3
    await rig.settle()
    assert rig.node.high_watermark == rig.node.end_offset == 23
    assert files.syncs == before + 1


async def test_what_is_appended_during_a_sync_waits_for_the_next(tmp_path: Path) -> None:
    executor = GatedExecutor()
    rig = await started(tmp_path, executor=executor)
    moved: list[int] = []
    rig.node.on_high_watermark(moved.append)
    executor.gate.clear()
    rig.node.append([value(1)])
    await executor.waiting.wait()
    rig.node.append([value(2)])
    assert rig.node.high_watermark == 3
    executor.gate.set()
    await rig.settle()
    assert moved == [4, 5]


async def test_publishers_see_a_batch_before_the_high_watermark_is_told(tmp_path: Path) -> None:
    rig = await started(tmp_path)
    seen: list[object] = []
    rig.node.on_high_watermark(seen.append)
    await rig.node.subscribe(lambda batch: seen.append(batch.records))
    await rig.commit([value(1)], [value(2), value(3)])
    assert seen == [[value(1)], [value(2), value(3)], 6]


async def test_an_unsubscribed_listener_hears_nothing(tmp_path: Path) -> None:
    rig = await started(tmp_path)
    seen: list[object] = []
    for unsubscribe in (
        rig.node.on_high_watermark(seen.append),
        await rig.node.subscribe(seen.append),
    ):
        unsubscribe()
    await rig.commit([value(1)])
    assert seen == []


async def test_a_late_publisher_misses_nothing_and_sees_nothing_twice(tmp_path: Path) -> None:
    executor = GatedExecutor()
    rig = await started(tmp_path, executor=executor)
    await rig.commit([value(1)], [value(2)])
    seen: list[LoadedBatch] = []
    executor.gate.clear()
    subscribing = asyncio.ensure_future(rig.node.subscribe(seen.append))
    await executor.waiting.wait()
    rig.node.append([value(3)])
    executor.gate.set()
    await subscribing
    await rig.settle()
    await rig.commit([value(4)])
    records = [record for batch in seen for record in batch.records]
    assert records == [value(number) for number in (1, 2, 3, 4)]
    assert [batch.base_offset for batch in seen] == [3, 4, 5, 6]


async def test_too_large_a_batch_is_refused_and_changes_nothing(tmp_path: Path) -> None:
    rig = await started(tmp_path)
    overhead = 61 + 20
    with pytest.raises(KafkaError) as raised:
        rig.node.append([(None, bytes(METADATA_BATCH_BYTES_MAX))])
    assert raised.value.code is ErrorCode.RECORD_LIST_TOO_LARGE
    assert rig.node.end_offset == 3
    await rig.commit([(None, bytes(METADATA_BATCH_BYTES_MAX - overhead))])
    assert rig.node.high_watermark == 4
    assert rig.failures == []


async def test_a_closed_node_takes_no_appends(tmp_path: Path) -> None:
    rig = await started(tmp_path)
    rig.node.append([value(1)])
    await rig.node.close()
    with pytest.raises(KafkaError) as raised:
        rig.node.append([value(2)])
    assert raised.value.code is ErrorCode.NOT_CONTROLLER
    await rig.node.close()
    assert await (await started(tmp_path)).values() == [value(1)[1]]


async def test_describe_tells_of_the_leader_and_its_voters(tmp_path: Path) -> None:
    rig = await started(tmp_path)
    await rig.commit([value(1)])
    response = rig.node.describe()
    partition = response.topics[0].partitions[0]
    assert response.topics[0].topic_name == "__cluster_metadata"
    assert (partition.leader_id, partition.leader_epoch, partition.high_watermark) == (1, 1, 4)
    (voter,) = partition.current_voters
    assert (voter.replica_id, voter.replica_directory_id) == (1, rig.storage.replica.directory_id)
    assert voter.log_end_offset == 4
    assert voter.last_caught_up_timestamp == voter.last_fetch_timestamp == rig.clock.now_ms()
    assert response.nodes[0].node_id == NODE_ID
    assert response.nodes[0].listeners[0].port == 9093


async def test_a_log_in_use_is_refused_before_anything_is_written(tmp_path: Path) -> None:
    rig = await started(tmp_path)
    before = tree(tmp_path)
    other = Rig(tmp_path)
    with pytest.raises(StorageError, match="in use by another broker"):
        await other.node.start()
    await other.node.close()
    assert tree(tmp_path) == before
    await rig.node.close()
    assert (await started(tmp_path)).node.epoch == 2


class TestFailingDisk:
    async def test_a_failed_sync_is_final(self, tmp_path: Path) -> None:
        files = CrashFiles()
        rig = await started(tmp_path, files=files)
        files.fails.add("sync")
        rig.node.append([value(1)])
        await rig.settle()
        assert rig.node.high_watermark == 3
        assert len(rig.failures) == 1
        files.fails.clear()
        with pytest.raises(KafkaError) as raised:
            rig.node.append([value(2)])
        assert raised.value.code is ErrorCode.KAFKA_STORAGE_ERROR
        await rig.node.close()
        assert rig.node.high_watermark == 3

    async def test_a_full_disk_refuses_and_recovers(self, tmp_path: Path) -> None:
        files = CrashFiles()
        rig = await started(tmp_path, files=files)
        files.fails.add("write")
        with pytest.raises(KafkaError) as raised:
            rig.node.append([value(1)])
        assert not raised.value.ambiguous
        files.fails.clear()
        await rig.commit([value(2)])
        assert await rig.values() == [value(2)[1]]
        assert rig.failures == []

    async def test_a_write_of_unknown_end_fails_the_node(self, tmp_path: Path) -> None:
        files = CrashFiles()
        rig = await started(tmp_path, files=files)
        files.fails |= {"write", "truncate"}
        with pytest.raises(KafkaError) as raised:
            rig.node.append([value(1)])
        assert raised.value.ambiguous
        assert len(rig.failures) == 1

    async def test_an_election_that_cannot_be_saved_makes_no_leader(self, tmp_path: Path) -> None:
        await (await started(tmp_path)).node.close()
        files = CrashFiles()
        rig = Rig(tmp_path, files=files)
        files.fails.add("rename")
        with pytest.raises(StorageError, match="election state cannot be saved"):
            await rig.node.start()
        files.fails.clear()
        with pytest.raises(KafkaError) as raised:
            rig.node.append([value(1)])
        assert raised.value.code is ErrorCode.KAFKA_STORAGE_ERROR
        assert (rig.node.end_offset, rig.node.high_watermark) == (3, 0)


class TestPowerCut:
    @pytest.mark.parametrize("torn", [0.0, 0.1, 0.5, 0.9])
    async def test_the_unsynced_tail_is_lost_and_nothing_else(
        self, tmp_path: Path, torn: float
    ) -> None:
        files = CrashFiles()
        rig = await started(tmp_path, files=files)
        await rig.commit(*([value(number)] for number in range(10)))
        rig.node.append([value(number, size=500) for number in range(10, 20)])
        files.power_cut(rig.storage.metadata_log, torn)
        rig = await started(tmp_path)
        assert await rig.values() == [value(number)[1] for number in range(10)]
        await rig.commit([value(99)])
        assert rig.node.epoch == 2
        assert (await rig.values())[-1] == value(99)[1]

    async def test_a_batch_is_kept_whole_or_not_at_all(self, tmp_path: Path) -> None:
        files = CrashFiles()
        rig = await started(tmp_path, files=files)
        batches = [[value(number), value(number)] for number in range(4)]
        for batch in batches:
            rig.node.append(batch)
        files.power_cut(rig.storage.metadata_log, 0.6)
        found = [list(batch.records) for batch in await (await started(tmp_path)).load()]
        assert found == batches[: len(found)]
        assert 0 < len(found) < 4
