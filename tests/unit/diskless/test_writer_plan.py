"""When a file is closed."""

from __future__ import annotations

import math

import pytest

from skylog.diskless.writer.plan import (
    BEHIND_MS_MIN,
    EARLY_FILES_MAX,
    FILES_REMEMBERED,
    ClosingPlan,
    PutBudget,
    Reason,
    WriterSettings,
)


def plan(**settings: object) -> ClosingPlan:
    return ClosingPlan(WriterSettings(**settings), 0)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("size", "age_ms", "under_way", "expected"),
    [
        (100, 0, 0, Reason.SIZE),
        (150, 0, 9, Reason.SIZE),
        (99, 250, 9, Reason.AGE),
        (99, 249, EARLY_FILES_MAX, None),
        (1, 0, 0, Reason.EARLY),
        (1, 0, 1, None),
        (1, int(BEHIND_MS_MIN), 1, Reason.EARLY),
    ],
)
def test_closed_by_size_by_age_or_early(
    size: int, age_ms: int, under_way: int, expected: Reason | None
) -> None:
    # ENG-11, ENG-51
    closing = plan(buffer_bytes_max=100)
    assert closing.reason_to_close(size, 1_000, under_way, 1, 1_000 + age_ms) is expected


def test_without_adaptive_closing_only_size_and_age_close() -> None:
    # ENG-11
    closing = plan(adaptive=False, buffer_bytes_max=100)
    assert closing.reason_to_close(99, 0, 0, 1, 249) is None
    assert closing.look_again_ms(0, 0, 100) == 150
    assert closing.reason_to_close(99, 0, 0, 1, 250) is Reason.AGE


def test_a_file_waits_for_those_who_were_just_answered() -> None:
    closing = plan()
    closing.is_complete(5)
    closing.closed(5, 0)
    closing.committed(40.0, 1_000)
    assert closing.reason_to_close(1, 1_000, 0, 4, 1_000) is None
    assert closing.reason_to_close(1, 1_000, 0, 5, 1_000) is Reason.EARLY


def test_it_waits_for_a_part_of_what_a_file_takes() -> None:
    closing = plan()
    closing.is_complete(5)
    closing.closed(5, 0)
    for _ in range(50):
        closing.committed(40.0, 1_000)
    # It was opened before, but only now nothing is in flight.
    assert closing.reason_to_close(1, 980, 0, 4, 1_009) is None
    assert closing.look_again_ms(980, 0, 1_004) == pytest.approx(6, abs=0.1)
    assert closing.reason_to_close(1, 980, 0, 4, 1_010) is Reason.EARLY
    # Behind another file it collects for longer.
    assert closing.reason_to_close(1, 1_000, 1, 5, 1_019) is None
    assert closing.look_again_ms(1_000, 1, 1_004) == pytest.approx(16, abs=0.1)
    assert closing.reason_to_close(1, 1_000, 1, 5, 1_020) is Reason.EARLY


def test_how_many_come_together_is_forgotten() -> None:
    closing = plan()
    closing.is_complete(5)
    closing.closed(1, 0)
    closing.committed(40.0, 0)
    assert closing.reason_to_close(1, 0, 0, 1, 0) is None
    for _ in range(FILES_REMEMBERED):
        closing.closed(1, 0)
    assert closing.reason_to_close(1, 0, 0, 1, 0) is Reason.EARLY


def test_the_budget_of_uploads_holds_over_ten_seconds() -> None:
    # ENG-11, ENG-12
    closing = plan(puts_per_second=4.0)
    early = 0
    for now_ms in range(0, 10_000, 5):
        if closing.reason_to_close(1, now_ms, 0, 1, now_ms) is Reason.EARLY:
            closing.closed(1, now_ms)
            early += 1
    assert 40 <= early <= 44  # four a second, and the saved burst


def test_an_early_close_waits_for_a_token() -> None:
    closing = plan(puts_per_second=4.0)
    for _ in range(4):
        closing.closed(1, 0)
    assert closing.reason_to_close(1, 0, 0, 1, 0) is None
    assert closing.look_again_ms(0, 0, 0) == 250
    assert closing.reason_to_close(1, 200, 0, 1, 250) is Reason.EARLY


def test_a_store_that_costs_nothing_has_no_budget() -> None:
    budget = PutBudget(math.inf, 0)
    for _ in range(1_000):
        budget.spend(0)
        assert budget.available(0)
    assert budget.wait_ms(0) == 0
