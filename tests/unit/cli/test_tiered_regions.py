"""What is where: runs of offsets, holes, and the bar that shows them."""

from __future__ import annotations

import itertools

from hypothesis import given
from hypothesis import strategies as st

from skylog.cli.tiered_describe import BAR_WIDTH, bar, joined, missing

RUNS = st.lists(st.tuples(st.integers(0, 60), st.integers(0, 60)), max_size=8)


def offsets(runs: list[tuple[int, int]]) -> set[int]:
    return {offset for start, end in runs for offset in range(start, end)}


@given(RUNS, st.integers(0, 60), st.integers(0, 60))
def test_runs_and_what_they_miss(runs: list[tuple[int, int]], start: int, end: int) -> None:
    together = joined(runs)
    assert offsets(together) == offsets(runs)
    assert all(low < high for low, high in together)
    assert all(one[1] < other[0] for one, other in itertools.pairwise(together))
    assert offsets(missing(together, start, end)) == set(range(start, end)) - offsets(runs)


def test_a_bar_shows_what_each_part_is() -> None:
    remote = [(0, 30)]
    assert bar(0, 40, remote, 20) == "█" * 20 + "▓" * 10 + "░" * 10
    assert bar(10, 14, remote, 12) == "██▓▓"
    assert bar(5, 5, remote, 0) == ""


def test_the_smallest_hole_is_seen() -> None:
    found = bar(0, 1_000_000, [(0, 499_999), (500_000, 900_000)], 800_000)
    assert len(found) == BAR_WIDTH
    assert found.count("!") == 1
    assert bar(0, 4, [], 2) == "!!░░"
