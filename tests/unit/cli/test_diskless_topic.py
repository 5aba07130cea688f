"""How far a diskless topic is consolidated, as ``skylog diskless describe`` tells it."""

from __future__ import annotations

import pytest

from skylog.cli.diskless_topic import (
    ASSEMBLER,
    COPY_DISABLED,
    REMOTE,
    Offsets,
    consolidation,
    row_of,
    told,
)


@pytest.mark.parametrize(
    ("offsets", "tiered_end", "lag"),
    [
        (Offsets(start=0, wal_start=1000, tiered=1999, end=5500), 2000, 3500),
        # Nothing is tiered, or only what was deleted meanwhile.
        (Offsets(start=40, wal_start=40, tiered=-1, end=100), 40, 60),
        (Offsets(start=40, wal_start=40, tiered=29, end=100), 40, 60),
        (Offsets(start=0, wal_start=0, tiered=-1, end=0), 0, 0),
        # A segment was finished after the end had been asked for.
        (Offsets(start=0, wal_start=0, tiered=119, end=100), 120, 0),
    ],
)
def test_what_is_where(offsets: Offsets, tiered_end: int, lag: int) -> None:
    row = row_of(offsets)
    assert (row["tiered_end_offset"], row["lag"]) == (tiered_end, lag)
    assert row["wal_start_offset"] == offsets.wal_start


def test_how_a_topic_is_consolidated() -> None:
    assert consolidation({REMOTE: "false"}) == "off"
    assert "remote.storage.enable=true" in told({REMOTE: "false"})
    assert consolidation({REMOTE: "true"}) == "broker"
    assert consolidation({REMOTE: "true", ASSEMBLER: "external"}) == "external"
    assert "spark segments --commit" in told({REMOTE: "true", ASSEMBLER: "external"})
    stopped = {REMOTE: "true", COPY_DISABLED: "true"}
    assert consolidation(stopped) == "stopped"
    assert COPY_DISABLED in told(stopped)
