"""A tiered partition under lost and late requests, elections, pauses, kills and power cuts.

``python -m sim.tiered`` plays more seeds; a seed that fails here is replayed by it.
"""

from __future__ import annotations

import pytest

from sim.tiered.__main__ import KINDS, play
from sim.tiered.world import World

SEEDS = 2000
SHARES = 20


@pytest.fixture(autouse=True)
def invariants_raise(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SKYLOG_INVARIANT_RAISES", "1")


@pytest.mark.parametrize("share", range(SHARES))
def test_every_acknowledged_record_can_be_read_and_nothing_is_left_behind(share: int) -> None:
    for seed in range(share, SEEDS, SHARES):
        _, failure = play(seed)
        assert failure is None, failure


def test_every_kind_of_fault_and_of_void_record_happens() -> None:
    missing = set(KINDS)
    for seed in range(SEEDS):
        missing -= set(play(seed)[0])
        if not missing:
            return
    pytest.fail(f"never happened: {missing}")


def test_a_seed_decides_everything() -> None:
    for seed in (3, 40, 77):
        hashes = set()
        for _ in range(2):
            world = World(seed)
            world.play()
            hashes.add((world.trace_hash, world.rng.random()))
        assert len(hashes) == 1
