"""Batches of Kafka's own builder and of librdkafka, and Kafka's verdicts on good and bad ones."""

from __future__ import annotations

from pathlib import Path

import pytest

from skylog.kernel.errors import KafkaError
from skylog.wire.batch import Batch, Compression, patch_offset
from skylog.wire.compression import decompress
from skylog.wire.records import Record, decode_records, encode_batch
from skylog.wire.topic_rules import TopicRules
from skylog.wire.validation import ValidationError, validate
from skylog.wire.walker import locate
from tests.golden.records.cases import NOW, Case, every_case

FOLDER = Path(__file__).parent / "records"


def batches(writer: str) -> dict[str, bytes]:
    lines = (FOLDER / f"{writer}_batches.txt").read_text().splitlines()
    return {name: bytes.fromhex(data) for name, data in (line.split() for line in lines)}


JAVA = batches("java")
LIBRDKAFKA = batches("librdkafka")
VERDICTS = dict(line.split("\t") for line in (FOLDER / "verdicts.txt").read_text().splitlines())
CASES = {case.name: case for case in every_case()}

# Cases in which we are stricter than Kafka, or have a more specific error.
STRICTER = {
    f"bodies: {fault} {codec}"
    for fault in ("size runs over", "negative size")
    for codec in ("gzip", "snappy", "lz4", "zstd")
} | {"bodies: unfinished varint none"}


def expected(count: int, base_offset: int = 0) -> list[Record]:
    """The records that tools/java/WriteBatches.java writes."""
    return [
        Record(
            base_offset + i,
            NOW + (i % 7) * 1000 - 2000,
            None if i % 3 == 0 else b"key-%d" % i,
            None if i % 5 == 0 else b"value " * (i % 50),
            () if i % 2 == 0 else (("name", b"header-%d" % i), ("é", None)),
        )
        for i in range(count)
    ]


@pytest.mark.parametrize("codec", Compression)
def test_reads_what_java_writes(codec: Compression) -> None:
    name = codec.name.lower()
    plain = Batch(JAVA[name])
    assert plain.crc_ok()
    assert plain.codec == codec
    assert decode_records(plain) == expected(40)
    assert decode_records(Batch(JAVA[f"{name}-one"])) == expected(1)
    stamped = Batch(JAVA[f"{name}-stamped"])
    assert stamped.is_log_append_time
    assert decode_records(stamped) == [r._replace(timestamp=NOW) for r in expected(40, 5)]
    transactional = Batch(JAVA[f"{name}-transactional"])
    assert transactional.is_transactional
    assert transactional.base_sequence == 1000
    assert decode_records(transactional) == expected(40, 5)


@pytest.mark.parametrize("codec", Compression)
def test_reads_what_librdkafka_writes(codec: Compression) -> None:
    batch = Batch(LIBRDKAFKA[codec.name.lower()])
    assert batch.codec == codec
    assert decode_records(batch) == expected(40)
    # It is valid as a produced batch; only the leader epoch, not under the CRC, was different.
    assert validate(bytearray(batch.buffer), TopicRules(), NOW, 9).batch.buffer == batch.buffer


def test_writes_what_java_writes() -> None:
    records = expected(40)
    ours = encode_batch(
        [(record.key, record.value) for record in records],
        timestamp=NOW,
        timestamps=[record.timestamp for record in records],
        headers=[record.headers for record in records],
    )
    assert ours == JAVA["none"]
    of_producer = encode_batch(
        [(record.key, record.value) for record in records],
        timestamp=NOW,
        timestamps=[record.timestamp for record in records],
        headers=[record.headers for record in records],
        base_offset=5,
        leader_epoch=9,
        producer_id=77,
        producer_epoch=3,
        base_sequence=1000,
        transactional=True,
    )
    assert of_producer == JAVA["none-transactional"]


def test_control_batches_as_java_writes_them() -> None:
    for name, fields in {
        "commit": {"producer_id": 77, "producer_epoch": 3, "transactional": True},
        "leader-change": {},
    }.items():
        batch = Batch(JAVA[name])
        assert batch.is_control
        (record,) = decode_records(batch)
        again = encode_batch(
            [(record.key, record.value)],
            timestamp=NOW,
            base_offset=batch.base_offset,
            leader_epoch=4,
            control=True,
            **fields,
        )
        assert again == JAVA[name]


def test_every_case_has_a_verdict() -> None:
    assert set(VERDICTS) == set(CASES)


def judge(case: Case) -> tuple[int, str, bytes]:
    """Our verdict in the terms of Kafka's."""
    try:
        batch = validate(bytearray(case.records), case.rules(), NOW, case.version).batch
    except ValidationError as error:
        return int(error.code), ",".join(str(index) for index, _ in error.record_errors), b""
    except KafkaError as error:
        return int(error.code), "-", b""
    assert batch.crc_ok()
    assert isinstance(batch.buffer, memoryview)
    patch_offset(batch.buffer, 0, 7)
    return 0, "-", bytes(batch.buffer)


def meaning(data: bytes) -> tuple[object, ...]:
    """The stored records, independent of compression and of the base timestamp."""
    batch = Batch(data)
    fields = (
        batch.leader_epoch,
        batch.attributes,
        batch.last_offset_delta,
        batch.max_timestamp,
        batch.producer_id,
        batch.producer_epoch,
        batch.base_sequence,
        batch.record_count,
    )
    return (*fields, decode_records(batch))


@pytest.mark.parametrize("name", CASES)
def test_verdicts_are_those_of_kafka(name: str) -> None:
    code, indexes, stored = VERDICTS[name].split()
    ours = judge(CASES[name])
    if name in STRICTER:
        assert ours[0] == 87
        return
    assert ours[:2] == (int(code), indexes)
    if stored != "-" and ours[2] != bytes.fromhex(stored):
        assert name.startswith("recompression")
        assert meaning(ours[2]) == meaning(bytes.fromhex(stored))


def test_most_batches_are_stored_byte_for_byte() -> None:
    """Most cases are, so the comparison by meaning above cannot hide a difference."""
    same = [
        name
        for name, verdict in VERDICTS.items()
        if verdict.startswith("0") and judge(CASES[name])[2].hex() == verdict.split()[2]
    ]
    assert len(same) > 60


def test_bodies_of_all_codecs_are_the_same() -> None:
    bodies = {
        bytes(decompress(batch.codec, batch.records(), 1 << 20))
        for batch in (Batch(JAVA[codec.name.lower()]) for codec in Compression)
    }
    assert len(bodies) == 1
    assert len(locate(bodies.pop(), 40, 0)) == 40
