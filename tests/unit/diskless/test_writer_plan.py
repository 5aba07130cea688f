"""When a file is closed."""

from __future__ import annotations

import math

import pytest

from skylog.diskless.writer.plan import (
    EARLY_UPLOADS_MAX,
    ClosingPlan,
    PutBudget,
    Reason,
    WriterSettings,
)


def plan(**settings: object) -> ClosingPlan:
    return ClosingPlan(WriterSettings(**settings), 0)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("size", "age_ms", "uploads", "expected"),
    [
        (100, 0, 0, Reason.SIZE),
        (150, 0, 9, Reason.SIZE),
        (99, 250, 9, Reason.AGE),
        (99, 249, EARLY_UPLOADS_MAX, None),
        (1, 0, EARLY_UPLOADS_MAX - 1, Reason.EARLY),
    ],
)
def test_closed_by_size_by_age_or_early(
    size: int, age_ms: int, uploads: int, expected: Reason | None
) -> None:
    # ENG-11, ENG-51
    closing = plan(buffer_bytes_max=100)
    assert closing.reason_to_close(size, 1_000, uploads, 1_000 + age_ms) is expected


def test_without_adaptive_closing_only_size_and_age_close() -> None:
    # ENG-11
    closing = plan(adaptive=False, buffer_bytes_max=100)
    assert closing.reason_to_close(99, 0, 0, 249) is None
    assert closing.look_again_ms(0, 0, 100) == 150
    assert closing.reason_to_close(99, 0, 0, 250) is Reason.AGE


def test_a_request_is_never_split_but_may_be_alone() -> None:
    closing = plan(buffer_bytes_max=100)
    assert not closing.must_close_before(0, 1_000)
    assert closing.must_close_before(60, 41)
    assert not closing.must_close_before(60, 40)


def test_the_budget_of_uploads_holds_over_ten_seconds() -> None:
    # ENG-11, ENG-12
    closing = plan(puts_per_second=4.0)
    early = 0
    for now_ms in range(0, 10_000, 5):
        if closing.reason_to_close(1, now_ms, 0, now_ms) is Reason.EARLY:
            closing.closed(now_ms)
            early += 1
    assert 40 <= early <= 44  # four a second, and the burst that was saved


def test_an_early_close_waits_for_a_token() -> None:
    closing = plan(puts_per_second=4.0)
    for _ in range(4):
        closing.closed(0)
    assert closing.reason_to_close(1, 0, 0, 0) is None
    assert closing.look_again_ms(0, 0, 0) == 250
    assert closing.reason_to_close(1, 200, 0, 250) is Reason.EARLY


def test_a_store_that_costs_nothing_has_no_budget() -> None:
    budget = PutBudget(math.inf, 0)
    for _ in range(1_000):
        budget.spend(0)
        assert budget.available(0)
    assert budget.wait_ms(0) == 0
