"""Every codec in both directions, at its limits, and with invalid input."""

from __future__ import annotations

import gzip
import os
import struct
import subprocess
import sys
import zlib

import cramjam
import lz4.frame
import pytest
import zstandard

from skylog.kernel.errors import ErrorCode, KafkaError
from skylog.kernel.limits import GZIP_MEMBERS_MAX
from skylog.wire.batch import Compression
from skylog.wire.compression import compress, decompress, output_bytes_bound

COMPRESSED = (Compression.GZIP, Compression.SNAPPY, Compression.LZ4, Compression.ZSTD)
TEXT = b"a broker that Kafka clients cannot tell from Kafka " * 3000
MIB = 1024 * 1024


def refusal(codec: int, data: bytes, room: int = MIB) -> ErrorCode:
    with pytest.raises(KafkaError) as error:
        decompress(codec, data, room)
    return error.value.code


@pytest.mark.parametrize("codec", Compression)
@pytest.mark.parametrize("size", [0, 1, 1000, 32 * 1024, 64 * 1024 + 1, 150_000])
def test_round_trip_with_room_to_the_byte(codec: int, size: int) -> None:
    data = (os.urandom(size // 3) + TEXT)[:size]
    stream = compress(codec, data)
    assert decompress(codec, stream, size) == data
    assert decompress(codec, memoryview(bytearray(stream)), size) == data
    assert output_bytes_bound(codec, stream) >= size
    if size:
        assert refusal(codec, stream, size - 1) is ErrorCode.MESSAGE_TOO_LARGE


@pytest.mark.parametrize(
    ("codec", "low", "high"),
    [(Compression.GZIP, 1, 9), (Compression.LZ4, 9, 17), (Compression.ZSTD, -5, 19)],
)
def test_levels_trade_time_for_size(codec: int, low: int, high: int) -> None:
    data = b"".join(b"%d: %s\n" % (i, TEXT[i % 40 : i % 90]) for i in range(2000))
    quick, small = compress(codec, data, low), compress(codec, data, high)
    assert len(small) < len(quick)
    assert decompress(codec, quick, MIB) == decompress(codec, small, MIB) == data


def test_lz4_takes_every_level_of_kafkas() -> None:
    for level in range(1, 18):
        assert decompress(3, compress(3, TEXT, level), MIB) == TEXT


def test_java_can_read_what_we_write() -> None:
    assert compress(2, b"x").startswith(b"\x82SNAPPY\0\0\0\0\x01\0\0\0\x01")
    info = lz4.frame.get_frame_info(compress(3, TEXT))
    assert not info["block_linked"]
    assert info["block_size"] == 64 * 1024


def test_gzip_members_are_one_stream() -> None:
    first, second = gzip.compress(b"one"), gzip.compress(b"two")
    assert decompress(1, first + second, 6) == b"onetwo"
    assert refusal(1, first + second, 5) is ErrorCode.MESSAGE_TOO_LARGE
    assert decompress(1, first + b"\xee" * 30, 3) == b"one"
    assert refusal(1, first + second[:-1]) is ErrorCode.CORRUPT_MESSAGE


def test_gzip_members_are_limited() -> None:
    member = gzip.compress(b"a")
    assert decompress(1, member * GZIP_MEMBERS_MAX, MIB) == b"a" * GZIP_MEMBERS_MAX
    assert refusal(1, member * (GZIP_MEMBERS_MAX + 1)) is ErrorCode.CORRUPT_MESSAGE


def test_snappy_raw_as_librdkafka_sends_it() -> None:
    raw = bytes(cramjam.snappy.compress_raw(TEXT))
    assert decompress(2, raw, len(TEXT)) == TEXT
    assert refusal(2, raw, len(TEXT) - 1) is ErrorCode.MESSAGE_TOO_LARGE


def test_snappy_streams_may_follow_each_other() -> None:
    assert decompress(2, compress(2, b"one") + compress(2, b"two"), 6) == b"onetwo"


def test_lz4_ends_with_its_first_frame() -> None:
    assert decompress(3, compress(3, b"one") + compress(3, b"two"), 6) == b"one"


def test_lz4_of_linked_blocks_is_refused() -> None:
    stream = lz4.frame.compress(TEXT, block_linked=True, store_size=False)
    assert refusal(3, stream) is ErrorCode.CORRUPT_MESSAGE


def test_zstd_frames_are_one_stream() -> None:
    skippable = struct.pack("<II", 0x184D2A5F, 2) + b"xx"
    unsized = zstandard.ZstdCompressor(write_content_size=False).compress(b"two")
    checked = zstandard.ZstdCompressor(write_checksum=True).compress(b"three")
    stream = skippable + compress(4, b"one") + skippable + unsized + checked + skippable
    assert decompress(4, stream, 11) == b"onetwothree"
    assert refusal(4, stream, 10) is ErrorCode.MESSAGE_TOO_LARGE
    assert refusal(4, stream + b"\0") is ErrorCode.CORRUPT_MESSAGE


@pytest.mark.parametrize("codec", COMPRESSED)
def test_a_stream_cut_anywhere_is_refused(codec: int) -> None:
    stream = compress(codec, TEXT[:500])
    for size in range(1, len(stream)):
        try:
            output = decompress(codec, stream[:size], MIB)
        except KafkaError as error:
            assert error.code is ErrorCode.CORRUPT_MESSAGE
        else:
            # Java, too, reads a snappy stream that ends between blocks.
            assert codec == Compression.SNAPPY
            assert output == b""


@pytest.mark.parametrize("codec", [5, 6, 7, -1])
def test_unknown_codec(codec: int) -> None:
    assert refusal(codec, b"data") is ErrorCode.CORRUPT_MESSAGE
    with pytest.raises(ValueError, match="no codec"):
        compress(codec, b"data")


def zstd_bomb(blocks: int) -> bytes:
    """A frame of run-length blocks, each 128 KiB from four bytes."""
    block = struct.pack("<I", 128 * 1024 << 3 | 1 << 1)[:3] + b"a"
    last = struct.pack("<I", 1)[:3]
    return b"\x28\xb5\x2f\xfd\x00\x58" + block * blocks + last


def snappy_bomb(size: int) -> bytes:
    """Raw snappy: one literal, then copies of 64 bytes from three bytes each."""
    preamble, rest = b"", size
    while rest >= 0x80:
        preamble, rest = preamble + bytes((rest & 0x7F | 0x80,)), rest >> 7
    return preamble + bytes((rest,)) + b"\0a" + b"\xfe\x01\x00" * ((size - 1) // 64)


BOMBS = {
    "gzip": (1, zlib.compress(bytes(200 * MIB), 9, wbits=31)),
    "gzip members": (1, gzip.compress(bytes(MIB)) * 200),
    "snappy": (2, snappy_bomb(1 + 64 * MIB)),
    "snappy that lies": (2, b"\xff\xff\xff\xff\x0f" + b"\0a"),
    "lz4": (3, lz4.frame.compress(bytes(200 * MIB), block_linked=False, store_size=False)),
    "lz4 that says so": (3, lz4.frame.compress(bytes(64 * MIB), block_linked=False)),
    "zstd": (4, zstd_bomb(2000)),
    "zstd that says so": (4, zstandard.ZstdCompressor().compress(bytes(200 * MIB))),
    "zstd frames": (4, zstandard.ZstdCompressor().compress(bytes(MIB)) * 200),
}


@pytest.mark.parametrize("name", BOMBS)
def test_a_bomb_is_stopped_at_the_cap(name: str) -> None:
    codec, bomb = BOMBS[name]
    assert len(bomb) < 4 * MIB
    lies = name == "snappy that lies"
    wanted = ErrorCode.CORRUPT_MESSAGE if lies else ErrorCode.MESSAGE_TOO_LARGE
    assert refusal(codec, bomb, 2 * MIB) is wanted


DEFUSE = """
import resource, sys
from skylog.kernel.errors import KafkaError
from skylog.wire.compression import compress, decompress
for codec in range(5):
    decompress(codec, compress(codec, bytes(3_000_000)), 3_000_000)
bombs = [line.split() for line in sys.stdin]
bombs = [(int(codec), bytes.fromhex(bomb)) for codec, bomb in bombs]
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
for codec, bomb in bombs:
    try:
        decompress(codec, bomb, 2_000_000)
    except KafkaError:
        continue
    raise AssertionError(codec)
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""


def test_no_bomb_takes_more_memory_than_the_cap() -> None:
    """In a separate process, because only the system sees what C libraries allocate."""
    lines = "".join(f"{codec} {bomb.hex()}\n" for codec, bomb in BOMBS.values())
    child = subprocess.run(
        [sys.executable, "-c", DEFUSE], input=lines, capture_output=True, text=True, check=True
    )
    assert int(child.stdout) < 8 * 1024  # KiB


def test_the_bound_is_cheap_and_true_for_bombs() -> None:
    assert output_bytes_bound(*BOMBS["zstd"]) == 2000 * 128 * 1024
    assert output_bytes_bound(*BOMBS["lz4"]) >= 200 * MIB
    assert output_bytes_bound(4, b"\x28\xb5\x2f\xfd") == 0
