"""Encoding rows: partitions, records, errors."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from skylog.bulk import encode as encoding
from skylog.bulk import rows
from skylog.bulk.encode import RowBatch, RowEncoder, TopicTarget
from skylog.bulk.rows import NativeRows, open_rows
from skylog.bulk.rows_columns import BadRows
from skylog.bulk.rows_reference import PythonRows, Rows, TopicState
from skylog.client.partitioner import partition_of_key
from skylog.kernel.errors import ErrorCode, KafkaError
from skylog.wire.batch import HEADER_BYTES, Batch, Compression, split_batches
from skylog.wire.records import Record, decode_records
from skylog.wire.walker import locate, walk

NOW = 1_700_000_000_000
HEADERS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
needs_native = pytest.mark.skipif(rows.NATIVE is None, reason="rows in C are not built here")


@pytest.fixture(params=["native", "python"])
def implementation(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param == "python":
        monkeypatch.setattr(encoding, "open_rows", lambda given: open_rows(given, None))
    elif rows.NATIVE is None:
        pytest.skip("rows in C are not built here")


def table(count: int = 3, **columns: Any) -> pa.RecordBatch:
    given = {"value": pa.array([b"v"] * count, pa.binary()), **columns}
    return pa.record_batch(given)


def targets(*found: TopicTarget) -> Mapping[str, TopicTarget]:
    return {one.name: one for one in found}


def records(batches: list[RowBatch]) -> dict[tuple[str, int], list[Record]]:
    """The decoded records; every batch is validated like a produced one."""
    out: dict[tuple[str, int], list[Record]] = defaultdict(list)
    for one in batches:
        (batch,) = split_batches(one.joined())
        assert batch.crc_ok()
        assert (batch.codec, batch.record_count) == (one.codec, one.count)
        assert (batch.producer_id, batch.base_sequence) == (-1, -1)
        found = decode_records(batch)
        assert [record.offset for record in found] == list(range(one.count))
        assert batch.max_timestamp == max(record.timestamp for record in found)
        out[one.topic, one.partition] += found
    return out


@pytest.mark.usefixtures("implementation")
@pytest.mark.parametrize("codec", Compression)
def test_all_columns_arrive(codec: Compression) -> None:
    stamps = pa.array([NOW * 1000 + 1999, None, 5000], pa.timestamp("us", tz="UTC"))
    headers = [[{"key": "a", "value": b"x"}, {"key": "ü", "value": None}], None, []]
    given = table(
        key=pa.array([b"k", None, b""], pa.binary()),
        value=pa.array([b"v" * 1000, None, b""], pa.binary()),
        topic=["b", "a", "b"],
        partition=pa.array([1, 0, 1], pa.int32()),
        headers=pa.array(headers, HEADERS),
        timestamp=stamps,
        offset=pa.array([7, 8, 9], pa.int64()),
    )
    encoder = RowEncoder(codec=codec)
    both = targets(TopicTarget("a", 1), TopicTarget("b", 2))
    assert sorted(encoder.topics(given)) == ["a", "b"]
    found = records(encoder.encode(given, both, NOW))
    assert found == {
        ("a", 0): [Record(0, NOW, None, None, ())],
        ("b", 1): [
            Record(0, NOW + 1, b"k", b"v" * 1000, (("a", b"x"), ("ü", None))),
            Record(1, 5, b"", b"", ()),
        ],
    }


@pytest.mark.usefixtures("implementation")
def test_partitions_by_key_as_java_chooses() -> None:
    # Utils.murmur2 of Kafka's own tests, as 32-bit numbers: the seeds of the default partitioner.
    golden = {
        b"21": -973932308,
        b"foobar": -790332482,
        b"a-little-bit-long-string": -985981536,
        b"a-little-bit-longer-string": -1486304829,
        b"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8": -58897971,
        b"abc": 479470107,
    }
    count = 1013
    given = table(len(golden), key=pa.array(list(golden), pa.binary()))
    found = records(RowEncoder(topic="t").encode(given, targets(TopicTarget("t", count)), NOW))
    places = {record.key: partition for (_, partition), all_ in found.items() for record in all_}
    assert places == {key: (number & 0x7FFF_FFFF) % count for key, number in golden.items()}


@pytest.mark.usefixtures("implementation")
def test_a_partition_that_is_asked_for_wins_over_the_key() -> None:
    given = table(
        2, key=pa.array([b"k", b"k"], pa.binary()), partition=pa.array([None, 4], pa.int64())
    )
    found = records(RowEncoder(topic="t").encode(given, targets(TopicTarget("t", 5)), NOW))
    assert sorted(partition for _, partition in found) == sorted({partition_of_key(b"k", 5), 4})


@pytest.mark.usefixtures("implementation")
def test_rows_without_a_key_go_round_by_bytes_the_same_in_every_attempt() -> None:
    def places(seed: int) -> list[int]:
        encoder = RowEncoder(topic="t", batch_bytes=1000, seed=seed)
        out = []
        for _ in range(6):
            batches = encoder.encode(
                table(1, value=pa.array([bytes(600)])), targets(TopicTarget("t", 3)), NOW
            )
            out.append(batches[0].partition)
        return out

    first = places(0)
    assert first == places(0)
    assert first[0] == first[1] != first[2] == first[3]
    assert sorted(set(first)) == [0, 1, 2]
    assert places(1)[0] == (first[0] + 1) % 3


@pytest.mark.usefixtures("implementation")
def test_batches_are_bounded_and_keep_the_order_of_rows() -> None:
    values = [b"%03d" % index * 40 for index in range(200)]
    given = table(200, value=pa.array(values, pa.binary()))
    encoder = RowEncoder(topic="t", batch_bytes=1000)
    batches = encoder.encode(given, targets(TopicTarget("t", 1)), NOW)
    assert all(HEADER_BYTES < one.size <= 1000 for one in batches)
    assert len(batches) == 29
    assert [record.value for record in records(batches)["t", 0]] == values


@pytest.mark.usefixtures("implementation")
def test_a_topics_limit_bounds_batches_too() -> None:
    given = table(100, value=pa.array([bytes(90)] * 100))
    small = TopicTarget("t", 1, message_bytes_max=500)
    batches = RowEncoder(topic="t").encode(given, targets(small), NOW)
    assert all(one.size <= 500 for one in batches)


@pytest.mark.usefixtures("implementation")
def test_a_record_above_the_limit_is_refused_with_topic_size_and_limit() -> None:
    given = table(2, value=pa.array([b"x", bytes(2000)]))
    small = TopicTarget("orders", 1, message_bytes_max=1000)
    with pytest.raises(KafkaError, match=r"topic orders makes a batch of 20\d\d bytes.* 1000") as e:
        RowEncoder(topic="orders").encode(given, targets(small), NOW)
    assert e.value.code is ErrorCode.MESSAGE_TOO_LARGE
    # The limit applies to compressed bytes, as in Kafka.
    encoder = RowEncoder(topic="orders", codec=Compression.ZSTD)
    assert sum(one.count for one in encoder.encode(given, targets(small), NOW)) == 2


@pytest.mark.usefixtures("implementation")
def test_a_record_larger_than_a_batch_is_a_batch_of_its_own() -> None:
    values = [b"a", bytes(5000), b"b"]
    encoder = RowEncoder(topic="t", batch_bytes=1000)
    batches = encoder.encode(
        table(3, value=pa.array(values, pa.binary())), targets(TopicTarget("t", 1)), NOW
    )
    assert [one.count for one in batches] == [1, 1, 1]
    assert [record.value for record in records(batches)["t", 0]] == values


def test_what_does_not_compress_is_stored_as_it_is() -> None:
    noise = random.Random(1).randbytes(400)
    encoder = RowEncoder(topic="t", codec=Compression.LZ4)
    (one,) = encoder.encode(table(1, value=pa.array([noise])), targets(TopicTarget("t", 1)), NOW)
    assert one.codec is Compression.NONE


def test_the_topics_codec_wins() -> None:
    encoder = RowEncoder(topic="t", codec=Compression.LZ4)
    target = TopicTarget("t", 1, codec=Compression.GZIP)
    (one,) = encoder.encode(table(1), targets(target), NOW)
    assert one.codec is Compression.GZIP


def test_a_producers_fields_are_added_when_sent() -> None:
    (one,) = RowEncoder(topic="t").encode(table(2), targets(TopicTarget("t", 1)), NOW)
    batch = Batch(one.joined(7, 3, 99))
    assert (batch.producer_id, batch.producer_epoch, batch.base_sequence) == (7, 3, 99)
    assert batch.crc_ok()


@pytest.mark.parametrize(
    ("columns", "what"),
    [
        ({"value": pa.array([1, 2, 3])}, "column value is int64; allowed are binary and string"),
        ({"key": pa.array([1.5, 2, 3])}, "column key is double"),
        ({"partition": pa.array(["a", "b", "c"])}, "column partition is string; allowed is int"),
        ({"partition": pa.array([0, 2**40, 0])}, "column partition: "),
        ({"partition": pa.array([0, 3, 0])}, "partition 3 of topic t, which has 3 partitions"),
        ({"partition": pa.array([0, -1, 0])}, "partition -1 of topic t"),
        ({"headers": pa.array([["a"], [], []])}, "column headers is list"),
        (
            {"headers": pa.array([[{"key": None, "value": b""}], None, None], HEADERS)},
            "a header without a key",
        ),
        ({"timestamp": pa.array(["x", "y", "z"])}, "column timestamp is string"),
        ({"timestamp": pa.array([1, -1, 3])}, "timestamp -1 ms"),
        ({"timestamp": pa.array([1, NOW + 10_001, 3])}, f"timestamp {NOW + 10_001} ms"),
    ],
)
def test_columns_that_are_refused_by_name(columns: dict[str, Any], what: str) -> None:
    target = TopicTarget("t", 3, after_ms_max=10_000)
    with pytest.raises(BadRows, match=what):
        RowEncoder(topic="t").encode(table(3, **columns), targets(target), NOW)


def test_no_value_no_topic_null_topic_and_no_key() -> None:
    encoder = RowEncoder()
    with pytest.raises(BadRows, match="neither a column topic nor an option topic"):
        encoder.topics(table(3))
    with pytest.raises(BadRows, match="a row has no topic: column topic is null"):
        encoder.topics(table(3, topic=["a", None, "b"]))
    with pytest.raises(BadRows, match="an empty topic"):
        encoder.topics(table(3, topic=["a", "", "b"]))
    with pytest.raises(BadRows, match="column topic is int64"):
        encoder.topics(table(3, topic=[1, 2, 3]))
    given = pa.record_batch({"key": ["a"]})
    with pytest.raises(BadRows, match="no column value; there are key"):
        RowEncoder(topic="t").encode(given, targets(TopicTarget("t", 1)), NOW)
    compacted = targets(TopicTarget("t", 1, keyed=True), TopicTarget("u", 1))
    with pytest.raises(BadRows, match="topic t has no key, and the topic is compacted"):
        RowEncoder(topic="t").encode(table(1), compacted, NOW)
    mixed = table(2, key=pa.array([b"k", None], pa.binary()), topic=["t", "u"])
    assert len(RowEncoder().encode(mixed, compacted, NOW)) == 2
    with pytest.raises(BadRows, match="topic t has no key"):
        RowEncoder().encode(
            table(2, key=pa.array([b"k", None], pa.binary()), topic=["u", "t"]), compacted, NOW
        )


def test_large_and_sliced_columns() -> None:
    """Slices start in the middle of Arrow's buffers; large types have 64-bit offsets."""
    large_headers = pa.large_list(pa.struct([("key", pa.large_string()), ("value", pa.binary())]))
    given = pa.record_batch(
        {
            "key": pa.array([None if i % 3 == 0 else b"k%d" % i for i in range(50)]),
            "value": pa.array([f"v{i}" for i in range(50)], pa.large_string()),
            "partition": pa.array([None if i % 2 else 0 for i in range(50)], pa.int32()),
            "headers": pa.array(
                [None if i % 5 == 0 else [{"key": f"h{i}", "value": b"x"}] for i in range(50)],
                large_headers,
            ),
            "topic": pa.array(["t"] * 50).dictionary_encode(),
        }
    ).slice(11, 30)
    found = records(RowEncoder().encode(given, targets(TopicTarget("t", 4)), NOW))
    seen = {record.value: record for all_ in found.values() for record in all_}
    assert set(seen) == {b"v%d" % i for i in range(11, 41)}
    for i in range(11, 41):
        record = seen[b"v%d" % i]
        assert record.key == (None if i % 3 == 0 else b"k%d" % i)
        assert record.headers == (() if i % 5 == 0 else ((f"h{i}", b"x"),))


# C against Python ---------------------------------------------------------------------------------


def drawn_rows(rng: random.Random) -> Rows:
    count = rng.randrange(1, 60)

    def bytes_or_none() -> bytes | None:
        return None if rng.random() < 0.2 else rng.randbytes(rng.choice((0, 1, 63, 64, 300)))

    def headers() -> list[dict[str, bytes | None]] | None:
        if rng.random() < 0.3:
            return None
        drawn = range(rng.randrange(3))
        return [{"key": rng.randbytes(i), "value": bytes_or_none()} for i in drawn]

    kind = pa.list_(pa.struct([("key", pa.binary()), ("value", pa.binary())]))
    at = rng.randrange(count)
    drawn = Rows(
        pa.array([bytes_or_none() for _ in range(count)], pa.binary()).slice(at),
        pa.array([bytes_or_none() for _ in range(count)], pa.binary()).slice(at),
        pa.array([headers() for _ in range(count)], kind).slice(at),
        np.array([rng.randrange(2 ** rng.choice((1, 41, 62))) for _ in range(count - at)]),
    )
    if rng.random() < 0.2:
        return Rows(None, drawn.value, None, drawn.timestamps)
    return drawn


@needs_native
@pytest.mark.parametrize("seed", range(60))
def test_c_and_python_agree(seed: int) -> None:
    rng = random.Random(seed)
    given = drawn_rows(rng)
    assert rows.NATIVE is not None
    native, python = NativeRows(rows.NATIVE, given), PythonRows(given)
    topic_of = np.array([rng.randrange(2) for _ in range(len(given))], np.int32)
    asked = pa.array(
        [rng.randrange(4) if rng.random() < 0.3 else None for _ in range(len(given) + 5)],
        pa.int32(),
    ).slice(5)
    bytes_max = rng.choice((1, 100, 5000))
    answers = []
    for each in (native, python):
        states = [TopicState(3, 1), TopicState(7, 6, 50)]
        bad, partitions = each.partition(topic_of, states, asked, bytes_max)
        answers.append(
            (bad, partitions[:bad].tolist() if bad >= 0 else partitions.tolist(), states)
        )
    assert answers[0] == answers[1]
    order = np.array(rng.sample(range(len(given)), len(given)), np.int64)
    at = 0
    while at < len(order):
        found = native.write(order, at, len(order), bytes_max)
        assert found == python.write(order, at, len(order), bytes_max)
        walked = walk(bytes(found.records), found.next - at, found.base_timestamp)
        assert (walked.error, walked.max_timestamp) == (0, found.max_timestamp)
        at = found.next


@pytest.mark.parametrize("library", [None, pytest.param(rows.NATIVE, marks=needs_native)])
def test_timestamps_as_far_apart_as_can_be_are_read_back(library: Any) -> None:
    times = np.array([2**62, -(2**63), 2**63 - 1], np.int64)
    given = Rows(None, pa.array([b"v"] * 3), None, times)
    found = open_rows(given, library).write(np.arange(3), 0, 3, 1000)
    read = locate(bytes(found.records), 3, found.base_timestamp)
    assert [record.timestamp for record in read] == times.tolist()


def test_without_the_module_in_c_there_is_python() -> None:
    given = Rows(None, pa.array([b"v"]), None, np.array([1]))
    assert isinstance(open_rows(given, None), PythonRows)
