"""``python -m sim.consolidation --seeds 1000 --first 0``: histories of a consolidating partition.

A seed that fails is printed with its last events, and ``--first SEED --seeds 1`` replays it.
"""

from __future__ import annotations

import io
import shutil
import sys
import tempfile
from pathlib import Path

from sim import seeds
from sim.consolidation.world import World
from skylog.kernel.clock import SystemClock
from skylog.kernel.logging import Level, hub

MEMORY = Path("/dev/shm")
# Each of these must have happened somewhere, or the run proves little.
KINDS = (
    "answer lost",
    "damage",
    "delete records",
    "deposed",
    "elected",
    "full disk",
    "given up",
    "kill",
    "late delete",
    "late prune",
    "late publish",
    "late put",
    "lost",
    "orphan",
    "pause",
    "power cut",
    "produce",
    "prune",
    "record effective",
    "record void",
    "retention",
    "rot",
    "same leader",
    "snapshot",
    "start",
    "wal cleaned",
)


def play(seed: int) -> seeds.Played:
    """A line with a traceback is a failure, too: a task that nobody waits for has failed."""
    lines = io.StringIO()
    hub().direct(lines, as_json=False, clock=SystemClock())
    hub().set_level("tiered", Level.ERROR)
    directory = tempfile.mkdtemp(prefix="skylog-sim-", dir=_memory())
    try:
        noted, failure = seeds.play(World(seed, directory), seed)
        text = lines.getvalue()
        if failure is None and "Traceback" in text:
            failure = f"{text}\nseed {seed}: a task failed"
        return noted, failure
    finally:
        shutil.rmtree(directory, ignore_errors=True)
        hub().unset_level("tiered")
        hub().direct(None, as_json=False, clock=SystemClock())


def _memory() -> str | None:
    """Where files cost little, if there is such a place."""
    return str(MEMORY) if MEMORY.is_dir() else None


if __name__ == "__main__":
    sys.exit(seeds.main("sim.consolidation", __doc__, play, KINDS))
