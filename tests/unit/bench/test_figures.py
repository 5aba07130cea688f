"""The arithmetic of measurements: ratios, spreads, verdicts, and the table."""

from __future__ import annotations

import io
import os

import pytest
from rich.console import Console

from bench import table
from bench.measure import Figure, Goal, spread, usage
from bench.scenarios import Plan


def figure(skylog: list[float], kafka: list[float], goal: Goal) -> Figure:
    return Figure("produce", "MB/s", goal, skylog, kafka)


@pytest.mark.parametrize(
    ("skylog", "kafka", "goal", "met"),
    [
        ([100.0], [100.0], Goal(1.0, higher_is_better=True), True),
        ([99.0], [100.0], Goal(1.0, higher_is_better=True), False),
        ([70.0], [100.0], Goal(0.7), True),
        ([71.0], [100.0], Goal(0.7), False),
        ([3.0], [], Goal(3, ratio=False), True),
        ([3.1], [], Goal(3, ratio=False), False),
        ([1.0], [], Goal(1.0), False),  # without a comparison the goal is not met
    ],
)
def test_a_goal_is_met_up_to_its_limit(
    skylog: list[float], kafka: list[float], goal: Goal, met: bool
) -> None:
    assert figure(skylog, kafka, goal).met is met


def test_where_nothing_was_promised_nothing_is_missed() -> None:
    row = Figure("median", "ms", None, [2.0], [1.0])
    assert row.met is None
    console = Console(width=120, record=True, file=io.StringIO())
    console.print(table.table([row], "figures"))
    text = console.export_text()
    assert "2.00 ×" in text
    assert "MISSED" not in text


def test_a_ratio_is_of_medians() -> None:
    row = figure([1.0, 10.0, 2.0], [4.0, 1.0, 400.0], Goal(1.0))
    assert row.ratio == pytest.approx(0.5)


def test_a_spread_is_half_of_what_lies_between_the_extremes() -> None:
    assert spread([90.0, 100.0, 130.0]) == pytest.approx(0.2)
    assert spread([0.0, 0.0]) == 0.0


def test_sides_take_turns_and_change_places() -> None:
    turns = list(Plan("", rounds=2).turns())
    assert turns == [(0, "skylog"), (0, "kafka"), (1, "kafka"), (1, "skylog")]


def test_usage_counts_this_process() -> None:
    seen = usage(os.getpid())
    assert seen.cpu_seconds > 0
    assert seen.resident_bytes > 1_000_000


def test_a_losing_cell_is_printed_as_such() -> None:
    rows = [
        figure([50.0], [100.0], Goal(1.0, higher_is_better=True)),
        Figure("idle CPU", "%", Goal(3, ratio=False), [0.5], note="then 99 MB resident"),
    ]
    console = Console(width=120, record=True, file=io.StringIO())
    console.print(table.table(rows, "figures"))
    console.print(table.bars(rows))
    text = console.export_text()
    lost, won = (line for line in text.splitlines() if "produce (" in line or "idle" in line)
    assert "MISSED" in lost
    assert "0.50 ×" in lost
    assert "met" in won
    assert "then 99 MB resident" in text
    assert text.count("0.50 ×") == 2  # in the table and beside its bar
