"""``python -m sim.quorum --seeds 2000 --first 0``: simulate metadata quorums.

A seed that fails is printed with its last events, and ``--first SEED --seeds 1`` replays it.
"""

from __future__ import annotations

import sys

from sim import seeds
from sim.quorum.world import World

# Each of these must have happened somewhere, or the run proves little.
KINDS = (
    "append",
    "change",
    "crash",
    "cut",
    "election",
    "install",
    "loss",
    "new disk",
    "partition",
    "resign",
    "snapshot",
    "truncate",
)


def play(seed: int) -> seeds.Played:
    return seeds.play(World(seed), seed)


if __name__ == "__main__":
    sys.exit(seeds.main("sim.quorum", __doc__, play, KINDS))
