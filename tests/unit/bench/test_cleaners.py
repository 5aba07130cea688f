"""How the bench of cleaners reads the brokers' checkpoints."""

from __future__ import annotations

from itertools import islice
from pathlib import Path

from bench.cleaners import _offset_in
from bench.compaction import CASES, batches
from skylog.wire.batch import Batch
from skylog.wire.records import decode_records


def test_a_checkpoint_is_read_by_whole_names(tmp_path: Path) -> None:
    path = tmp_path / "cleaner-offset-checkpoint"
    assert _offset_in(path, "orders") == -1
    path.write_text("0\n3\norders-2 0 5\norders 1 6\norders 0 7\n")
    assert _offset_in(path, "orders") == 7
    assert _offset_in(path, "orders-2") == 5
    assert _offset_in(path, "others") == -1


def test_both_sides_get_the_same_records() -> None:
    def first(count: int) -> list[list[tuple[object, object]]]:
        made = islice(batches(CASES[1], 1 << 20), count)
        decoded = [decode_records(Batch(memoryview(data))) for data in made]
        return [[(record.key, record.value) for record in records] for records in decoded]

    assert first(3) == first(3)
    assert len(first(1)[0]) == CASES[1].records
