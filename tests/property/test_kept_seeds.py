"""Bugs that a seed once showed stay fixed."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from importlib import import_module
from typing import Any

import hypothesis
import pytest

import sim.consolidation.__main__ as consolidation
import sim.quorum.__main__ as quorum
import sim.replication.__main__ as replication
import sim.tiered.__main__ as tiered
from tests.property.kept_seeds import Kept, kept, parse

SIMULATIONS = {
    "sim.consolidation": consolidation.play,
    "sim.quorum": quorum.play,
    "sim.replication": replication.play,
    "sim.tiered": tiered.play,
}


def player(what: str) -> Callable[[int], object]:
    """Plays the history of a seed; AssertionError if it fails."""
    if what in SIMULATIONS:

        def play(seed: int) -> None:
            _, failure = SIMULATIONS[what](seed)
            assert failure is None, failure

        return play
    file, _, name = what.partition("::")
    test: Any = getattr(import_module(f"tests.property.{file.removesuffix('.py')}"), name)
    if hasattr(test, "hypothesis"):

        def draw(seed: int) -> None:
            hypothesis.seed(seed)(test)
            try:
                test()
            finally:
                hypothesis.seed(None)(test)

        return draw
    assert list(inspect.signature(test).parameters) == ["seed"], f"{what}: no seed decides it"
    return test  # type: ignore[no-any-return]


@pytest.mark.parametrize("each", kept(), ids=str)
def test_a_seed_that_once_failed_passes(each: Kept, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SKYLOG_INVARIANT_RAISES", "1")
    player(each.what)(each.seed)


def test_a_history_that_fails_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    def play(seed: int) -> Any:
        return None, f"seed {seed} lost a record"

    monkeypatch.setitem(SIMULATIONS, "sim.quorum", play)
    with pytest.raises(AssertionError, match="seed 7 lost a record"):
        player("sim.quorum")(7)


def test_tests_can_be_named_too() -> None:
    player("test_coordinator_cluster.py::test_one_writer_as_the_model_says")(1_000)
    player("test_settings_text.py::test_properties_read_back")(1)
    with pytest.raises(AssertionError, match="no seed decides it"):
        player("test_quorum_simulation.py::test_every_kind_of_fault_happens")


def test_a_line_that_says_too_little_is_refused() -> None:
    with pytest.raises(ValueError, match=r"seeds\.txt:2: not `what seed why`: sim\.quorum 7"):
        parse("# seeds\nsim.quorum 7\n")
