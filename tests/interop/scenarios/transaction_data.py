"""Transactions in partitions and groups: batches, markers, stable offsets, commits."""

from __future__ import annotations

from typing import Any

from skylog.wire.apis import ApiKey
from skylog.wire.records import encode_batch
from tests.interop.scenarios.batches import partitions
from tests.interop.scenarios.transactions import Producer, warm
from tests.interop.wire import Side, scenario, served

NOW = 1_750_000_000_000
# Versions of Produce whose transaction semantics change, and the one before each.
PRODUCE_VERSIONS = (8, 10, 11, 12)
ADDS_FROM = 12


def batch(producer: Producer, sequence: int, *values: bytes, **more: Any) -> bytes:
    given = {
        "transactional": True,
        "producer_id": producer.producer_id,
        "producer_epoch": producer.epoch,
        "base_sequence": sequence,
        **more,
    }
    return encode_batch([(b"k", value) for value in values], timestamp=NOW, **given)


def write(
    producer: Producer, label: str, topic: str, data: bytes, version: int, **more: Any
) -> Any:
    values = {
        "acks": -1,
        "timeout_ms": 5_000,
        "transactional_id": producer.name,
        "topic_data": partitions(topic, (0, data)),
        **more,
    }
    return producer.side.call(ApiKey.PRODUCE, version, label=f"{label} v{version}", **values)


def without_times(answer: dict[str, Any]) -> Any:
    """The timestamps of markers differ."""
    for topic in answer["responses"]:
        for partition in topic["partitions"]:
            if partition["records"] is not None:
                partition["records"] = [
                    (*found[:4], [(r[0], *r[2:]) for r in found[4]])
                    for found in partition["records"]
                ]
    return answer


def look(side: Side, label: str, topic: str, offset: int = 0) -> None:
    """What readers of both isolation levels see."""
    partition = {"partition": 0, "fetch_offset": offset, "partition_max_bytes": 1 << 20}
    for isolation in (0, 1):
        side.call(
            ApiKey.FETCH,
            12,
            label=f"{label} isolation {isolation} from {offset}",
            keep=without_times,
            max_wait_ms=0,
            max_bytes=1 << 20,
            isolation_level=isolation,
            session_epoch=-1,
            topics=[{"topic": topic, "partitions": [partition]}],
        )
        asked = [{"partition_index": 0, "timestamp": -1}]
        side.call(
            ApiKey.LIST_OFFSETS,
            7,
            label=f"{label} end {isolation}",
            isolation_level=isolation,
            topics=[{"name": topic, "partitions": asked}],
        )


def describe(side: Side, label: str, topic: str) -> None:
    side.call(
        ApiKey.DESCRIBE_PRODUCERS,
        0,
        label=label,
        topics=[{"name": topic, "partition_indexes": [0]}],
    )


@scenario
def writes(side: Side) -> None:
    warm(side)
    for version in PRODUCE_VERSIONS:
        topic = side.create(f"v{version}")
        producer = Producer(side, f"w{version}").start()
        first = batch(producer, 0, b"a", b"b")
        write(producer, "not added", topic, first, version)
        if version < ADDS_FROM:
            producer.add("added", [(topic, [0])])
        write(producer, "first", topic, first, version)
        write(producer, "repeated", topic, first, version)
        write(producer, "a gap", topic, batch(producer, 9, b"x"), version)
        describe(side, "open", topic)
        look(side, "open", topic)
        for change in (-1, 1):
            data = batch(producer, 0, b"x", producer_epoch=producer.epoch + change)
            if producer.epoch + change >= 0:
                write(producer, f"epoch {change:+}", topic, data, version)
        write(producer, "next", topic, batch(producer, 2, b"c"), version)
        ended = producer.end("end", version=5 if version >= ADDS_FROM else 4)
        producer.settle()
        look(side, "committed", topic)
        describe(side, "committed", topic)
        write(producer, "after the end", topic, batch(producer, 3, b"d"), version)
        if version >= ADDS_FROM:
            producer.epoch = ended.producer_epoch
            write(producer, "the next one", topic, batch(producer, 0, b"e"), version)
            producer.end("abort", commit=False)
        else:
            producer.add("added", [(topic, [0])])
            write(producer, "the next one", topic, batch(producer, 3, b"e"), version)
            producer.end("abort", commit=False, version=4)
        producer.settle()
        look(side, "aborted", topic)
        look(side, "aborted", topic, offset=4)
        describe(side, "aborted", topic)


@scenario
def strangers(side: Side) -> None:
    """Batches that do not belong to their transaction."""
    warm(side)
    topic = side.create()
    for version in PRODUCE_VERSIONS:
        producer = Producer(side, f"s{version}").start()
        data = batch(producer, 0, b"a")
        unknown = {"transactional_id": side.name("unknown")}
        write(producer, "of an unknown id", topic, data, version, **unknown)
        other = batch(producer, 0, b"a", producer_id=producer.producer_id + 100_000)
        write(producer, "of another producer", topic, other, version)
        plain = batch(producer, 0, b"a", transactional=False)
        write(producer, "not transactional", topic, plain, version)
        both = partitions(topic, (0, data))
        mixed = [*both, *partitions(side.name("no"), (0, data))]
        write(producer, "partly to no topic", topic, data, version, topic_data=mixed)
    look(side, "at the end", topic)


@scenario
def several_open_at_once(side: Side) -> None:
    """The oldest determines the stable offset; aborted ones are listed."""
    warm(side)
    topic = side.create()
    producers = [Producer(side, f"p{number}").start() for number in range(3)]
    for sequence in range(2):
        for number, producer in enumerate(producers):
            data = batch(producer, sequence, b"%d-%d" % (number, sequence))
            write(producer, f"{number}", topic, data, 12)
    for number, commit in ((1, False), (0, True), (2, False)):
        look(side, f"before {number}", topic)
        producers[number].end(f"{number}", commit=commit)
        producers[number].settle()
        describe(side, f"after {number}", topic)
    look(side, "at the end", topic)
    for offset in range(1, 9):
        look(side, "at the end", topic, offset)


@scenario
def markers(side: Side) -> None:
    """WriteTxnMarkers by hand."""
    warm(side)
    for version in served(ApiKey.WRITE_TXN_MARKERS):
        topic = side.create(f"v{version}")
        producer = Producer(side, f"m{version}").start().start()
        write(producer, "open", topic, batch(producer, 0, b"a"), 12)

        def mark(
            label: str,
            where: list[tuple[str, list[int]]],
            version: int = version,
            producer: Producer = producer,
            **changed: Any,
        ) -> None:
            marker = {
                "producer_id": producer.producer_id,
                "producer_epoch": producer.epoch,
                "transaction_result": False,
                "coordinator_epoch": 5,
                "topics": [{"name": name, "partition_indexes": at} for name, at in where],
                **changed,
            }
            side.call(ApiKey.WRITE_TXN_MARKERS, version, label=label, markers=[marker])

        side.call(ApiKey.WRITE_TXN_MARKERS, version, label="nothing", markers=[])
        mark("no such topic", [(side.name("no"), [0])])
        mark("no such partition", [(topic, [9])])
        mark("an old epoch", [(topic, [0])], producer_epoch=producer.epoch - 1)
        mark("partly", [(topic, [0, 9])])
        look(side, "marked", topic)
        describe(side, "marked", topic)
        mark("an old coordinator", [(topic, [0])], coordinator_epoch=4)
        mark("again", [(topic, [0])])
        mark("of nobody", [(topic, [0])], producer_id=producer.producer_id + 100_000)
        if version >= 2:
            given = {"transaction_version": 2, "producer_epoch": producer.epoch}
            mark("version 2, the same epoch", [(topic, [0])], **given)
            mark("version 2, the next", [(topic, [0])], **{**given, "producer_epoch": 7})
            mark("version 2, an old one", [(topic, [0])], **given)
        look(side, "at the end", topic)
        describe(side, "at the end", topic)


@scenario
def offsets(side: Side) -> None:
    """TxnOffsetCommit: offsets that are pending until the end of the transaction."""
    warm(side)
    topic = side.create()
    for version in served(ApiKey.TXN_OFFSET_COMMIT):
        producer = Producer(side, f"o{version}").start()
        group = side.name(f"group{version}")

        def commit(
            label: str,
            offset: int = 5,
            version: int = version,
            producer: Producer = producer,
            group: str = group,
            **changed: Any,
        ) -> None:
            index = changed.pop("index", 0)
            name = changed.pop("name", topic)
            part = {"partition_index": index, "committed_offset": offset, "committed_metadata": "m"}
            given = {**producer.ids(), "group_id": group, **changed}
            topics = [{"name": name, "partitions": [part]}]
            side.call(ApiKey.TXN_OFFSET_COMMIT, version, label=label, topics=topics, **given)

        def fetch(label: str, group: str = group) -> None:
            for stable in (False, True):
                asked = [{"name": topic, "partition_indexes": [0]}]
                side.call(
                    ApiKey.OFFSET_FETCH,
                    7,
                    label=f"{label} stable={stable}",
                    group_id=group,
                    topics=asked,
                    require_stable=stable,
                )

        commit("not added")
        if version < 5:
            side.call(ApiKey.ADD_OFFSETS_TO_TXN, 3, label="added", group_id=group, **producer.ids())
        commit("another epoch", producer_epoch=producer.epoch + 1)
        commit("another producer", producer_id=producer.producer_id + 100_000)
        commit("no such partition", index=9)
        commit("no such topic", name=side.name("no"))
        commit("without a group", group_id="")
        if version >= 3:
            commit("a member that is none", member_id="nobody", generation_id=1)
            commit("a generation that is none", generation_id=1)
            commit("a static member that is none", group_instance_id="nobody", member_id="m")
        fetch("before")
        commit("first")
        fetch("pending")
        commit("second", offset=8)
        ended = producer.end("end", version=5 if version >= 5 else 4)
        producer.settle()
        fetch("committed")
        if version >= 5:
            producer.epoch = ended.producer_epoch
        else:
            side.call(ApiKey.ADD_OFFSETS_TO_TXN, 3, label="again", group_id=group, **producer.ids())
        commit("to be given up", offset=99)
        fetch("pending again")
        producer.end("abort", commit=False, version=5 if version >= 5 else 4)
        producer.settle()
        fetch("aborted")
