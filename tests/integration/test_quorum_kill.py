"""kill −9 of a node under load: everything that it reported as committed is there afterwards."""

from __future__ import annotations

import random
import subprocess
import sys
from pathlib import Path

from tests.integration.quorum_writer import CONFIG
from tests.unit.quorum.support import started, value

ROOT = Path(__file__).parents[2]
KILLS = 4


def run_and_kill(directory: Path, lines: int) -> list[int]:
    """Let a writer commit ``lines`` records, kill it, and return every record that it reported."""
    command = [sys.executable, "-m", "tests.integration.quorum_writer", str(directory)]
    writer = subprocess.Popen(
        command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )
    assert writer.stdout is not None
    told = [writer.stdout.readline() for _ in range(lines)]
    writer.kill()
    told += writer.stdout.readlines()
    writer.wait()
    writer.stdout.close()
    return [int(line) for line in told if line.endswith("\n")]


async def test_nothing_reported_is_lost(tmp_path: Path) -> None:
    rng = random.Random(5)
    epoch = 0
    for _ in range(KILLS):
        told = run_and_kill(tmp_path, lines=rng.randrange(50, 400))
        assert len(told) >= 50
        rig = await started(tmp_path, config=CONFIG)
        found = await rig.values()
        assert found == [value(number)[1] for number in range(len(found))]
        assert len(found) > max(told)
        assert rig.node.epoch > epoch + 1
        epoch = rig.node.epoch
        await rig.node.close()
