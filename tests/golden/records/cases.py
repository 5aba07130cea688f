"""Valid and invalid batches, validated by skylog and by Kafka."""

from __future__ import annotations

import struct
from typing import Any, NamedTuple

import cramjam
import lz4.frame
from crc32c import crc32c

from skylog.wire.batch import HEADER_BYTES, Batch
from skylog.wire.compression import compress
from skylog.wire.records import encode_batch, join_batch, varint
from skylog.wire.topic_rules import TopicRules

NOW = 1_700_000_000_000
CODECS = ("none", "gzip", "snappy", "lz4", "zstd")


class Case(NamedTuple):
    name: str
    records: bytes
    settings: dict[str, str] = {}  # noqa: RUF012 - never written to
    version: int = 9

    def line(self) -> str:
        """The input line of tools/java/JudgeBatches.java."""
        settings = ";".join(f"{key}={value}" for key, value in self.settings.items()) or "-"
        return f"{self.version} {NOW} {settings} {self.records.hex()}\n"

    def rules(self) -> TopicRules:
        get = self.settings.get
        return TopicRules(
            message_bytes_max=int(get("max.message.bytes", "1048588")),
            compression_type=get("compression.type", "producer"),
            timestamp_type=get("message.timestamp.type", "CreateTime"),
            timestamp_before_max_ms=int(get("message.timestamp.before.max.ms", str(2**63 - 1))),
            timestamp_after_max_ms=int(get("message.timestamp.after.max.ms", "3600000")),
            compacted="compact" in get("cleanup.policy", "delete"),
            segment_bytes=int(get("segment.bytes", str(1 << 30))),
        )


def batch(
    codec: int = 0, timestamps: tuple[int, ...] = (NOW, NOW + 5, NOW - 5), **fields: Any
) -> bytes:
    pairs = [(b"key%d" % index, b"value" * 20) for index in range(len(timestamps))]
    return encode_batch(
        pairs,
        timestamp=NOW,
        timestamps=timestamps,
        codec=codec,
        headers=[[("trace", b"1"), ("none", None)] for _ in pairs],
        **fields,
    )


def patched(data: bytes, at: int, form: str, value: int) -> bytes:
    """The same batch with one header field changed and a matching CRC."""
    out = bytearray(data)
    struct.pack_into(">" + form, out, at, value)
    struct.pack_into(">I", out, 17, crc32c(bytes(out[21:])))
    return bytes(out)


def with_body(body: bytes, codec: int = 0, count: int = 1, *, raw: bool = False) -> bytes:
    """A batch around any record bytes; ``raw`` if they are already compressed."""
    like = Batch(encode_batch([(b"", b"")] * count, timestamp=NOW))
    after_crc = struct.pack(">h", codec) + bytes(memoryview(like.buffer)[23:HEADER_BYTES])
    return join_batch(0, -1, after_crc, body if raw else compress(codec, body))


def record(fields: bytes, size: int | None = None) -> bytes:
    return varint(len(fields) if size is None else size) + fields


SOUND = record(b"\0\0\0" + b"\x02k" + b"\x02v" + b"\0")


def framing() -> list[Case]:
    good = batch()
    return [
        Case("empty", b""),
        Case("eleven bytes", good[:11]),
        Case("sixteen bytes", good[:16]),
        Case("cut short", good[:-1]),
        Case("two batches", good + good),
        Case("partial second batch", good + good[:40]),
        Case("ten bytes more", good + b"\0" * 10),
        Case("zeros behind", good + b"\0" * 20),
        Case("length 13", good[:8] + struct.pack(">i", 13) + good[12:]),
        Case("length 20", good[:8] + struct.pack(">i", 20) + good[12:32]),
        Case("negative length", good[:8] + struct.pack(">i", -1) + good[12:]),
        Case("magic 0", good[:16] + b"\x00" + good[17:]),
        Case("magic 1", good[:16] + b"\x01" + good[17:]),
        Case("magic 3", good[:16] + b"\x03" + good[17:]),
        Case("magic -1", good[:16] + b"\xff" + good[17:]),
        Case("zstd in version 6", batch(4), version=6),
        Case("zstd in version 7", batch(4), version=7),
        Case("lz4 in version 3", batch(3), version=3),
    ]


def headers() -> list[Case]:
    good = batch()
    return [
        Case("good", good),
        Case("base offset 1", batch(base_offset=1)),
        Case("base offset -1", batch(base_offset=-1)),
        Case("leader epoch set", batch(leader_epoch=3)),
        Case("bad crc", good[:-1] + bytes([good[-1] ^ 1])),
        Case("size at limit", good, {"max.message.bytes": str(len(good))}),
        Case("size over limit", good, {"max.message.bytes": str(len(good) - 1)}),
        Case("over limit and bad crc", good[:-1] + b"\xff", {"max.message.bytes": "70"}),
        *(Case(f"codec {codec}", patched(good, 21, "h", codec)) for codec in (5, 6, 7)),
        Case("unknown attributes", patched(good, 21, "h", 0x7F80)),
        Case("delete horizon", patched(good, 21, "h", 0x40)),
        Case("last delta -1", patched(good, 23, "i", -1)),
        Case("last delta 1", patched(good, 23, "i", 1)),
        Case("last delta 3", patched(good, 23, "i", 3)),
        Case("count 0", patched(good, 57, "i", 0)),
        Case("count -1", patched(good, 57, "i", -1)),
        Case("count 0 of none", encode_batch([], timestamp=NOW)),
        Case("count 4 of 3", patched(patched(good, 57, "i", 4), 23, "i", 3)),
        Case("count 2 of 3", patched(patched(good, 57, "i", 2), 23, "i", 1)),
        Case("control", batch(control=True)),
        Case("producer", batch(producer_id=5, producer_epoch=0, base_sequence=0)),
        Case("producer without sequence", batch(producer_id=5, producer_epoch=0)),
        Case("sequence without producer", batch(base_sequence=3)),
        Case("sequence -2", batch(producer_id=5, producer_epoch=0, base_sequence=-2)),
    ]


def timestamps() -> list[Case]:
    append = {"message.timestamp.type": "LogAppendTime"}
    strict = {"message.timestamp.before.max.ms": "1000", "message.timestamp.after.max.ms": "1000"}
    late, early = NOW + 3_600_001, NOW - 1001
    log_append = patched(batch(), 21, "h", 0x08)
    return [
        *(Case(f"log append time {CODECS[c]}", batch(c), append) for c in range(5)),
        Case("at the latest", batch(timestamps=(NOW + 3_600_000,))),
        Case("too late", batch(timestamps=(NOW, late, NOW, late))),
        Case("too late, compressed", batch(1, timestamps=(NOW, late, NOW, late))),
        Case("too late in log append time", batch(timestamps=(late,)), append),
        Case("at the earliest", batch(timestamps=(NOW - 1000, NOW + 1000)), strict),
        Case("too early", batch(timestamps=(NOW, early)), strict),
        Case("none", batch(timestamps=(-1, -1)), strict),
        Case("none and some", batch(timestamps=(-1, NOW)), strict),
        Case("none, log append time", batch(timestamps=(-1, -1)), append),
        Case("-2", batch(timestamps=(-2,))),
        Case("-2 strict", batch(timestamps=(-2,)), strict),
        Case("lowest", batch(timestamps=(-(2**63),))),
        Case("highest", batch(timestamps=(2**63 - 1,))),
        Case("claims an earlier maximum", patched(batch(), 35, "q", NOW - 9)),
        Case("claims a later maximum", patched(batch(2), 35, "q", NOW + 9)),
        Case("claims no maximum", patched(batch(3), 35, "q", -1)),
        Case("producer in log append time", log_append),
        Case("producer in log append time too", log_append, append),
        Case("producer in late log append time", patched(log_append, 35, "q", late)),
        Case("producer in no log append time", patched(log_append, 35, "q", -1)),
    ]


def keys() -> list[Case]:
    compact = {"cleanup.policy": "compact"}
    both = {"cleanup.policy": "compact,delete"}
    late = NOW + 3_600_001
    cases = []
    for codec, name in enumerate(CODECS):
        mixed = encode_batch([(None, b"a"), (b"", b"b"), (None, None)], timestamp=NOW, codec=codec)
        cases += [
            Case(f"keyless {name}", mixed),
            Case(f"keyless on compacted {name}", mixed, compact),
            Case(f"keyless on compact,delete {name}", mixed, both),
        ]
    stray = encode_batch(
        [(None, b"a"), (b"k", b"b")], timestamp=NOW, timestamps=(late, late), codec=0
    )
    only_keyless = encode_batch([(None, b"a")], timestamp=NOW, timestamps=(late,))
    in_append_time = patched(
        encode_batch([(None, b"a"), (b"k", b"b")], timestamp=late), 21, "h", 0x08
    )
    return [
        *cases,
        Case("keyless and late", stray, compact),
        Case("keyless that is late", only_keyless, compact),
        Case("keyless in log append time", in_append_time, compact),
        Case("keyless in log append time, on time", patched(in_append_time, 35, "q", NOW), compact),
    ]


def bodies() -> list[Case]:
    """Broken records, uncompressed and compressed."""
    broken = {
        "no bytes": b"",
        "size runs over": record(SOUND[1:], size=50),
        "negative size": varint(-2) + SOUND[1:],
        "unfinished varint": b"\xff\xff\xff\xff\xff" + SOUND[1:],
        "key runs over": record(b"\0\0\0" + varint(60) + b"k" + b"\x02v" + b"\0"),
        "value runs over": record(b"\0\0\0" + b"\x02k" + varint(60) + b"v" + b"\0"),
        "negative header count": record(b"\0\0\0" + b"\x02k" + b"\x02v" + varint(-1)),
        "too many headers": record(b"\0\0\0" + b"\x02k" + b"\x02v" + varint(9)),
        "null header key": record(b"\0\0\0" + b"\x02k" + b"\x02v" + b"\x02" + b"\x01" + b"\x01"),
        "trailing bytes": SOUND + b"\0",
        "two records for one": SOUND + SOUND,
    }
    sound = {
        "null value": record(b"\0\0\0" + b"\x02k" + b"\x01" + b"\0"),
        "very null key": record(b"\0\0\0" + varint(-9) + b"\x01" + b"\0"),
        "record attributes": record(b"\x7f\0\0" + b"\x02k" + b"\x01" + b"\0"),
        "long varints": record(b"\0\0\0" + b"\x82\x80\x00k" + b"\x02v" + b"\x80\x00"),
    }
    return [
        Case(f"{name} {CODECS[codec]}", with_body(body, codec))
        for name, body in {**broken, **sound}.items()
        for codec in range(5)
    ]


def streams() -> list[Case]:
    """Compressed streams, odd and broken."""
    cases = []
    for codec in range(1, 5):
        stream, name = compress(codec, SOUND), CODECS[codec]
        flipped = stream[:-5] + bytes([stream[-5] ^ 0x55]) + stream[-4:]
        cases += [
            Case(f"cut {name}", with_body(stream[:-2], codec, raw=True)),
            Case(f"flipped {name}", with_body(flipped, codec, raw=True)),
            Case(f"not {name}", with_body(b"\x07" * 30, codec, raw=True)),
            Case(f"nothing {name}", with_body(b"", codec, raw=True)),
            Case(f"garbage behind {name}", with_body(stream + b"\xee" * 30, codec, raw=True)),
        ]
    second = record(b"\0\0\x02" + b"\x02k" + b"\x02v" + b"\0")
    for codec in (1, 2, 3, 4):
        stream = compress(codec, SOUND) + compress(codec, second)
        cases.append(Case(f"two streams {CODECS[codec]}", with_body(stream, codec, 2, raw=True)))
    linked = lz4.frame.compress(SOUND, block_linked=True, store_size=False)
    linked_big = lz4.frame.compress(
        record(b"\0\0\0" + b"\x01" + varint(200_000) + b"v" * 200_000 + b"\0"),
        block_linked=True,
        store_size=False,
    )
    checked = lz4.frame.compress(SOUND, block_linked=False, content_checksum=True, store_size=True)
    block_checked = lz4.frame.compress(SOUND, block_linked=False, block_checksum=True)
    skippable = struct.pack("<II", 0x184D2A51, 3) + b"abc"
    raw_snappy = bytes(cramjam.snappy.compress_raw(SOUND))
    return [
        *cases,
        Case("raw snappy", with_body(raw_snappy, 2, raw=True)),
        Case("lz4 linked", with_body(linked, 3, raw=True)),
        Case("lz4 linked, large", with_body(linked_big, 3, raw=True)),
        Case("lz4 checksum", with_body(checked, 3, raw=True)),
        Case("lz4 block checksum", with_body(block_checked, 3, raw=True)),
        Case("zstd skippable", with_body(skippable + compress(4, SOUND), 4, raw=True)),
        Case("zstd skippable last", with_body(compress(4, SOUND) + skippable, 4, raw=True)),
    ]


def recompression() -> list[Case]:
    cases = [
        Case(
            f"{CODECS[codec]} to {target}{' stamped' * bool(extra)}",
            batch(codec),
            {"compression.type": target, **extra},
        )
        for codec in range(5)
        for target in ("uncompressed", "gzip", "snappy", "lz4", "zstd")
        for extra in ({}, {"message.timestamp.type": "LogAppendTime"})
    ]
    small = str(len(batch()) - 100)
    dense = encode_batch([(b"k", b"v" * 900)], timestamp=NOW, codec=1)
    return [
        *cases,
        Case(
            "grows over limit",
            dense,
            {"compression.type": "uncompressed", "max.message.bytes": "500"},
        ),
        Case("shrinks too late", batch(), {"compression.type": "gzip", "max.message.bytes": small}),
        Case(
            "idempotent",
            batch(producer_id=9, producer_epoch=2, base_sequence=0),
            {"compression.type": "zstd"},
        ),
        Case("horizon", patched(batch(), 21, "h", 0x40), {"compression.type": "lz4"}),
        Case(
            "larger than a segment",
            encode_batch([(b"k", bytes(1_100_000))], timestamp=NOW),
            {"max.message.bytes": "2000000", "segment.bytes": "1048576"},
        ),
        Case("gzip level", batch(), {"compression.type": "gzip", "compression.gzip.level": "9"}),
    ]


def every_case() -> list[Case]:
    groups = (framing, headers, timestamps, keys, bodies, streams, recompression)
    return [
        case._replace(name=f"{group.__name__}: {case.name}") for group in groups for case in group()
    ]
