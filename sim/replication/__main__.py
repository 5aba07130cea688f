"""``python -m sim.replication --seeds 2000 --first 0``: histories of a replicated partition.

A seed that fails is printed with its last events, and ``--first SEED --seeds 1`` replays it.
"""

from __future__ import annotations

import argparse
import os
import sys
import traceback
from collections import Counter
from concurrent.futures import ProcessPoolExecutor

from sim.replication.world import World

# Every one of these must have happened to somebody, or the run proves little.
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


def play(seed: int) -> tuple[Counter[str], str | None]:
    """What happened in a seed's history, and the report of its failure."""
    world = World(seed)
    try:
        world.play()
    except AssertionError as error:
        tail = "\n".join(world.tail)
        trace = "".join(traceback.format_exception(error))
        return world.noted, f"{tail}\n{trace}\n{world.plan}\nseed {seed}: {error}"
    return world.noted, None


def main() -> int:
    parser = argparse.ArgumentParser(prog="sim.replication", description=__doc__)
    parser.add_argument("--seeds", type=int, default=2000, help="how many")
    parser.add_argument("--first", type=int, default=0, help="the first one")
    parser.add_argument("--processes", type=int, default=None, help="how many at once")
    options = parser.parse_args()
    os.environ["SKYLOG_INVARIANT_RAISES"] = "1"
    noted: Counter[str] = Counter()
    seeds = range(options.first, options.first + options.seeds)
    with ProcessPoolExecutor(options.processes) as pool:
        for found, failure in pool.map(play, seeds, chunksize=20):
            noted += found
            if failure is not None:
                sys.stdout.write(failure + "\n")
                pool.shutdown(cancel_futures=True)
                return 1
    sys.stdout.write(f"{options.seeds} seeds: {dict(sorted(noted.items()))}\n")
    missing = [kind for kind in KINDS if not noted[kind]]
    if missing and options.seeds >= 200:
        sys.stdout.write(f"never happened: {', '.join(missing)}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
