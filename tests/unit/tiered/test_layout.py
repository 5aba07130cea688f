"""Keys, manifests, chunks and custom metadata: the plugin's own texts, and hostile ones."""

from __future__ import annotations

import base64
import json
import random
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from skylog.kernel.ids import Uuid
from skylog.kernel.limits import REMOTE_CHUNKS_MAX
from skylog.objects.keys import ObjectKey
from skylog.tiered.layout import aiven, local_tiered
from skylog.tiered.layout.aiven import CustomField, CustomMetadata, decode_custom, encode_custom
from skylog.tiered.layout.chunks import (
    BadManifest,
    Chunk,
    FixedChunks,
    VariableChunks,
    decode_sizes,
    encode_sizes,
)
from skylog.tiered.layout.manifest import (
    EncryptedSegment,
    IndexRange,
    Manifest,
    decode_manifest,
    encode_manifest,
    plain_manifest,
)
from skylog.tiered.segments import IndexType, SegmentState
from tests.unit.tiered.remote_segments import remote_segment

# What the plugin's own test expects of a segment without transaction index.
GOLDEN = (
    b'{"version":"1","chunkIndex":{"type":"fixed","originalChunkSize":100,"originalFileSize":1000,'
    b'"transformedChunkSize":110,"finalTransformedChunkSize":110},"segmentIndexes":{"offset":'
    b'{"position":0,"size":1},"timestamp":{"position":1,"size":1},"producerSnapshot":{"position":2,'
    b'"size":1},"leaderEpoch":{"position":3,"size":1},"transaction":null},"compression":false,'
    b'"remoteLogSegmentMetadata":{"remoteLogSegmentId":{"topicIdPartition":{"topicId":'
    b'"lZ6vvmajTWKDBUTV6SQAtQ","topicPartition":{"topic":"topic1","partition":42}},"id":'
    b'"adh9f8BMS4anaUnD8KWfWg"},"startOffset":0,"endOffset":1000,"maxTimestampMs":1000000000,'
    b'"brokerId":2,"eventTimestampMs":2000000000,"segmentLeaderEpochs":{"0":100,"1":200,"2":300}}}'
)
WITH_TRANSACTIONS = GOLDEN.replace(b'"transaction":null', b'"transaction":{"position":4,"size":1}')
# Of the plugin's test too: the sizes 10, 20 and 30.
GOLDEN_SIZES = "KLUv/SAPeQAAAAAAAwAAAAoBAAoAAAAe"
INDEXES = {kind: IndexRange(at, 1) for at, kind in enumerate(IndexType)}
FINISHED = replace(remote_segment(), state=SegmentState.COPY_FINISHED)


def without_transactions() -> dict[IndexType, IndexRange]:
    return {kind: at for kind, at in INDEXES.items() if kind is not IndexType.TRANSACTION}


def test_the_plugins_text_byte_for_byte() -> None:
    segment = replace(FINISHED, txn_index_empty=True)
    manifest = Manifest(
        chunks=FixedChunks(100, 1000, 110, 110),
        indexes=without_transactions(),
        compression=False,
        segment=segment,
    )
    assert encode_manifest(manifest) == GOLDEN
    assert decode_manifest(GOLDEN) == manifest
    whole = replace(manifest, indexes=INDEXES, segment=FINISHED)
    assert encode_manifest(whole) == WITH_TRANSACTIONS
    assert decode_manifest(WITH_TRANSACTIONS) == whole


def test_variable_chunks_have_the_plugins_text() -> None:
    chunks = VariableChunks(100, 250, [10, 20, 30])
    assert encode_sizes([10, 20, 30]) == GOLDEN_SIZES
    assert decode_sizes(GOLDEN_SIZES, 3) == [10, 20, 30]
    manifest = Manifest(chunks=chunks, indexes=INDEXES, compression=True, segment=None)
    text = encode_manifest(manifest)
    expected = (
        b'{"type":"variable","originalChunkSize":100,"originalFileSize":250,'
        b'"transformedChunks":"' + GOLDEN_SIZES.encode() + b'"}'
    )
    assert expected in text
    assert decode_manifest(text) == manifest
    assert list(chunks.covering(0, 250)) == [
        Chunk(0, 100, 0, 10),
        Chunk(100, 100, 10, 20),
        Chunk(200, 50, 30, 30),
    ]
    assert chunks.object_size == 60


def test_fixed_chunks_have_the_plugins_positions() -> None:
    chunks = FixedChunks(100, 250, 110, 30)
    assert list(chunks.covering(0, 250)) == [
        Chunk(0, 100, 0, 110),
        Chunk(100, 100, 110, 110),
        Chunk(200, 50, 220, 30),
    ]
    assert (chunks.object_size, chunks.is_plain) == (250, False)


@pytest.mark.parametrize(
    ("size", "last"), [(0, 0), (1, 1), (99, 99), (100, 100), (101, 1), (200, 100), (250, 50)]
)
def test_plain_chunks(size: int, last: int) -> None:
    """Without transformation the last chunk is what is left."""
    chunks = FixedChunks.plain(100, size)
    assert chunks == FixedChunks(100, size, 100, last)
    assert (chunks.is_plain, chunks.object_size) == (True, size)
    if size:
        assert not FixedChunks(100, size, 100, last + 1).is_plain


@given(st.data())
def test_chunks_that_cover_a_range(data: st.DataObject) -> None:
    chunk_size = data.draw(st.integers(1, 20))
    sizes = data.draw(st.lists(st.integers(0, 30), max_size=8))
    file_size = max(0, len(sizes) * chunk_size - data.draw(st.integers(0, chunk_size - 1)))
    chunks: FixedChunks | VariableChunks = VariableChunks(chunk_size, file_size, sizes)
    if data.draw(st.booleans()):
        chunks = FixedChunks(chunk_size, file_size, 7, 3)
        sizes = [7] * (chunks.count - 1) + [3] * bool(chunks.count)
    start = data.draw(st.integers(0, file_size))
    end = data.draw(st.integers(start, file_size))
    expected = []
    for number, size in enumerate(sizes):
        at = number * chunk_size
        held = min(chunk_size, file_size - at)
        if at < end and at + held > start and start < end:
            expected.append(Chunk(at, held, sum(sizes[:number]), size))
    assert list(chunks.covering(start, end)) == expected
    assert chunks.object_size == sum(sizes)


@pytest.mark.parametrize("wanted", [(-1, 5), (5, 4), (0, 1001), (1001, 1001)])
def test_a_range_outside_the_log_is_refused(wanted: tuple[int, int]) -> None:
    for chunks in (FixedChunks.plain(100, 1000), VariableChunks(100, 1000, [5] * 10)):
        with pytest.raises(BadManifest):
            list(chunks.covering(*wanted))


@given(st.lists(st.integers(0, 2**31 - 1), max_size=40))
def test_sizes_survive(sizes: list[int]) -> None:
    assert decode_sizes(encode_sizes(sizes), len(sizes)) == sizes


@pytest.mark.parametrize(
    ("sizes", "width"),
    [
        ([0, 1000, 2, 44002, 369], 2),
        ([2**31 - 1, 2**31 - 2, 2**31 - 3, 10], 1),
        ([1, 2, 3, 2**31 - 1], 1),
        ([1, 0xFF + 10, 0xFF + 20, 2**31 - 1], 2),
        ([1, 0xFFFF + 10, 0xFFFF + 20, 2**31 - 1], 3),
        ([1, 0xFFFFFF + 10, 0xFFFFFF + 20, 2**31 - 1], 4),
    ],
)
def test_sizes_take_as_many_bytes_as_the_plugins(sizes: list[int], width: int) -> None:
    packed = zstandard.decompress(base64.b64decode(encode_sizes(sizes)))
    assert packed[8] == width
    assert len(packed) == 9 + (len(sizes) - 1) * width + 4


def zstd(data: bytes) -> str:
    return base64.b64encode(zstandard.compress(data)).decode()


BOMB = zstd(bytes(1 << 26))
HOSTILE_SIZES = {
    "not base64": "***",
    "not zstd": base64.b64encode(b"hello").decode(),
    "a bomb": BOMB,
    "a bomb without its size": base64.b64encode(
        zstandard.ZstdCompressor(write_content_size=False).compress(bytes(1 << 26))
    ).decode(),
    "empty": "",
    "count of 2^31": zstd(bytes.fromhex("80000000") + bytes(9)),
    "negative count": zstd(bytes.fromhex("ffffffff") + bytes(9)),
    "cut": zstd(bytes.fromhex("000000030000000a0100")),
    "too long": zstd(bytes.fromhex("000000030000000a01000a0000001e00")),
    "width of 0": zstd(bytes.fromhex("000000030000000a000000001e")),
    "width of 5": zstd(bytes.fromhex("000000030000000a05") + bytes(14)),
    "width of 255": zstd(bytes.fromhex("000000030000000aff") + bytes(8)),
    "negative base": zstd(bytes.fromhex("00000003fffffff601000a0000001e")),
    "negative last": zstd(bytes.fromhex("000000030000000a01000affffffff")),
    "value over 31 bits": zstd(bytes.fromhex("000000037fffffff01000a0000001e")),
    "fewer": zstd(bytes.fromhex("0000000100000001")),
}


@pytest.mark.parametrize("name", HOSTILE_SIZES)
def test_hostile_sizes_are_refused(name: str) -> None:
    with pytest.raises(BadManifest):
        VariableChunks(100, 250, decode_sizes(HOSTILE_SIZES[name], 3))


def changed(path: str, value: Any) -> bytes:
    """The plugin's text with another value at ``path``; None removes it."""
    whole = json.loads(WITH_TRANSACTIONS)
    *parents, name = path.split("/")
    place = whole
    for parent in parents:
        place = place[parent]
    if value is None:
        del place[name]
    else:
        place[name] = value
    return json.dumps(whole).encode()


NUMBERS = [
    "chunkIndex/originalChunkSize",
    "chunkIndex/originalFileSize",
    "chunkIndex/transformedChunkSize",
    "chunkIndex/finalTransformedChunkSize",
    *(f"segmentIndexes/{kind.value}/position" for kind in IndexType),
    *(f"segmentIndexes/{kind.value}/size" for kind in IndexType),
    "remoteLogSegmentMetadata/startOffset",
    "remoteLogSegmentMetadata/endOffset",
    "remoteLogSegmentMetadata/remoteLogSegmentId/topicIdPartition/topicPartition/partition",
]


@pytest.mark.parametrize("path", NUMBERS)
@pytest.mark.parametrize("value", [None, -1, 1 << 63, 1 << 70, True, 1.5, "1", [], {}])
def test_hostile_numbers_are_refused(path: str, value: Any) -> None:
    with pytest.raises(BadManifest):
        decode_manifest(changed(path, value))


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("version", "2"),
        ("version", 1),
        ("version", None),
        ("compression", None),
        ("compression", "false"),
        ("chunkIndex", None),
        ("chunkIndex", []),
        ("chunkIndex/type", None),
        ("chunkIndex/type", "other"),
        ("chunkIndex/type", "variable"),
        ("chunkIndex/originalChunkSize", 0),
        ("segmentIndexes", None),
        ("segmentIndexes/offset", None),
        ("segmentIndexes/leaderEpoch", 5),
        ("segmentIndexes/timestamp", {"position": 2**31 - 1, "size": 1}),
        ("remoteLogSegmentMetadata", 5),
        ("remoteLogSegmentMetadata/remoteLogSegmentId", None),
        ("remoteLogSegmentMetadata/remoteLogSegmentId/id", "adh9f8BMS4anaUnD8KWfWh"),
        ("remoteLogSegmentMetadata/remoteLogSegmentId/id", "../../../../etc/passwd"),
        ("remoteLogSegmentMetadata/remoteLogSegmentId/id", "ééééééééééé"),
        ("remoteLogSegmentMetadata/startOffset", 1001),
        ("remoteLogSegmentMetadata/segmentLeaderEpochs", {}),
        ("remoteLogSegmentMetadata/segmentLeaderEpochs", {"1": -1}),
        ("remoteLogSegmentMetadata/segmentLeaderEpochs", {"1": 1 << 63}),
        ("remoteLogSegmentMetadata/segmentLeaderEpochs", {"1": "5"}),
        ("remoteLogSegmentMetadata/segmentLeaderEpochs", {"-1": 0}),
        ("remoteLogSegmentMetadata/segmentLeaderEpochs", {"01": 0}),
        ("remoteLogSegmentMetadata/segmentLeaderEpochs", {"2147483648": 0}),
        ("remoteLogSegmentMetadata/segmentLeaderEpochs", {"0": 5, "1": 4}),
        (
            "remoteLogSegmentMetadata/remoteLogSegmentId/topicIdPartition/topicPartition/topic",
            "../x",
        ),
        (
            "remoteLogSegmentMetadata/remoteLogSegmentId/topicIdPartition/topicPartition/topic",
            "x" * 250,
        ),
    ],
)
def test_hostile_manifests_are_refused(path: str, value: Any) -> None:
    with pytest.raises(BadManifest):
        decode_manifest(changed(path, value))


def test_an_encrypted_segment_is_refused_by_the_id_of_its_key() -> None:
    encryption = {"dataKey": "key-of:2024:c2VjcmV0", "aad": "CgsMDQ=="}
    with pytest.raises(EncryptedSegment, match="encrypted with key 'key-of:2024'") as raised:
        decode_manifest(changed("encryption", encryption))
    assert "c2Vjcm" not in str(raised.value)
    for odd in ({}, {"dataKey": 5}, "x", {"dataKey": "x" * 5000}):
        with pytest.raises(EncryptedSegment) as raised:
            decode_manifest(changed("encryption", odd))
        assert len(str(raised.value)) < 200


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"{",
        b"[]",
        b"null",
        b"\xff\xfe",
        GOLDEN[:-1],
        GOLDEN + b"x",
        b"[" * 100_000,
        b'{"version":NaN}',
        b'{"version":' + b"1" * 10_000 + b"}",
    ],
)
def test_what_is_no_manifest_is_refused(data: bytes) -> None:
    with pytest.raises(BadManifest):
        decode_manifest(data)


def test_too_many_chunks_are_refused_before_their_sizes_are_read() -> None:
    with pytest.raises(BadManifest, match="more than"):
        FixedChunks(1, REMOTE_CHUNKS_MAX + 1, 1, 1)
    assert FixedChunks(1, REMOTE_CHUNKS_MAX, 1, 1).count == REMOTE_CHUNKS_MAX
    text = changed(
        "chunkIndex",
        {
            "type": "variable",
            "originalChunkSize": 1,
            "originalFileSize": 2**31 - 1,
            "transformedChunks": BOMB,
        },
    )
    with pytest.raises(BadManifest, match="more than"):
        decode_manifest(text)


def hostile(rng: random.Random, texts: list[bytes]) -> bytes:
    """A manifest with a few bytes changed, cut, doubled, or numbers replaced."""
    data = bytearray(rng.choice(texts))
    match rng.randrange(5):
        case 0:
            for _ in range(rng.randrange(1, 6)):
                data[rng.randrange(len(data))] = rng.randrange(256)
        case 1:
            del data[rng.randrange(len(data)) :]
        case 2:
            at = rng.randrange(len(data))
            data[at:at] = data[at : at + rng.randrange(60)]
        case 3:
            digits = [at for at, byte in enumerate(data) if chr(byte).isdigit()]
            at = rng.choice(digits)
            data[at : at + 1] = rng.choice(
                [b"-1", b"2147483648", b"9223372036854775808", b"1e9", b'""', b"null", b"0"]
            )
        case _:
            data = bytearray(rng.randbytes(rng.randrange(200)))
    return bytes(data)


def test_hostile_texts_end_in_one_kind_of_error() -> None:
    """Whatever is accepted can be written again, and read back the same. 50,000 texts."""
    rng = random.Random(14)
    variable = Manifest(
        chunks=VariableChunks(100, 250, [10, 20, 30]),
        indexes=INDEXES,
        compression=True,
        segment=FINISHED,
    )
    texts = [GOLDEN, WITH_TRANSACTIONS, encode_manifest(variable)]
    accepted = 0
    for _ in range(50_000):
        try:
            manifest = decode_manifest(hostile(rng, texts))
        except BadManifest:
            continue
        accepted += 1
        assert decode_manifest(encode_manifest(manifest)) == manifest
        assert manifest.chunks.count <= REMOTE_CHUNKS_MAX
    assert 1000 < accepted < 40_000


def test_a_manifest_of_our_own() -> None:
    sizes = {kind: number * 10 for number, kind in enumerate(IndexType)}
    manifest = plain_manifest(FINISHED, 300, sizes)
    assert decode_manifest(encode_manifest(manifest)) == manifest
    assert manifest.chunks == FixedChunks(300, 1000, 300, 100)
    assert manifest.indexes[IndexType.LEADER_EPOCH] == IndexRange(30, 30)
    assert manifest.indexes_size == 100


# --- Keys -----------------------------------------------------------------------------------------


def test_keys_of_the_plugin() -> None:
    segment = remote_segment(start_offset=1234)
    key = aiven.object_key(segment, aiven.LOG, CustomMetadata())
    folder = "topic1-lZ6vvmajTWKDBUTV6SQAtQ/42"
    assert key.text == f"{folder}/00000000000000001234-adh9f8BMS4anaUnD8KWfWg.log"
    assert key.segment == ("topic1", *segment.partition, 1234, segment.id, "log")
    assert (key.kind, key.created_ms, key.owner) == ("segment", None, None)
    moved = CustomMetadata(object_key=f"{folder}/{5:020}-{segment.id}")
    assert f"{5:020}" in aiven.object_key(segment, aiven.INDEXES, moved).text
    # The manifest is always where the plugin looks for it.
    assert f"{1234:020}" in aiven.object_key(segment, aiven.MANIFEST, moved).text
    for outside in ("../x", "wal/7f/x", "", "topic1-lZ6vvmajTWKDBUTV6SQAtQ/42"):
        with pytest.raises(BadManifest):
            aiven.object_key(segment, aiven.LOG, CustomMetadata(object_key=outside))


def test_keys_of_kafkas_local_storage() -> None:
    segment = remote_segment(start_offset=7, topic="a-1-b")
    for suffix in local_tiered.SUFFIXES:
        key = local_tiered.object_key(segment, suffix)
        folder = "kafka-tiered-storage/a-1-b-42-lZ6vvmajTWKDBUTV6SQAtQ"
        assert key.text == f"{folder}/{7:020}-adh9f8BMS4anaUnD8KWfWg.{suffix}"
        assert key.segment == ("a-1-b", *segment.partition, 7, segment.id, suffix)


@given(
    st.from_regex(r"\A[a-zA-Z0-9._-]{1,249}\Z").filter(lambda name: name not in (".", "..")),
    st.binary(min_size=16, max_size=16),
    st.integers(0, 2**31 - 1),
    st.integers(0, 2**63 - 1),
)
def test_every_segment_has_keys(topic: str, topic_id: bytes, index: int, offset: int) -> None:
    segment = remote_segment(
        topic=topic, partition=(Uuid(topic_id), index), start_offset=offset, end_offset=offset
    )
    for key in (
        aiven.object_key(segment, aiven.MANIFEST, CustomMetadata()),
        local_tiered.object_key(segment, "txnindex"),
    ):
        assert key == ObjectKey.parse(key.text)
        assert key.segment is not None
        assert key.segment[:5] == (topic, Uuid(topic_id), index, offset, segment.id)


# --- Custom metadata ------------------------------------------------------------------------------


def test_custom_metadata_is_a_section_of_tagged_fields() -> None:
    segment = remote_segment()
    data = encode_custom(segment, [CustomField.REMOTE_SIZE], 100, "")
    assert data is not None
    assert data.hex() == "010002c801"
    assert encode_custom(segment, [], 100, "") is None
    for size in (0, 1, 63, 64, 1 << 31, 1 << 33):
        whole = encode_custom(segment, list(CustomField)[::-1], size, "a/prefix/")
        assert decode_custom(whole) == CustomMetadata(size, "a/prefix/", aiven.main_path(segment))
    assert decode_custom(None) == decode_custom(b"") == CustomMetadata()
    # As the plugin's test has it: a size and a key take eleven bytes.
    assert decode_custom(bytes.fromhex("020002c801020404666f6f")) == CustomMetadata(
        100, None, "foo"
    )


def test_unknown_fields_are_read_over() -> None:
    assert decode_custom(bytes.fromhex("020002c8010703aabbcc")) == CustomMetadata(100)


@pytest.mark.parametrize(
    "text", ["01", "0100", "010005c8", "ffffffff7f", "80808080808080", "0101020161", "010103ff6161"]
)
def test_hostile_custom_metadata_is_refused(text: str) -> None:
    with pytest.raises(BadManifest):
        decode_custom(bytes.fromhex(text))


def test_garbage_as_custom_metadata_ends_in_one_kind_of_error() -> None:
    rng = random.Random(3)
    whole = encode_custom(remote_segment(), list(CustomField), 5000, "prefix/") or b""
    makers: list[Callable[[], bytes]] = [
        lambda: rng.randbytes(rng.randrange(40)),
        lambda: whole[: rng.randrange(len(whole))],
        lambda: bytes(b ^ (rng.random() < 0.05) * rng.randrange(256) for b in whole),
    ]
    for _ in range(10_000):
        try:
            decode_custom(rng.choice(makers)())
        except BadManifest:
            continue
