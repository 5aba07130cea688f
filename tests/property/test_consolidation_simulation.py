"""A consolidating partition under lost and late requests, elections, pauses, kills, power cuts and
damaged files: put together, copied, pruned, deleted from, expired.

``python -m sim.consolidation`` plays more seeds; a seed that fails here is replayed by it.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from sim.consolidation.__main__ import KINDS, play
from sim.consolidation.world import World

SEEDS = 300
SHARES = 6


@pytest.fixture(autouse=True)
def invariants_raise(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SKYLOG_INVARIANT_RAISES", "1")


@pytest.mark.parametrize("share", range(SHARES))
def test_every_record_can_be_read_at_every_moment_and_nothing_is_left_behind(share: int) -> None:
    for seed in range(share, SEEDS, SHARES):
        _, failure = play(seed)
        assert failure is None, failure


def test_every_kind_of_fault_happens() -> None:
    missing = set(KINDS)
    for seed in range(SEEDS):
        missing -= set(play(seed)[0])
        if not missing:
            return
    pytest.fail(f"never happened: {missing}")


def test_a_seed_decides_everything(tmp_path: Path) -> None:
    for seed in (3, 40, 77):
        hashes = set()
        for life in ("first", "second"):
            directory = tmp_path / f"{seed}-{life}"
            directory.mkdir()
            world = World(seed, str(directory))
            world.play()
            hashes.add((world.trace_hash, world.rng.random()))
        assert len(hashes) == 1
