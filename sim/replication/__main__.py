"""``python -m sim.replication --seeds 2000 --first 0``: histories of a replicated partition.

A seed that fails is printed with its last events, and ``--first SEED --seeds 1`` replays it.
"""

from __future__ import annotations

import sys

from sim import seeds
from sim.replication.world import World

# Each of these must have happened somewhere, or the run proves little.
KINDS = (
    "ack",
    "cut",
    "delete",
    "drop",
    "expand",
    "fence",
    "kill",
    "lead",
    "loss",
    "pause",
    "power",
    "preferred",
    "reassign",
    "refused",
    "reset",
    "shrink",
    "straggle",
    "truncate",
    "unclean",
)


# And these where the topic is tiered.
TIERED_KINDS = (*KINDS, "copy", "local retention", "rebuild", "killed in rebuild", "no segment yet")


def play(seed: int) -> seeds.Played:
    return seeds.play(World(seed), seed)


def play_tiered(seed: int) -> seeds.Played:
    return seeds.play(World(seed, tiered=True), seed)


if __name__ == "__main__":
    sys.exit(seeds.main("sim.replication", __doc__, play, KINDS))
