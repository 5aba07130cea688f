"""Output of a reader: batches neither tiny nor copied without need, errors before reading."""

from __future__ import annotations

import pyarrow as pa
import pytest

from skylog.bulk import reader
from skylog.bulk.reader import ReadContext
from skylog.bulk.schema import COLUMNS
from skylog.kernel.errors import ConfigError

SERVERS = {"bootstrap.servers": "127.0.0.1:1"}


def batch(rows: int, size: int) -> pa.RecordBatch:
    return pa.record_batch({"value": [b"v" * size] * rows})


def test_small_batches_are_joined_and_large_ones_left_alone() -> None:
    large = batch(2, reader.SMALL_BYTES)
    small = [batch(3, 100) for _ in range(50)]
    found = list(reader._joined(iter([*small, large, *small, large])))
    assert [one.num_rows for one in found] == [150, 2, 150, 2]
    assert found[1] is large
    assert found[3] is large
    assert list(reader._joined(iter([]))) == []


def test_joined_batches_stay_bounded() -> None:
    found = list(reader._joined(batch(1, 100_000) for _ in range(100)))
    assert sum(one.num_rows for one in found) == 100
    assert max(one.nbytes for one in found) <= reader.SMALL_BYTES


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"via": "ship"}, "via is 'ship'; allowed are bucket, broker"),
        ({"columns": ("size",)}, "columns has size; allowed"),
        ({"storage": {"secret": "x"}}, "unknown storage options secret"),
    ],
)
def test_mistakes_show_before_anything_is_read(options: dict[str, object], why: str) -> None:
    with pytest.raises(ConfigError, match=why):
        ReadContext.of(SERVERS, **options)  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match=r"bootstrap\.servers"):
        ReadContext.of({})


def test_a_context_knows_its_schema() -> None:
    assert ReadContext.of(SERVERS).schema().names == list(COLUMNS)
    assert ReadContext.of(SERVERS, columns=["offset"]).at("s3://bucket").schema().names == [
        "offset"
    ]
