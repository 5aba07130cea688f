"""Which snapshots may be deleted."""

from __future__ import annotations

import pytest

from skylog.quorum.retention import KnownSnapshot, Retention
from skylog.quorum.snapshots import SnapshotId

NOW = 1_000_000


def snapshots(*sizes_and_ages: tuple[int, int]) -> list[KnownSnapshot]:
    return [
        KnownSnapshot(SnapshotId(index * 10, 1), size, NOW - age)
        for index, (size, age) in enumerate(sizes_and_ages)
    ]


@pytest.mark.parametrize(
    ("retention", "known", "log_bytes", "first_kept"),
    [
        (Retention(100, 500), [], 0, None),
        (Retention(100, 500), [(1000, 1000)], 1000, None),
        (Retention(100, 500), [(40, 9), (40, 5)], 20, None),
        (Retention(100, 500), [(40, 9), (40, 5)], 21, 10),
        (Retention(100, 500), [(60, 9), (60, 7), (60, 5)], 0, 20),
        (Retention(100, 500), [(1, 501), (1, 500), (1, 0)], 0, 10),
        (Retention(-1, -1), [(60, 900), (60, 700), (60, 5)], 1000, None),
        (Retention(100, 500), [(60, 900), (60, 700), (60, 600)], 1000, 20),
    ],
)
def test_the_oldest_go_first_and_the_latest_stays(
    retention: Retention,
    known: list[tuple[int, int]],
    log_bytes: int,
    first_kept: int | None,
) -> None:
    kept = retention.first_kept(snapshots(*known), log_bytes, NOW)
    assert (kept.offset if kept else None) == first_kept
