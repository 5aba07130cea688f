"""The codecs of record batches, each read and written as Kafka's Java streams do.

The bytes are untrusted: every decoder derives the output size from the framing, and nothing is
allocated beyond the caller's limit. Reading, by codec:

- gzip: adjacent members are one stream; what follows the last member is ignored;
- snappy: xerial's blocks (what Java writes) or one raw block (what librdkafka writes);
- lz4: one frame of independent blocks; what follows its end is ignored. Linked blocks are
  refused although liblz4 could read them: Java's consumers cannot;
- zstd: adjacent frames are one stream, skippable frames are skipped.
"""

from __future__ import annotations

import struct
import threading
import zlib
from collections.abc import Callable, Iterator
from typing import Final, NoReturn

import cramjam
import lz4.frame
import zstandard

from skylog.kernel.errors import ErrorCode, KafkaError
from skylog.kernel.limits import GZIP_MEMBERS_MAX
from skylog.wire.batch import Compression
from skylog.wire.buffers import Buffer

# The largest expansion of one byte of input: deflate's longest match, snappy's longest copy.
_GZIP_RATIO_MAX: Final = 1032
_SNAPPY_RATIO_MAX: Final = 64

GZIP_LEVEL_DEFAULT: Final = -1
LZ4_LEVEL_DEFAULT: Final = 9
ZSTD_LEVEL_DEFAULT: Final = 3

_GZIP_WINDOW: Final = 31  # zlib's largest window, in gzip's wrapping
_GZIP_TRAILER_MIN: Final = 18  # fewer bytes after a member cannot be another member

_XERIAL_MAGIC: Final = b"\x82SNAPPY\x00"
_XERIAL_HEADER: Final = _XERIAL_MAGIC + struct.pack(">ii", 1, 1)
_XERIAL_BLOCK_BYTES: Final = 32 * 1024

_LZ4_MAGIC: Final = b"\x04\x22\x4d\x18"
_LZ4_STORED: Final = 0x80000000
# lz4-java's fast compressor is Kafka's default level, its high compressor all others.
_LZ4_FAST: Final = 0
_LZ4_HIGH_MIN, _LZ4_HIGH_MAX = 3, 12

_ZSTD_MAGIC: Final = b"\x28\xb5\x2f\xfd"
_ZSTD_SKIPPABLE: Final = 0x184D2A50
_ZSTD_BLOCK_BYTES_MAX: Final = 128 * 1024
_ZSTD_RAW, _ZSTD_RLE, _ZSTD_COMPRESSED = 0, 1, 2

# Compressors and decompressors must not be shared by threads; a new one costs more than a small
# batch.
_THREAD: Final = threading.local()

_U32LE: Final = struct.Struct("<I")
_I32BE: Final = struct.Struct(">i")


def compress(codec: int, data: Buffer, level: int | None = None) -> bytes:
    """Compress as Kafka's producer would; ``level`` is Kafka's, None its default."""
    if codec == Compression.NONE:
        return bytes(data)
    if codec == Compression.GZIP:
        wanted = GZIP_LEVEL_DEFAULT if level is None else level
        return zlib.compress(data, wanted, wbits=_GZIP_WINDOW)
    if codec == Compression.SNAPPY:
        return _compress_snappy(data)
    if codec == Compression.LZ4:
        return _compress_lz4(data, LZ4_LEVEL_DEFAULT if level is None else level)
    if codec == Compression.ZSTD:
        wanted = ZSTD_LEVEL_DEFAULT if level is None else level
        return _zstd_compressor(wanted).compress(data)
    raise ValueError(f"no codec {codec}")


def _zstd_compressor(level: int) -> zstandard.ZstdCompressor:
    """This thread's compressor, of the level that it used last."""
    held: tuple[int, zstandard.ZstdCompressor] | None = getattr(_THREAD, "zstd_compressor", None)
    if held is None or held[0] != level:
        held = _THREAD.zstd_compressor = level, zstandard.ZstdCompressor(level=level)
    return held[1]


def decompress(codec: int, data: Buffer, output_bytes_max: int) -> Buffer:
    """Decompress; ``data`` itself if the codec is NONE.

    CORRUPT_MESSAGE for what Java's stream could not read, MESSAGE_TOO_LARGE for an output over
    ``output_bytes_max``, detected before it is allocated.
    """
    view = memoryview(data)
    if codec == Compression.NONE:
        _check_room(len(view), output_bytes_max)
        return data
    decoder = _DECODERS.get(codec)
    if decoder is None:
        _corrupt(f"unknown codec {codec}")
    return decoder(view, output_bytes_max)


def output_bytes_bound(codec: int, data: Buffer) -> int:
    """The largest possible decompressed size, as far as the framing is valid; cheap."""
    view = memoryview(data)
    if codec == Compression.GZIP:
        return len(view) * _GZIP_RATIO_MAX
    try:
        if codec == Compression.SNAPPY:
            return sum(size for _, size in _snappy_blocks(view))
        if codec == Compression.LZ4:
            return _lz4_frame(view)[1]
        if codec == Compression.ZSTD:
            return sum(bound for _, bound in _zstd_frames(view))
    except KafkaError:
        return 0  # decompression stops where the framing ends
    return len(view)


def _corrupt(why: str) -> NoReturn:
    raise KafkaError(ErrorCode.CORRUPT_MESSAGE, why)


def _check_room(size: int, room: int) -> None:
    if size > room:
        raise KafkaError(
            ErrorCode.MESSAGE_TOO_LARGE, f"records decompress to more than {room} bytes"
        )


def _join(parts: list[bytes]) -> bytes:
    return parts[0] if len(parts) == 1 else b"".join(parts)


def _decompress_gzip(data: memoryview, room: int) -> bytes:
    parts: list[bytes] = []
    at = 0
    for _ in range(GZIP_MEMBERS_MAX):
        member = zlib.decompressobj(wbits=_GZIP_WINDOW)
        try:
            part = member.decompress(data[at:], room + 1)
        except zlib.error:
            if parts and bytes(data[at : at + 2]) != b"\x1f\x8b":
                return _join(parts)  # Java treats anything else after a member as padding
            _corrupt("broken gzip stream")
        _check_room(len(part), room)
        if not member.eof:
            _corrupt("gzip stream ends early")
        parts.append(part)
        room -= len(part)
        at = len(data) - len(member.unused_data)
        if len(data) - at <= _GZIP_TRAILER_MIN:
            return _join(parts)
    _corrupt("too many gzip members")


def _compress_snappy(data: Buffer) -> bytes:
    view = memoryview(data)
    parts: list[Buffer] = [_XERIAL_HEADER]
    for at in range(0, len(view), _XERIAL_BLOCK_BYTES):
        block = memoryview(cramjam.snappy.compress_raw(view[at : at + _XERIAL_BLOCK_BYTES]))
        parts += (_I32BE.pack(len(block)), block)
    return b"".join(parts)


def _decompress_snappy(data: memoryview, room: int) -> bytes:
    parts: list[bytes] = []
    for block, size in _snappy_blocks(data):
        _check_room(size, room)
        room -= size
        try:
            parts.append(bytes(cramjam.snappy.decompress_raw(block)))
        except cramjam.DecompressionError:
            _corrupt("broken snappy block")
    return _join(parts) if parts else b""


def _snappy_blocks(data: memoryview) -> Iterator[tuple[memoryview, int]]:
    """Each block and its decompressed size; data without xerial's header is one raw block."""
    if bytes(data[:8]) != _XERIAL_MAGIC or len(data) < len(_XERIAL_HEADER):
        yield data, _snappy_size(data)
        return
    at, end = len(_XERIAL_HEADER), len(data)
    while end - at >= 4:
        if bytes(data[at : at + 8]) == _XERIAL_MAGIC:
            at += len(_XERIAL_HEADER)  # Java accepts concatenated streams
            continue
        (size,) = _I32BE.unpack_from(data, at)
        at += 4
        if not 0 <= size <= end - at:
            _corrupt(f"snappy block claims {size} bytes")
        block = data[at : at + size]
        yield block, _snappy_size(block)
        at += size


def _snappy_size(block: memoryview) -> int:
    size = shift = 0
    for byte in block[:5]:
        size |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            break
    if size > len(block) * _SNAPPY_RATIO_MAX:
        _corrupt("snappy block claims more than it can hold")
    return size


def _compress_lz4(data: Buffer, level: int) -> bytes:
    high = min(max(level, _LZ4_HIGH_MIN), _LZ4_HIGH_MAX)
    compressed: bytes = lz4.frame.compress(
        data,
        compression_level=_LZ4_FAST if level == LZ4_LEVEL_DEFAULT else high,
        block_size=lz4.frame.BLOCKSIZE_MAX64KB,
        block_linked=False,
        store_size=False,
    )
    return compressed


def _lz4_frame(data: memoryview) -> tuple[memoryview, int]:
    """The first frame, without trailing bytes, and its largest possible output."""
    if bytes(data[:4]) != _LZ4_MAGIC:
        _corrupt("no lz4 frame")
    try:
        info = lz4.frame.get_frame_info(data[:32])
    except RuntimeError:
        _corrupt("broken lz4 frame header")
    # Bit 0 of the flags means a dictionary, which Kafka clients cannot share.
    if info["block_linked"] or data[4] & 0x03:
        _corrupt("lz4 frame of linked blocks")
    block_bytes_max, trailer = info["block_size"], 4 if info["block_checksum"] else 0
    at, end, bound = 15 if data[4] & 0x08 else 7, len(data), 0
    while end - at >= 4:
        (word,) = _U32LE.unpack_from(data, at)
        size = word & ~_LZ4_STORED
        at += 4
        if size == 0:
            at += 4 if info["content_checksum"] else 0
            break
        if size > block_bytes_max:
            _corrupt(f"lz4 block claims {size} bytes")
        bound += size if word & _LZ4_STORED else min(block_bytes_max, size * 255)
        at += size + trailer
    else:
        _corrupt("lz4 frame ends early")
    if at > end or info["content_size"] > bound:
        _corrupt("lz4 frame ends early")
    return data[:at], bound


def _decompress_lz4(data: memoryview, room: int) -> bytes:
    frame, bound = _lz4_frame(data)
    decoder = lz4.frame.LZ4FrameDecompressor()
    try:
        output: bytes = decoder.decompress(frame, max_length=min(bound, room) + 1)
    except RuntimeError:
        _corrupt("broken lz4 frame")
    _check_room(len(output), room)
    if not decoder.eof:
        _corrupt("lz4 frame ends early")
    return output


def _zstd_frames(data: memoryview) -> Iterator[tuple[memoryview, int]]:
    """Each frame, without trailing bytes, and its largest possible output."""
    at, end = 0, len(data)
    while at < end:
        if end - at >= 8 and _U32LE.unpack_from(data, at)[0] & ~0x0F == _ZSTD_SKIPPABLE:
            at += 8 + int(_U32LE.unpack_from(data, at + 4)[0])
            if at > end:
                _corrupt("zstd frame ends early")
            continue
        size, bound = _zstd_frame(data[at:])
        yield data[at : at + size], bound
        at += size


def _zstd_frame(data: memoryview) -> tuple[int, int]:
    if bytes(data[:4]) != _ZSTD_MAGIC:
        _corrupt("no zstd frame")
    try:
        header = zstandard.get_frame_parameters(data[:18])
        at = zstandard.frame_header_size(data[:18])
    except zstandard.ZstdError:
        _corrupt("broken zstd frame header")
    bound, end, last = 0, len(data), False
    while not last:
        if end - at < 3:
            _corrupt("zstd frame ends early")
        word = data[at] | data[at + 1] << 8 | data[at + 2] << 16
        last, kind, size = bool(word & 1), word >> 1 & 3, word >> 3
        at += 3 + (1 if kind == _ZSTD_RLE else size)
        bound += _ZSTD_BLOCK_BYTES_MAX if kind == _ZSTD_COMPRESSED else size
    at += 4 if header.has_checksum else 0
    if at > end:
        _corrupt("zstd frame ends early")
    if header.content_size != zstandard.CONTENTSIZE_UNKNOWN:
        if header.content_size > bound:
            _corrupt("zstd frame claims more than it can hold")
        bound = header.content_size
    return at, bound


def _decompress_zstd(data: memoryview, room: int) -> bytes:
    parts: list[bytes] = []
    for frame, bound in _zstd_frames(data):
        part = _decompress_zstd_frame(frame, bound, room)
        parts.append(part)
        room -= len(part)
    return _join(parts) if parts else b""


def _decompress_zstd_frame(frame: memoryview, bound: int, room: int) -> bytes:
    if zstandard.frame_content_size(frame) >= 0:
        _check_room(bound, room)  # the library would allocate the size that the frame declares
    decompressor = getattr(_THREAD, "zstd", None)
    if decompressor is None:
        decompressor = _THREAD.zstd = zstandard.ZstdDecompressor()
    try:
        # 0 would mean that the frame declares its size.
        output: bytes = decompressor.decompress(frame, max_output_size=max(min(bound, room), 1))
    except zstandard.ZstdError:
        # The frame is complete, so if the limit is below its possible size, the limit was exceeded.
        _check_room(bound, room)
        _corrupt("broken zstd frame")
    _check_room(len(output), room)
    return output


_DECODERS: Final[dict[int, Callable[[memoryview, int], bytes]]] = {
    Compression.GZIP: _decompress_gzip,
    Compression.SNAPPY: _decompress_snappy,
    Compression.LZ4: _decompress_lz4,
    Compression.ZSTD: _decompress_zstd,
}
