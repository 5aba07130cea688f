"""A replicated partition under loss, delays, crashes, lost tails, pauses, partitions and moves.

``python -m sim.replication`` plays more seeds; a seed that fails here is replayed by it.
"""

from __future__ import annotations

import pytest

from sim.replication.__main__ import KINDS, TIERED_KINDS, play, play_tiered
from sim.replication.world import World

SEEDS = 600
SHARES = 12
TIERED_SEEDS = 120


@pytest.fixture(autouse=True)
def invariants_raise(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SKYLOG_INVARIANT_RAISES", "1")


@pytest.mark.parametrize("share", range(SHARES))
def test_nothing_committed_is_lost_and_all_replicas_agree(share: int) -> None:
    for seed in range(share, SEEDS, SHARES):
        _, failure = play(seed)
        assert failure is None, failure


def test_every_kind_of_fault_happens() -> None:
    noted = [play(seed)[0] for seed in range(60)]
    missing = {kind for kind in KINDS if not any(each[kind] for each in noted)}
    assert not missing


@pytest.mark.parametrize("share", range(SHARES))
def test_replicas_of_a_tiered_topic_lose_nothing_either(share: int) -> None:
    """Records are copied and dropped locally, and rebuilds of replicas are killed half-way."""
    for seed in range(share, TIERED_SEEDS, SHARES):
        _, failure = play_tiered(seed)
        assert failure is None, failure


def test_every_kind_of_fault_happens_to_a_tiered_topic() -> None:
    noted = [play_tiered(seed)[0] for seed in range(30)]
    missing = {kind for kind in TIERED_KINDS if not any(each[kind] for each in noted)}
    assert not missing


@pytest.mark.parametrize("tiered", [False, True])
def test_a_seed_decides_everything(tiered: bool) -> None:
    for seed in (3, 40, 77):
        hashes = set()
        for _ in range(2):
            world = World(seed, tiered=tiered)
            world.play()
            hashes.add((world.trace_hash, world.rng.random()))
        assert len(hashes) == 1
