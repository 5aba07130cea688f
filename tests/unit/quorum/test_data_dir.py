"""The current code opens the directories of all earlier releases."""

from __future__ import annotations

import shutil
from pathlib import Path

from skylog.quorum.bootstrap import bootstrap_records
from tests.unit.quorum.data_dir import AFTER_SNAPSHOT, BEFORE_SNAPSHOT, GOLDEN, encoded
from tests.unit.quorum.support import started, value

CONTENT = [*bootstrap_records(), *encoded(BEFORE_SNAPSHOT), *encoded(AFTER_SNAPSHOT)]


async def test_version_1_is_opened_and_written_on(tmp_path: Path) -> None:
    directory = tmp_path / "data"
    shutil.copytree(GOLDEN, directory)
    rig = await started(directory)
    assert rig.storage.cluster_id == "OLTmUuRNR_K3DZ4mDicTZQ"
    assert rig.node.epoch == 3
    batches = await rig.load()
    assert [record for batch in batches for record in batch.records] == CONTENT
    assert batches[0].from_snapshot
    await rig.commit([value(1)])
    await rig.node.close()
    rig = await started(directory)
    assert await rig.values() == [*(record[1] for record in CONTENT), value(1)[1]]
