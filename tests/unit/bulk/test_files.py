"""Objects in the store compared with files in the metadata."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skylog.bulk.files import Pair, Verdict, judge, side_by_side
from skylog.objects.holds import Hold
from skylog.objects.keys import ObjectKey
from skylog.objects.store import ObjectInfo
from skylog.wire.messages.list_diskless_files_response import ListedDisklessFile

CREATED_MS = 1_700_000_000_000


def key(number: int) -> str:
    return f"wal/{number:02x}/{CREATED_MS:012x}{number:020x}"


def stored(number: int, size: int = 10) -> ObjectInfo:
    return ObjectInfo(ObjectKey.parse(key(number)), size, CREATED_MS)


def known(number: int, live: int = 1, size: int = 10) -> ListedDisklessFile:
    return ListedDisklessFile(key(number), size, CREATED_MS, live, live * 9)


async def stream(items: Iterable[Any]) -> AsyncIterator[Any]:
    for item in items:
        yield item


@given(st.sets(st.integers(0, 255)), st.sets(st.integers(0, 255)))
async def test_every_key_comes_once_and_in_order(objects: set[int], files: set[int]) -> None:
    pairs = [
        pair
        async for pair in side_by_side(
            stream(stored(n) for n in sorted(objects)), stream(known(n) for n in sorted(files))
        )
    ]
    assert [pair.key for pair in pairs] == [key(n) for n in sorted(objects | files)]
    assert {pair.key for pair in pairs if pair.object} == {key(n) for n in objects}
    assert {pair.key for pair in pairs if pair.file} == {key(n) for n in files}


@pytest.mark.parametrize(
    ("pair", "threshold_ms", "verdict"),
    [
        (Pair(stored(1), known(1)), -1, Verdict.LIVE),
        (Pair(stored(1), known(1, live=0)), CREATED_MS + 1, Verdict.WAITING),
        (Pair(None, known(1)), -1, Verdict.MISSING),
        (Pair(None, known(1, live=0)), -1, Verdict.GONE),
        (Pair(stored(1), None), -1, Verdict.KEPT),
        (Pair(stored(1), None), CREATED_MS, Verdict.RECENT),
        (Pair(stored(1), None), CREATED_MS + 1, Verdict.ORPHAN),
    ],
)
def test_verdicts(pair: Pair, threshold_ms: int, verdict: Verdict) -> None:
    assert judge(pair, threshold_ms, []) is verdict


def test_what_is_staged_is_no_orphan_by_its_age() -> None:
    staged = ObjectKey.parse(f"staging/{key(1).removeprefix('wal/')}")
    pair = Pair(ObjectInfo(staged, 10, CREATED_MS), None)
    assert judge(pair, CREATED_MS + 1, []) is Verdict.STAGED


def test_what_is_held_is_no_orphan() -> None:
    pair = Pair(stored(1), None)
    assert judge(pair, CREATED_MS + 1, [Hold(0, CREATED_MS)]) is Verdict.HELD
    assert judge(pair, CREATED_MS + 1, [Hold(0, CREATED_MS - 1)]) is Verdict.ORPHAN


def test_sizes_are_compared() -> None:
    assert Pair(stored(1, 9), known(1, size=10)).size_differs
    assert not Pair(stored(1), known(1)).size_differs
    assert not Pair(None, known(1)).size_differs
