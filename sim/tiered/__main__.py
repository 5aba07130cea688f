"""``python -m sim.tiered --seeds 2000 --first 0``: histories of a tiered partition.

A seed that fails is printed with its last events, and ``--first SEED --seeds 1`` replays it.
"""

from __future__ import annotations

import sys

from sim import seeds
from sim.tiered.world import World
from skylog.kernel.logging import Level, hub

# Each of these must have happened somewhere, or the run proves little.
KINDS = (
    "ack",
    "answer lost",
    "copy",
    "delete records",
    "deposed",
    "elected",
    "epochs lost",
    "expire",
    "given up",
    "kill",
    "late delete",
    "late publish",
    "late put",
    "local retention",
    "lost",
    "orphan",
    "pause",
    "power cut",
    "rebuild",
    "record effective",
    "record unknown",
    "record void",
    "same leader",
    "shrink",
    "snapshot",
    "start",
    "transaction",
    "unclean",
)


def play(seed: int) -> seeds.Played:
    hub().set_level("tiered", Level.FATAL)  # most faults here are expected
    try:
        return seeds.play(World(seed), seed)
    finally:
        hub().unset_level("tiered")


if __name__ == "__main__":
    sys.exit(seeds.main("sim.tiered", __doc__, play, KINDS))
