"""Plays seeds of a simulation in several processes."""

from __future__ import annotations

import argparse
import os
import sys
import traceback
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from typing import Protocol

Played = tuple[Counter[str], str | None]
# With fewer seeds some events may be missing.
_SEEDS_FOR_ALL_KINDS = 200


class World(Protocol):
    """One history. ``noted`` counts events, ``tail`` prints the last ones."""

    noted: Counter[str]

    @property
    def plan(self) -> object: ...

    @property
    def tail(self) -> Iterable[object]: ...

    def play(self) -> None: ...


def play(world: World, seed: int) -> Played:
    """The events of a seed's history, and the report if it failed."""
    try:
        world.play()
    except AssertionError as error:
        tail = "\n".join(map(str, world.tail))
        trace = "".join(traceback.format_exception(error))
        return world.noted, f"{tail}\n{trace}\n{world.plan}\nseed {seed}: {error}"
    return world.noted, None


def main(
    name: str, about: str | None, play_seed: Callable[[int], Played], kinds: Sequence[str]
) -> int:
    """The program: returns 1 if a seed fails, or if one of ``kinds`` never happened."""
    parser = argparse.ArgumentParser(prog=name, description=about)
    parser.add_argument("--seeds", type=int, default=2000, help="how many")
    parser.add_argument("--first", type=int, default=0, help="the first one")
    options = parser.parse_args()
    os.environ["SKYLOG_INVARIANT_RAISES"] = "1"
    noted: Counter[str] = Counter()
    seeds = range(options.first, options.first + options.seeds)
    with ProcessPoolExecutor() as pool:
        for found, failure in pool.map(play_seed, seeds, chunksize=20):
            noted += found
            if failure is not None:
                sys.stdout.write(failure + "\n")
                pool.shutdown(cancel_futures=True)
                return 1
    sys.stdout.write(f"{options.seeds} seeds: {dict(sorted(noted.items()))}\n")
    missing = [kind for kind in kinds if not noted[kind]]
    if missing and options.seeds >= _SEEDS_FOR_ALL_KINDS:
        sys.stdout.write(f"never happened: {', '.join(missing)}\n")
        return 1
    return 0
