"""Batch reads, compared row by row with what librdkafka consumes."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from pyspark.sql import DataFrameReader, SparkSession

from tests.spark.support import Message, Topics, rows_of

Reader = Callable[..., DataFrameReader]
T0 = 1_700_000_000_000


def mixed(count: int, partitions: int, first: int = 0) -> list[Message]:
    """Nulls, tombstones, empty values, headers with and without value, times out of order."""
    found = []
    for i in range(first, first + count):
        headers: list[tuple[str, bytes | None]] = []
        if i % 3 == 0:
            headers = [("a", b"x" * (i % 5)), ("none", None), ("a", b"again")]
        found.append(
            Message(
                None if i % 11 == 0 else b"v%d" % i * (i % 20),
                None if i % 7 == 0 else b"k%d" % (i % 50),
                i % partitions,
                T0 + (i * 7919) % 100_000,
                headers,
            )
        )
    return found


@pytest.mark.parametrize("diskless", [True, False], ids=["diskless", "classic"])
def test_every_row_is_what_librdkafka_reads(
    spark: SparkSession, topics: Topics, reader: Reader, diskless: bool
) -> None:
    name = topics.create(f"rows-{diskless}", 3, diskless=diskless)
    for codec in ("none", "gzip", "snappy", "lz4", "zstd"):
        topics.produce(name, mixed(200, 3), codec)
    frame = reader(subscribe=name, includeHeaders="true").load()
    assert frame.columns == [
        "key", "value", "topic", "partition", "offset", "timestamp", "timestampType", "headers",
    ]  # fmt: skip
    expected = topics.rows(name, 3)
    assert len(expected) == 1000
    assert rows_of(frame) == expected
