"""Produce: every error of Kafka's, duplicates and sequences, stored batches."""

from __future__ import annotations

from typing import Any

from skylog.wire.apis import ApiKey
from skylog.wire.records import encode_batch
from tests.interop.scenarios.batches import (
    ATTRIBUTES_AT,
    COUNT_AT,
    CRC_AT,
    EPOCH_AT,
    LAST_DELTA_AT,
    LENGTH_AT,
    MAGIC_AT,
    NOW,
    PRODUCER_AT,
    SEQUENCE_AT,
    batch,
    fill,
    partitions,
    patched,
    produce,
)
from tests.interop.scenarios.topics import STRANGE_ID
from tests.interop.wire import Side, scenario, served


def stored(side: Side, name: str, version: int = 12, index: int = 0) -> None:
    """Compare the records from the beginning."""
    part = {"partition": index, "fetch_offset": 0, "partition_max_bytes": 1 << 20}
    side.call(
        ApiKey.FETCH,
        version,
        label="what is stored",
        max_wait_ms=0,
        max_bytes=1 << 20,
        topics=[{"topic": name, "partitions": [part]}],
    )


@scenario
def in_every_version(side: Side) -> None:
    name = side.create(partitions=2)
    for version in served(ApiKey.PRODUCE):
        if version > 12:
            continue
        for acks in (-1, 1):
            produce(side, f"acks {acks}", name, batch(b"a", b"b"), version=version, acks=acks)
        produce(side, "acks 2", name, batch(b"a"), version=version, acks=2)
        produce(side, "no such partition", name, batch(b"a"), version=version, index=7)
        produce(side, "no such topic", side.name("no"), batch(b"a"), version=version)
        # Not compared: null for records, which Kafka never answers.
        produce(side, "no bytes", name, b"", version=version)
    stored(side, name)


@scenario
def by_topic_id(side: Side) -> None:
    name = side.create(partitions=1)
    for label, topic_id in [
        ("id", side.topic_id(name)),
        ("strange id", STRANGE_ID),
        ("zero", None),
    ]:
        topic: dict[str, Any] = {"partition_data": [{"index": 0, "records": batch(b"a")}]}
        if topic_id is not None:
            topic["topic_id"] = topic_id
        side.call(ApiKey.PRODUCE, 13, label=label, acks=-1, timeout_ms=5_000, topic_data=[topic])
    stored(side, name)


@scenario
def bad_batches(side: Side) -> None:
    name = side.create()
    good = batch(b"a", b"b", b"c")
    cases = {
        "base offset": patched(good, 0, ">q", 5),
        "magic 1": patched(good, MAGIC_AT, ">b", 1),
        "magic 0": patched(good, MAGIC_AT, ">b", 0),
        "magic 3": patched(good, MAGIC_AT, ">b", 3),
        "crc": good[:CRC_AT] + b"\0\0\0\0" + good[CRC_AT + 4 :],
        "count too small": patched(good, COUNT_AT, ">i", 2),
        "count too large": patched(good, COUNT_AT, ">i", 4),
        "count negative": patched(good, COUNT_AT, ">i", -1),
        "count zero": patched(good, COUNT_AT, ">i", 0),
        "last delta": patched(good, LAST_DELTA_AT, ">i", 5),
        "control": patched(good, ATTRIBUTES_AT, ">h", 0x20),
        "transactional": patched(good, ATTRIBUTES_AT, ">h", 0x10),
        "codec 5": patched(good, ATTRIBUTES_AT, ">h", 5),
        "codec 7": patched(good, ATTRIBUTES_AT, ">h", 7),
        "gzip of nothing": patched(good, ATTRIBUTES_AT, ">h", 1),
        "log append time": patched(good, ATTRIBUTES_AT, ">h", 0x8),
        "delete horizon": patched(good, ATTRIBUTES_AT, ">h", 0x40),
        "length too long": patched(good, LENGTH_AT, ">i", len(good)),
        "length too short": patched(good, LENGTH_AT, ">i", 10),
        "length negative": patched(good, LENGTH_AT, ">i", -1),
        "cut": good[:-3],
        "half a header": good[:30],
        "five bytes": good[:5],
        "two batches": good + good,
        "a batch and rubbish": good + b"rubbish",
        "producer id without epoch": patched(good, PRODUCER_AT, ">q", 4),
        "sequence without producer": patched(good, SEQUENCE_AT, ">i", 0),
        "epoch without producer": patched(good, EPOCH_AT, ">h", 0),
        "leader epoch": patched(good, 12, ">i", 77),
    }
    for label, data in cases.items():
        produce(side, label, name, data)
    # Not compared: a partition twice in a request, of which Kafka silently drops the first.
    stored(side, name)


@scenario
def topic_twice_in_a_request(side: Side) -> None:
    a = side.create("a", 2)
    twice = partitions(a, (0, batch(b"1"))) + partitions(a, (1, batch(b"2")))

    def merged(answer: Any) -> Any:
        return [p for topic in answer["responses"] for p in topic["partition_responses"]]

    side.call(ApiKey.PRODUCE, 12, keep=merged, acks=-1, timeout_ms=5_000, topic_data=twice)
    # Not compared: the same partition in both, of which Kafka silently drops the first.
    stored(side, a)
    stored(side, a, index=1)


@scenario
def bad_records(side: Side) -> None:
    """Batches with valid headers and invalid records."""
    name = side.create()

    def raw(body: bytes, count: int = 1) -> bytes:
        good = batch(b"a")
        data = bytearray(good[:61] + body)
        data[LENGTH_AT : LENGTH_AT + 4] = (len(data) - 12).to_bytes(4, "big")
        whole = patched(bytes(data), COUNT_AT, ">i", count)
        return patched(whole, LAST_DELTA_AT, ">i", max(count - 1, 0))

    cases = {
        "good": raw(b"\x0e\0\0\0\1\2a\0"),
        "length too long": raw(b"\x10\0\0\0\1\2a\0"),
        "length too short": raw(b"\x0c\0\0\0\1\2a\0"),
        "length negative": raw(b"\x01\0\0\0\1\2a\0"),
        "key beyond": raw(b"\x0e\0\0\0\x20\2a\0"),
        "value beyond": raw(b"\x0e\0\0\0\1\x20a\0"),
        "value length -2": raw(b"\x0e\0\0\0\1\3a\0"),
        "headers -1": raw(b"\x0e\0\0\0\1\2a\1"),
        "headers beyond": raw(b"\x0e\0\0\0\1\2a\4"),
        "header key null": raw(b"\x12\0\0\0\1\2a\2\1\1"),
        "header value null": raw(b"\x14\0\0\0\1\2a\2\2k\1"),
        "header value -2": raw(b"\x14\0\0\0\1\2a\2\2k\3"),
        # Not compared: offset deltas that are not 0, 1, 2, …: Kafka accepts them, which breaks
        # readers.
        "attributes": raw(b"\x0e\7\0\0\1\2a\0"),
        "more records than said": raw(b"\x0e\0\0\0\1\2a\0" * 2),
        # Not compared: a varint of six bytes, which makes Kafka fail (−1) where we return 87.
        "nothing": raw(b""),
    }
    for label, data in cases.items():
        produce(side, label, name, data)
    stored(side, name)


@scenario
def compression(side: Side) -> None:
    for topic_codec in ("producer", "uncompressed", "gzip", "snappy", "lz4", "zstd"):
        name = side.create(topic_codec, compression_type=topic_codec)
        for codec in range(5):
            produce(side, f"codec {codec}", name, batch(b"a" * 300, b"b", None, codec=codec))
        # zstd came with version 7.
        produce(side, "zstd in v6", name, batch(b"a", codec=4), version=6)
        stored(side, name)
        stored(side, name, version=9)


@scenario
def compacted(side: Side) -> None:
    name = side.create(cleanup_policy="compact")
    produce(side, "no key", name, batch(b"a", b"b"))
    produce(side, "no key, gzip", name, batch(b"a", b"b", codec=1))
    mixed = encode_batch([(b"k", b"v"), (None, b"v"), (b"", None)], timestamp=NOW)
    produce(side, "one without", name, mixed, version=7)
    produce(side, "one without", name, mixed)
    produce(side, "keys", name, encode_batch([(b"k", b"v"), (b"", None)], timestamp=NOW))
    stored(side, name)


@scenario
def timestamps(side: Side) -> None:
    import time

    now = int(time.time() * 1000)
    name = side.create(
        message_timestamp_before_max_ms="3600000", message_timestamp_after_max_ms="60000"
    )
    for label, at in [
        ("old", now - 7_200_000),
        ("new", now),
        ("future", now + 600_000),
        ("-1", -1),
    ]:
        for codec in (0, 1):
            produce(
                side, f"{label} {codec}", name, batch(b"a", b"b", codec=codec, timestamps=[at, at])
            )
    plain = side.create("plain")
    for label, at in [("zero", 0), ("-1", -1), ("-2", -2), ("far", now + 86_400_000 * 3)]:
        produce(side, label, plain, batch(b"a", timestamps=[at]))
    appended = side.create("appended", message_timestamp_type="LogAppendTime")
    produce(side, "log append time", appended, batch(b"a", b"b"))
    produce(side, "log append time", appended, batch(b"a", b"b", codec=2))


@scenario
def sizes(side: Side) -> None:
    name = side.create(max_message_bytes="1000")
    for size in (900, 1000, 1001, 1010, 2000):
        head = len(batch(b"x" * 500)) - 500
        data = batch(b"x" * (size - head))
        assert len(data) == size
        produce(side, f"{size} bytes", name, data)
        produce(side, f"{size} bytes, version 3", name, data, version=3)
    produce(side, "large but compressed", name, batch(b"x" * 5000, codec=1))
    recompressed = side.create("re", max_message_bytes="1000", compression_type="uncompressed")
    produce(side, "too large when decompressed", recompressed, batch(b"x" * 5000, codec=1))
    default = side.create("default")
    head = len(batch(b"x" * 1_000_000)) - 1_000_000
    for size in (1_048_588, 1_048_589):
        produce(side, f"{size} bytes", default, batch(b"x" * (size - head)))


def _sequenced(producer: int, epoch: int, sequence: int, *values: bytes) -> bytes:
    return batch(*values, producer_id=producer, producer_epoch=epoch, base_sequence=sequence)


@scenario
def sequences(side: Side) -> None:
    name = side.create()
    producer = side.producer_id()

    def send(label: str, epoch: int, sequence: int, count: int = 1, who: int = producer) -> None:
        produce(side, label, name, _sequenced(who, epoch, sequence, *[b"v"] * count))

    send("first", 0, 0, 3)
    send("again", 0, 0, 3)
    send("again, other count", 0, 0, 2)
    send("next", 0, 3)
    send("gap", 0, 5)
    for sequence in range(4, 12):
        send(f"sequence {sequence}", 0, sequence)
    send("duplicate of five back", 0, 7)
    send("duplicate of six back", 0, 6)
    send("first of all", 0, 0, 3)
    send("last again", 0, 11)
    send("new epoch in the middle", 1, 5)
    send("new epoch", 1, 0)
    send("old epoch", 0, 12)
    send("epoch jumps", 5, 0)
    send("epoch jumps and begins at 3", 9, 3)
    send("unknown producer begins anywhere", 0, 17, who=987_654)
    send("unknown producer goes on", 0, 18, who=987_654)
    send("unknown producer, other epoch", 3, 19, who=987_654)
    send("negative epoch", -1, 0, who=987_655)
    send("negative sequence", 0, -1, who=987_656)
    send("sequence wraps", 0, 2**31 - 1, who=987_657)
    send("after the wrap", 0, 0, who=987_657)
    send("wraps within", 0, 2**31 - 2, 4, who=987_658)
    send("after it", 0, 2, who=987_658)
    stored(side, name)
    parts = [{"name": name, "partition_indexes": [0, 3]}]
    for topics in (parts, [{"name": side.name("no"), "partition_indexes": [0]}], []):
        side.call(ApiKey.DESCRIBE_PRODUCERS, 0, topics=topics, keep=_by_producer)


def _by_producer(answer: Any) -> Any:
    for topic in answer["topics"]:
        for part in topic["partitions"]:
            part["active_producers"].sort(key=str)
            part.pop("error_message")  # Kafka has one for some errors only
    return answer


@scenario
def several_sequences_in_a_request(side: Side) -> None:
    name = side.create(partitions=3)
    records = [(index, _sequenced(55_000, 0, 0, b"a")) for index in (0, 1, 2, 9)]
    for _ in range(2):
        side.call(
            ApiKey.PRODUCE, 12, acks=-1, timeout_ms=5_000, topic_data=partitions(name, *records)
        )


@scenario
def transactional(side: Side) -> None:
    name = side.create()
    data = batch(b"a", transactional=True, producer_id=5, producer_epoch=0, base_sequence=0)
    produce(side, "a transactional batch without an id", name, data)


@scenario
def internal_topics(side: Side) -> None:
    side.quiet(ApiKey.FIND_COORDINATOR, 4, key_type=0, coordinator_keys=["g"])
    side.await_leader("__consumer_offsets", 4)
    data = encode_batch([(b"k", b"v")], timestamp=NOW)
    produce(side, "to the groups' topic", "__consumer_offsets", data)
    produce(side, "to the metadata topic", "__cluster_metadata", data)
    produce(side, "to the transactions' topic", "__transaction_state", data)


@scenario
def acks_0(side: Side) -> None:
    """No response; a refused request closes the connection."""
    name = side.create()

    def send(label: str, data: bytes, topic: str = name) -> None:
        side.wire("zero").call(
            ApiKey.PRODUCE,
            12,
            answer=False,
            acks=0,
            timeout_ms=1_000,
            topic_data=partitions(topic, (0, data)),
        )
        side.call(ApiKey.METADATA, 12, wire="zero", label=label, topics=[{"name": name}])

    send("good", batch(b"a"))
    send("bad checksum", batch(b"a")[:-1] + b"\0")
    send("no such topic", batch(b"a"), side.name("no"))
    send("good again", batch(b"b"))
    stored(side, name)


@scenario
def old_versions(side: Side) -> None:
    """Listed by ApiVersions, but not served."""
    name = side.create()
    fill(side, name, batch(b"a"))
    import struct

    for version in (0, 1, 2):
        head = struct.pack(">hhih", 0, version, 1, -1)
        side.note(f"version {version}", side.wire().raw(head + bytes(14)) is None)
