"""Inspection of coordinators: loading ones are reported, uncommitted data is not counted."""

from __future__ import annotations

import asyncio

import pytest

from skylog.diskless.coordinator import inspection
from skylog.diskless.coordinator import requests as ask
from skylog.diskless.plane import FileInfo
from skylog.kernel.errors import ErrorCode, KafkaError
from tests.unit.diskless.coordinator.support import T0, TOPIC, home

WAIT_SECONDS = 30


def test_a_file_of_two_coordinators_is_free_when_both_let_go() -> None:
    live = FileInfo("k", 100, 7, 2, 60, -1, (0, 1))
    free = FileInfo("k", 100, 5, 0, 0, 9, (0, 1))
    assert inspection.merged(live, free) == FileInfo("k", 100, 5, 2, 60, -1, (0, 1))
    later = FileInfo("k", 100, 6, 0, 0, 12, (0, 1))
    assert inspection.merged(free, later) == FileInfo("k", 100, 5, 0, 0, 12, (0, 1))


@pytest.mark.parametrize("in_memory", [True, False])
async def test_what_is_not_committed_is_not_counted(in_memory: bool) -> None:
    async with home(in_memory=in_memory) as broker:
        await broker.lead(0)
        runtime = broker.runtime(0)
        await runtime.submit(ask.CreatePartitions([(TOPIC, "t", [0])]))
        partition = broker.partitions[0]
        partition.held, partition.isr = True, (0, 1)
        pending = asyncio.ensure_future(runtime.submit(ask.CommitFile(broker.file((T0, 3)))))
        async with asyncio.timeout(WAIT_SECONDS):
            while partition.log.log_end_offset < 2:  # noqa: ASYNC110 - nothing tells of it
                await asyncio.sleep(0.001)
            info = await inspection.describe(runtime)
            assert (info.partitions, info.batches, info.live_files) == (1, 0, 0)
            assert (info.high_watermark, info.applied_offset, info.log_end_offset) == (1, 1, 2)
            assert await inspection.list_files(broker.coordinators, "", 10) == []
            partition.commit()
            await pending
            info = await inspection.describe(runtime)
            assert (info.batches, info.live_files, info.applied_offset) == (1, 1, 2)
            assert len(await inspection.list_files(broker.coordinators, "", 10)) == 1


async def test_a_coordinator_that_is_loading_says_so() -> None:
    async with home() as broker:
        await broker.lead(0)
        runtime = broker.runtime(0)
        runtime.unload()
        info = await inspection.describe(runtime)
        assert (info.coordinator_id, info.state, info.partitions) == (0, "unloaded", -1)
        with pytest.raises(KafkaError) as refused:
            await inspection.list_files(broker.coordinators, "", 10)
        assert refused.value.code is ErrorCode.NOT_COORDINATOR


async def test_a_snapshot_is_told() -> None:
    async with home() as broker:
        await broker.lead(0)
        runtime = broker.runtime(0)
        await runtime.submit(ask.CreatePartitions([(TOPIC, "t", [0])]))
        assert (await inspection.describe(runtime)).snapshot_offset == -1
        await runtime.snapshot()
        info = await inspection.describe(runtime)
        assert info.snapshot_offset == 1
        assert info.snapshot_ms > 0
