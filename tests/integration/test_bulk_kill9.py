"""kill -9 of the broker: pins and the results of staged commits survive."""

from __future__ import annotations

from pathlib import Path

import pytest

from skylog.client import bulk
from tests.integration.bulk_support import HOUR_MS, Stage, cluster, now_ms
from tests.integration.diskless_support import read_all
from tests.integration.diskless_uploader import new_topic
from tests.integration.processes import BrokerProcess
from tests.integration.wire_client import Wire

NONE = 0


@pytest.mark.parametrize("cache", [True, False], ids=["cache", "no-cache"])
@pytest.mark.parametrize("snapshot_bytes", ["1", "20971520"], ids=["snapshot", "log"])
async def test_pinned_objects_are_committed_after_kill_9(
    tmp_path: Path, snapshot_bytes: str, cache: bool
) -> None:
    directory = tmp_path / "data"
    settings = {"diskless.metadata.snapshot.bytes": snapshot_bytes, "log.level": "ERROR"}
    with BrokerProcess(directory, settings) as broker:
        with Wire(broker.address) as wire:
            topic_id = new_topic(wire, "t")
        async with cluster(broker.address) as opened:
            info = await bulk.staging_info(opened)
            # Too old to be committed without their pins.
            staged = [
                Stage(info.prefix, age_ms=HOUR_MS)
                .add("t", topic_id, b"%d" % number, timestamp=now_ms() - HOUR_MS)
                .put(info.storage_url)
                for number in range(3)
            ]
            pins = await bulk.pin_staged(opened, "w", 1, staged, 24 * HOUR_MS)
            assert [pin.error for pin in pins] == [NONE] * 3
            first = await bulk.commit_staged(opened, "w", 1, staged[:1])
            assert first[0].batches[0].base_offset == 0
        broker.kill()
        if not cache:
            removed = list(directory.rglob("state.sqlite*"))
            assert removed
            for path in removed:
                path.unlink()
        broker.start()
        async with cluster(broker.address) as opened:
            results = await bulk.commit_staged(opened, "w", 1, staged)
            assert [result.error for result in results] == [NONE] * 3
            batches = [result.batches[0] for result in results]
            assert [(one.base_offset, one.duplicate) for one in batches] == [
                (0, True),
                (1, False),
                (2, False),
            ]
        assert read_all(broker.address, "t", {0: 3}) == {0: [b"0", b"1", b"2"]}
