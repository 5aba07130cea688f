"""Faults that are planted into consolidation, one at a time, are found by some history."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from skylog.broker.tiered.pruning import CoordinatorPruner
from skylog.tiered import expirer
from skylog.tiered.consolidation import prune
from skylog.tiered.copying import deleting
from skylog.tiered.metadata.machine import RemoteLog
from tests.consolidation_world import History

SEEDS = 120
Patch = pytest.MonkeyPatch


def what_is_not_remote_is_pruned(patch: Patch) -> None:
    def end(self: Any, candidate: Any, whole: object) -> int:
        return int(candidate.extent.high_watermark)

    patch.setattr(prune.PrunePass, "_target", end)


def one_record_more_is_pruned(patch: Patch) -> None:
    """And the batch that it is in with it."""
    known = prune.target

    def more(ripe: Any, checked: Any) -> int | None:
        end = known(ripe, checked)
        return None if end is None else end + 3

    patch.setattr(prune, "target", more)


def a_prune_moves_the_log_start(patch: Patch) -> None:
    known = CoordinatorPruner.prune_to

    async def moves(self: Any, targets: Any) -> Any:
        await self._plane.delete_records([(*key, offset) for key, offset in targets])
        return await known(self, targets)

    patch.setattr(CoordinatorPruner, "prune_to", moves)


def segments_go_before_the_log_start(patch: Patch) -> None:
    async def runs(self: Any, hosted: Any, remote: Any) -> None:
        expiry = self._expired(hosted, remote)
        for segment in expiry.segments:
            await self._runner.run(deleting(segment), hosted, sleep=self._pause)
        await hosted.source.start_at(expiry.log_start_offset)

    patch.setattr(expirer.Expirer, "_run", runs)


def older_leaders_are_heard(patch: Patch) -> None:
    patch.setattr(RemoteLog, "_is_void", lambda self, epoch: False)


BUGS: list[Callable[[Patch], None]] = [
    what_is_not_remote_is_pruned,
    one_record_more_is_pruned,
    a_prune_moves_the_log_start,
    segments_go_before_the_log_start,
    older_leaders_are_heard,
]


@pytest.mark.parametrize("plant", BUGS, ids=lambda bug: bug.__name__)
def test_a_planted_bug_is_found(plant: Callable[[Patch], None], monkeypatch: Patch) -> None:
    plant(monkeypatch)
    for seed in range(SEEDS):
        history = History(seed, retention_bytes=(-1, 1000, 2000)[seed % 3])
        try:
            asyncio.run(history.run())
        except AssertionError:
            return
    pytest.fail(f"not found in {SEEDS} histories")
