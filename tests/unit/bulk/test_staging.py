"""Staged objects and manifests: their layout, and what is refused when read back."""

from __future__ import annotations

import json
import random

import pyarrow as pa
import pytest

from skylog.bulk import staging
from skylog.bulk.encode import RowEncoder, TopicTarget
from skylog.bulk.epoch import EpochFailed, Manifest, done_key, manifest_key, marks_of, writer_prefix
from skylog.bulk.manifest import decode_manifest, encode_done, encode_manifest
from skylog.bulk.staging import objects_of
from skylog.bulk.targets import target_of
from skylog.bulk.writer import chunks
from skylog.client.bulk import StagedBatch, StagedObject
from skylog.client.metadata import PartitionInfo, TopicInfo
from skylog.diskless.layout import batches_of
from skylog.kernel.ids import ZERO_UUID, Uuid
from skylog.objects.keys import ObjectKey
from skylog.wire.batch import Compression
from skylog.wire.records import decode_records

NOW = 1_700_000_000_000
PREFIX = "staging/0123456789abcdef/"


def test_objects_are_bounded_and_hold_the_batches_in_order() -> None:
    rows = pa.record_batch(
        {"value": [b"%03d" % i for i in range(200)], "partition": [i % 3 for i in range(200)]}
    )
    encoder = RowEncoder(topic="t", batch_bytes=200)
    layouts = objects_of(encoder.encode(rows, {"t": TopicTarget("t", 3)}, NOW), 1000)
    assert all(layout.size <= 1000 for layout in layouts)
    assert len(layouts) > 2
    found: dict[int, list[bytes | None]] = {0: [], 1: [], 2: []}
    for layout in layouts:
        data = b"".join(layout.parts)
        assert len(data) == layout.size
        for (piece, place), (position, batch) in zip(layout.pieces, batches_of(data), strict=True):
            assert (place, len(piece.buffer)) == (position, batch.size)
            found[piece.partition] += [record.value for record in decode_records(batch)]
    for partition, values in found.items():
        assert values == [b"%03d" % i for i in range(200) if i % 3 == partition]


def test_objects_are_bounded_in_batches_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(staging, "_BATCHES_PER_OBJECT", 4)
    rows = pa.record_batch({"value": [b"v"] * 10, "partition": list(range(10))})
    batches = RowEncoder(topic="t").encode(rows, {"t": TopicTarget("t", 10)}, NOW)
    assert [len(one.pieces) for one in objects_of(batches, 1 << 20)] == [4, 4, 2]


def manifest(objects: int = 2) -> Manifest:
    topic_id = Uuid(range(16))
    staged = tuple(
        StagedObject(
            ObjectKey.staged("0123456789abcdef", NOW, random.Random(index)).text,
            1000 + index,
            (
                StagedBatch("t", topic_id, 0, 1, 500),
                StagedBatch("ü", ZERO_UUID, index, 501, 499 + index),
            ),
        )
        for index in range(objects)
    )
    return Manifest("writer", 3, NOW, staged)


def test_a_manifest_comes_back_as_it_was() -> None:
    for count in (0, 1, 5):
        given = manifest(count)
        assert decode_manifest(encode_manifest(given), "writer", 3) == given
    assert encode_done(manifest()) == encode_done(manifest())
    assert encode_done(manifest()) != encode_done(manifest(0))


def test_an_invalid_manifest_is_refused() -> None:
    good = encode_manifest(manifest())
    for other in (("other", 3), ("writer", 4)):
        with pytest.raises(EpochFailed, match="is one of epoch 3 of writer writer"):
            decode_manifest(good, *other)
    bad: list[bytes] = [b"", b"[]", b"null", good[:-1], b"[" * 100_000, b"\xff"]
    document = json.loads(good)
    for name in document:
        bad.append(json.dumps({**document, name: -1}).encode())
        bad.append(json.dumps({**document, name: "x"}).encode() if name != "writer" else b"1")
        bad.append(json.dumps({k: v for k, v in document.items() if k != name}).encode())
    for wrong in ([9, 0, 1, 2], [0, 0, 1], [0, 0, 1, 2, 3], [0, 0, 1.5, 2], [0, True, 1, 2]):
        item = {**document["objects"][0], "batches": [wrong]}
        bad.append(json.dumps({**document, "objects": [item]}).encode())
    away = {**document["objects"][0], "key": "../wal/x"}
    bad.append(json.dumps({**document, "objects": [away]}).encode())
    for data in bad:
        with pytest.raises(EpochFailed, match="epoch 3 of writer writer"):
            decode_manifest(data, "writer", 3)


def test_marks_are_keys_that_sort_by_epoch() -> None:
    prefix = writer_prefix(PREFIX, "any writer: /..")
    assert ObjectKey.parse(prefix + "x").text.startswith(PREFIX + "w/")
    keys = [manifest_key(prefix, epoch) for epoch in (0, 9, 10, 2**62)]
    assert keys == sorted(keys)
    found = marks_of([*keys, done_key(prefix, 9), ObjectKey.parse(prefix + "7.done")])
    assert found.manifests == {0, 9, 10, 2**62}
    assert (found.done, found.latest_done) == ({9}, 9)
    assert marks_of([]).latest_done < 0


def test_rows_are_gathered_and_split_by_bytes() -> None:
    small = [pa.record_batch({"value": [b"x" * 10]}) for _ in range(50)]
    found = list(chunks(small, 100))
    assert sum(one.num_rows for one in found) == 50
    assert all(one.nbytes <= 100 for one in found)
    assert len(found) < 12
    big = pa.record_batch({"value": [b"%d" % i + b"x" * 100 for i in range(64)]})
    parts = list(chunks([big, big.slice(0, 0)], 1000))
    assert pa.Table.from_batches(parts).to_pylist() == big.to_pylist()
    assert all(one.nbytes <= 1000 for one in parts)
    assert list(chunks([], 10)) == []
    (huge,) = chunks([pa.record_batch({"value": [b"x" * 5000]})], 1000)
    assert huge.num_rows == 1


def test_a_topic_by_its_configuration() -> None:
    info = TopicInfo("t", ZERO_UUID, False, {0: PartitionInfo(0, 1, 0, (1,), (1,))})
    plain = target_of(info, {})
    assert (plain.partitions, plain.diskless, plain.keyed, plain.codec) == (1, False, False, None)
    values = {
        "diskless.enable": "true",
        "cleanup.policy": "compact,delete",
        "compression.type": "zstd",
        "max.message.bytes": "5",
        "message.timestamp.type": "CreateTime",
        "message.timestamp.after.max.ms": "7",
    }
    found = target_of(info, values)
    assert (found.diskless, found.keyed, found.codec) == (True, True, Compression.ZSTD)
    assert (found.message_bytes_max, found.after_ms_max) == (5, 7)
    replaced = target_of(info, {**values, "message.timestamp.type": "LogAppendTime"})
    assert replaced.after_ms_max > 2**60
    assert target_of(info, {"compression.type": "uncompressed"}).codec is Compression.NONE
