"""Tests of the suite for ranges and pins: planes with one bug each, and the check that finds it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from skylog.diskless.coordinator import machine, queries
from skylog.diskless.coordinator import memory as state
from skylog.diskless.coordinator.machine import CoordinatorMachine
from skylog.diskless.plane import FileToCommit
from skylog.diskless.planes.memory import MemoryPlane
from skylog.diskless.rules import commits, pins, ranges
from skylog.kernel.errors import ErrorCode
from tests.contract import plane_pins, plane_ranges
from tests.contract.planting import Bugs, Patch, planted_in, require_found, wrap

PARTS = (plane_pins, plane_ranges)
BUGS: Bugs = {}
caught_by = planted_in(BUGS)


# --- Ranges ---------------------------------------------------------------------------------------


@caught_by("a_plan_keeps_to_its_range")
def splits_reach_beyond_their_range(patch: Patch) -> None:
    patch.setattr(ranges, "clamped", lambda split, _span: split)


@caught_by("splits_are_dense_and_end_when_full")
def a_split_ends_one_batch_too_late(patch: Patch) -> None:
    wrap(patch, ranges, "split_page", lambda original, b, s, size: original(b, s, size + 100))


@caught_by("splits_are_dense_and_end_when_full")
def the_last_split_is_lost(patch: Patch) -> None:
    def shorter(original: Any, *args: Any) -> Any:
        page = original(*args)
        return page._replace(splits=page.splits[:-1])

    wrap(patch, ranges, "split_page", shorter)


@caught_by("a_plan_is_made_in_pages")
def a_full_page_ends_the_plan(patch: Patch) -> None:
    def whole(original: Any, *args: Any) -> Any:
        return original(*args)._replace(batches=0)

    wrap(patch, ranges, "split_page", whole)


@caught_by("a_plan_is_made_in_pages")
def pages_have_no_end(patch: Patch) -> None:
    wrap(patch, ranges, "within", lambda original, b, span, _limit: original(b, span, 1 << 30))


@caught_by("old_batches_are_left_out_of_plans")
def plans_ignore_age(patch: Patch) -> None:
    def ageless(original: Any, batches: Any, span: Any, size: int) -> Any:
        return original(batches, span._replace(min_timestamp=-1), size)

    wrap(patch, ranges, "split_page", ageless)


@caught_by("old_batches_are_left_out_of_plans")
def skipped_bytes_are_not_counted(patch: Patch) -> None:
    wrap(patch, ranges, "split_page", lambda o, *args: o(*args)._replace(skipped_bytes=0))


@caught_by("ranges_begin_at_the_wal_start")
def a_plan_from_the_log_start_fails_after_a_prune(patch: Patch) -> None:
    def strict(original: Any, request: Any, log: Any) -> Any:
        start = log.log_start_offset if request.start_offset == -2 else request.start_offset
        return original(replace(request, start_offset=start), log)

    wrap(patch, ranges, "span_of", strict)


@caught_by("ranges_must_exist")
def a_range_may_end_above_the_high_watermark(patch: Patch) -> None:
    def mild(original: Any, request: Any, log: Any) -> Any:
        return original(replace(request, end_offset=min(request.end_offset, 30)), log)

    wrap(patch, ranges, "span_of", mild)


@caught_by("ranges_must_exist")
def deleted_offsets_are_planned(patch: Patch) -> None:
    wrap(
        patch,
        ranges,
        "span_of",
        lambda original, request, log: (ErrorCode.NONE, original(request, log)[1]),
    )


@caught_by("located_batches_are_those_of_a_find")
def the_batch_that_straddles_the_start_is_missed(patch: Patch) -> None:
    def late(original: Any, batches: Any, span: Any, limit: int) -> Any:
        return original((b for b in batches if b.stamp.base_offset >= span.start), span, limit)

    wrap(patch, ranges, "within", late)


@caught_by("old_batches_are_not_located")
def old_batches_are_located(patch: Patch) -> None:
    async def all_of_them(original: Any, self: Any, requests: Any, limit: int) -> Any:
        return await original(self, [replace(r, min_timestamp=-1) for r in requests], limit)

    wrap(patch, MemoryPlane, "locate_batches", all_of_them)


# --- Pins -----------------------------------------------------------------------------------------


@caught_by("a_staged_file_is_committed_as_a_whole")
def a_staged_file_is_committed_in_part(patch: Patch) -> None:
    patch.setattr(commits, "_require_all", lambda *_: None)


@caught_by("a_pinned_file_is_committed_at_any_age")
def pins_are_ignored(patch: Patch) -> None:
    patch.setattr(commits, "is_open", lambda *_: False)


@caught_by("a_pinned_file_is_committed_at_any_age")
def a_pin_never_ends(patch: Patch) -> None:
    patch.setattr(commits, "is_open", lambda until_ms, _now_ms: until_ms is not None)


@caught_by("a_pinned_file_is_committed_at_any_age")
def old_staged_files_need_no_pin(patch: Patch) -> None:
    patch.setattr(commits, "check_age", lambda *_: None)


@caught_by("a_pinned_object_is_known")
def pinned_objects_are_orphans(patch: Patch) -> None:
    patch.setattr(pins, "keeps", lambda *_: False)


@caught_by("a_pinned_object_is_known")
def a_pin_ends_at_once(patch: Patch) -> None:
    patch.setattr(pins, "keeps", lambda until_ms, now_ms, _rules: now_ms < (until_ms or 0))


@caught_by("a_pinned_object_is_known")
def a_pin_keeps_its_object_for_ever(patch: Patch) -> None:
    patch.setattr(pins, "keeps", lambda until_ms, *_: until_ms is not None)


@caught_by("a_pin_remembers_the_answer")
def a_deleted_file_is_committed_again(patch: Patch) -> None:
    patch.setattr(CoordinatorMachine, "_committed_pin", lambda _self, _key: None)


@caught_by("a_pin_can_be_prolonged")
def a_later_pin_shortens_an_earlier_one(patch: Patch) -> None:
    async def shortening(original: Any, self: Any, requests: Any) -> Any:
        errors = await original(self, requests)
        for request, error in zip(requests, errors, strict=True):
            if error is None:
                pin = self._state.pins.get(request.object_key)
                self._state.pins.put(pin._replace(expires_ms=request.expires_ms))
        return errors

    wrap(patch, MemoryPlane, "pin_files", shortening)


@caught_by("a_pin_can_be_prolonged")
def what_has_expired_can_be_prolonged(patch: Patch) -> None:
    patch.setattr(pins, "is_open", lambda until_ms, _now_ms: until_ms is not None)


@caught_by("a_pin_can_be_prolonged")
def objects_of_any_age_are_pinned(patch: Patch) -> None:
    wrap(patch, pins, "check_pin", lambda o, pin, now, rules, _: o(pin, now, rules, 1 << 62))


@caught_by("a_released_pin_has_no_effect")
def a_release_does_nothing(patch: Patch) -> None:
    async def nothing(_original: Any, _self: Any, _keys: Any) -> None: ...

    wrap(patch, MemoryPlane, "release_pins", nothing)


@caught_by("a_released_pin_has_no_effect")
def a_release_takes_all_pins(patch: Patch) -> None:
    async def everything(_original: Any, self: Any, _keys: Any) -> None:
        self._state.pins.expire(1 << 62)

    wrap(patch, MemoryPlane, "release_pins", everything)


@caught_by("only_staged_objects_are_pinned")
def anything_is_pinned(patch: Patch) -> None:
    patch.setattr(pins, "check_pin", lambda *_: None)


@caught_by("only_staged_objects_are_pinned")
def pins_have_no_maximum_lifetime(patch: Patch) -> None:
    patch.setattr(pins, "STAGED_PIN_LIFETIME_MS_MAX", 1 << 60)


@caught_by("asking_for_a_commit_commits_nothing")
def asking_commits(patch: Patch) -> None:
    async def eager(original: Any, self: Any, file: FileToCommit, **more: Any) -> Any:
        return await original(self, replace(file, known_only=False), **more)

    wrap(patch, MemoryPlane, "commit_file", eager)


@pytest.mark.parametrize("name", BUGS)
async def test_the_suite_finds(name: str, monkeypatch: Patch) -> None:
    await require_found(BUGS, name, monkeypatch)


def test_bugs_are_planted_in_what_runs() -> None:
    """The machine must look its rules up in their modules, or a patch would not reach it."""
    assert machine.pins is queries.pins is pins
    assert state.ranges is queries.ranges is ranges
