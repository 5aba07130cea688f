"""CreateTopics, DeleteTopics, CreatePartitions, DeleteRecords, Metadata."""

from __future__ import annotations

from typing import Any

from skylog.kernel.ids import Uuid
from skylog.wire.apis import ApiKey
from tests.interop.wire import Side, scenario, served

STRANGE_ID = Uuid(b"\7" * 16)
NAMES = ["", ".", "..", "a b", "ä", "a/b", "a" * 249, "a" * 250, "a\0b", "-", "_", "A.b-c_d"]


def topic(name: str, partitions: int = 1, factor: int = 1, **more: Any) -> dict[str, Any]:
    return {"name": name, "num_partitions": partitions, "replication_factor": factor, **more}


def create(side: Side, *topics: dict[str, Any], version: int = 7, **more: Any) -> Any:
    values = {"timeout_ms": 10_000, "topics": list(topics), **more}
    return side.call(ApiKey.CREATE_TOPICS, version, **values)


@scenario
def create_in_every_version(side: Side) -> None:
    for version in served(ApiKey.CREATE_TOPICS):
        create(side, topic(side.name(f"v{version}"), 2), version=version)
        create(side, topic(side.name(f"v{version}"), 2), version=version)
        create(side, topic(side.name(f"only{version}")), version=version, validate_only=True)


@scenario
def create_by_name(side: Side) -> None:
    for name in NAMES:
        create(side, topic(name))
    for name in NAMES:
        side.quiet(ApiKey.DELETE_TOPICS, 5, topic_names=[name], timeout_ms=10_000)


@scenario
def create_that_collides(side: Side) -> None:
    create(side, topic("col.l_ide"))
    create(side, topic("col_l.ide"))
    create(side, topic("col_l_ide"), topic("col.l.ide"))
    side.quiet(ApiKey.DELETE_TOPICS, 5, topic_names=["col.l_ide"], timeout_ms=10_000)


@scenario
def create_with_bad_numbers(side: Side) -> None:
    name = side.name()
    for partitions, factor in [(0, 1), (-1, 1), (-2, 1), (1, 0), (1, -1), (1, -2), (1, 2), (1, 3)]:
        create(side, topic(f"{name}{partitions}{factor}", partitions, factor))
    create(side, topic(name, -1, -1), version=2)
    create(side, topic(name, 10_001, 1), validate_only=True)
    # Not compared: with a timeout of 0 Kafka times out before it starts.


@scenario
def create_the_same_twice_in_one_request(side: Side) -> None:
    a, b = side.name("a"), side.name("b")
    create(side, topic(a), topic(b), topic(a))
    create(side, topic(a), topic(a, 2))
    create(side, topic(""), topic(""))


@scenario
def create_with_assignments(side: Side) -> None:
    def assigned(*assignments: tuple[int, list[int]]) -> list[dict[str, Any]]:
        return [{"partition_index": index, "broker_ids": ids} for index, ids in assignments]

    cases = [
        assigned((0, [1])),
        assigned((0, [1]), (1, [1])),
        assigned((1, [1])),
        assigned((0, [1]), (2, [1])),
        assigned((0, [1]), (0, [1])),
        assigned((0, [])),
        assigned((0, [1, 1])),
        assigned((0, [2])),
        assigned((0, [1, 2])),
        assigned((0, [1]), (1, [1, 2])),
        assigned((-1, [1])),
    ]
    for index, assignments in enumerate(cases):
        name = side.name(f"n{index}")
        create(side, topic(name, -1, -1, assignments=assignments))
        create(side, topic(name + "x", 1, 1, assignments=assignments))
        create(side, topic(name + "y", -1, 1, assignments=assignments))
        create(side, topic(name + "z", 1, -1, assignments=assignments))


@scenario
def create_with_configs(side: Side) -> None:
    cases = [
        {"cleanup.policy": "compact"},
        {"cleanup.policy": "delete,compact"},
        {"cleanup.policy": "nonsense"},
        {"cleanup.policy": ""},
        {"cleanup.policy": None},
        {"retention.ms": "-1"},
        {"retention.ms": "-2"},
        {"retention.ms": "x"},
        {"retention.ms": " 5 "},
        {"retention.bytes": "-1"},
        {"retention.bytes": "9223372036854775808"},
        {"segment.bytes": "13"},
        {"segment.bytes": "1048576"},
        {"segment.bytes": "1048575"},
        {"min.insync.replicas": "0"},
        {"min.insync.replicas": "2"},
        {"max.message.bytes": "-1"},
        {"max.message.bytes": "0"},
        {"compression.type": "zstd"},
        {"compression.type": "ZSTD"},
        {"compression.type": "brotli"},
        {"compression.zstd.level": "23"},
        {"compression.gzip.level": "0"},
        {"compression.lz4.level": "18"},
        {"message.timestamp.type": "LogAppendTime"},
        {"message.timestamp.type": "logappendtime"},
        {"message.format.version": "3.0"},
        {"no.such.config": "1"},
        {"unclean.leader.election.enable": "TRUE"},
        {"unclean.leader.election.enable": "yes"},
        {"min.cleanable.dirty.ratio": "1.1"},
        {"min.cleanable.dirty.ratio": "0.1"},
        {"leader.replication.throttled.replicas": "*"},
        {"leader.replication.throttled.replicas": "0:1,1:1"},
        {"leader.replication.throttled.replicas": "x"},
        {"max.compaction.lag.ms": "0"},
        {"min.compaction.lag.ms": "10", "max.compaction.lag.ms": "5"},
        {"local.retention.ms": "10", "retention.ms": "5"},
        {"remote.storage.enable": "true"},
        {"segment.ms": "0"},
        {"segment.jitter.ms": "-1"},
        {"flush.messages": "0"},
        {"index.interval.bytes": "-1"},
        {"segment.index.bytes": "3"},
        {"file.delete.delay.ms": "-1"},
        {"delete.retention.ms": "-1"},
        {"preallocate": "maybe"},
        {"message.timestamp.before.max.ms": "-1"},
        {"message.timestamp.after.max.ms": "5"},
        {"": "1"},
    ]
    for index, given in enumerate(cases):
        configs = [{"name": key, "value": value} for key, value in given.items()]
        name = side.name(str(index))
        create(side, topic(name, configs=configs), validate_only=index % 2 == 0)
    double = [{"name": "retention.ms", "value": "1"}, {"name": "retention.ms", "value": "2"}]
    create(side, topic(side.name("double"), configs=double))


@scenario
def create_internal(side: Side) -> None:
    create(side, topic("__cluster_metadata"))
    create(side, topic("__transaction_state"), validate_only=True)
    create(side, topic("__share_group_state"), validate_only=True)


@scenario
def delete_topics(side: Side) -> None:
    for version in served(ApiKey.DELETE_TOPICS):
        name = side.create(f"v{version}")
        for names in ([name], [name], ["", "a b", side.name("nope")]):
            given: dict[str, Any] = {"topic_names": names}
            if version >= 6:
                given = {"topics": [{"name": n} for n in names]}
            side.call(ApiKey.DELETE_TOPICS, version, timeout_ms=10_000, **given)


@scenario
def delete_topics_oddly(side: Side) -> None:
    a, b = side.create("a"), side.create("b")
    ids = {name: side.topic_id(name) for name in (a, b)}

    def delete(label: str, *topics: dict[str, Any]) -> None:
        def ordered(answer: Any) -> Any:
            answer["responses"].sort(key=str)
            return answer

        side.call(
            ApiKey.DELETE_TOPICS,
            6,
            label=label,
            keep=ordered,
            timeout_ms=9_000,
            topics=list(topics),
        )

    delete("no such id", {"topic_id": STRANGE_ID, "name": None})
    delete("neither", {"name": None})
    delete("both", {"name": a, "topic_id": ids[a]})
    delete("twice by name", {"name": a}, {"name": a})
    delete("twice by id", *[{"name": None, "topic_id": ids[a]}] * 2)
    delete("by name and by id", {"name": a}, {"name": None, "topic_id": ids[a]})
    delete("by id", {"name": None, "topic_id": ids[b]})
    delete("again", {"name": None, "topic_id": ids[b]})
    delete("none")
    delete("one of two", {"name": a}, {"name": side.name("nope")})
    delete("internal", {"name": "__cluster_metadata"})


@scenario
def create_partitions(side: Side) -> None:
    def grow(name: str, count: int, assignments: Any = None, **more: Any) -> None:
        values: dict[str, Any] = {"name": name, "count": count, "assignments": None}
        if assignments is not None:
            values["assignments"] = [{"broker_ids": ids} for ids in assignments]
        version = more.pop("version", 3)
        side.call(ApiKey.CREATE_PARTITIONS, version, topics=[values], timeout_ms=9_000, **more)

    name = side.create(partitions=2)
    for version in served(ApiKey.CREATE_PARTITIONS):
        grow(name, 3 + version, version=version)
    for count in (-1, 0, 1, 2, 3, 6):
        grow(name, count, validate_only=True)
    for assignments in ([[1]], [[1], [1]], [[2]], [[]], [], [[1, 1]], [[1, 2]], [[1], [1], [1]]):
        grow(name, 8, assignments, validate_only=True)
    grow(name, 7, [[1]])
    grow(side.name("nope"), 3)
    grow("", 3)
    grow("a b", 3)
    twice = [{"name": name, "count": 9, "assignments": None}] * 2
    side.call(ApiKey.CREATE_PARTITIONS, 3, topics=twice, timeout_ms=9_000)
    side.call(ApiKey.METADATA, 12, topics=[{"name": name}])


@scenario
def metadata_in_every_version(side: Side) -> None:
    name = side.create(partitions=2)
    for version in served(ApiKey.METADATA):
        quiet = {"allow_auto_topic_creation": False} if version >= 4 else {}
        topics = [{"name": name}]
        if version >= 4:
            topics += [{"name": side.name("nope")}, {"name": "a b"}, {"name": ""}]
        side.call(ApiKey.METADATA, version, topics=topics, **quiet)
        side.call(ApiKey.METADATA, version, topics=[{"name": name}] * 2, **quiet)
        if version >= 1:
            side.call(ApiKey.METADATA, version, topics=[], **quiet)
        if version >= 8:
            side.call(
                ApiKey.METADATA,
                version,
                topics=topics[:1],
                include_topic_authorized_operations=True,
                **quiet,
            )
        if 8 <= version <= 10:
            side.call(
                ApiKey.METADATA,
                version,
                topics=[],
                include_cluster_authorized_operations=True,
                **quiet,
            )


@scenario
def metadata_by_id(side: Side) -> None:
    name = side.create(partitions=2)
    topic_id = side.topic_id(name)
    # Not compared: neither name nor id, which makes Kafka fail (−1) where we name the error.
    for version in (10, 11, 12, 13):
        for label, given in [
            ("id", {"name": None, "topic_id": topic_id}),
            ("strange id", {"name": None, "topic_id": STRANGE_ID}),
            ("id and name", {"name": name, "topic_id": topic_id}),
        ]:
            side.call(ApiKey.METADATA, version, label=label, topics=[given])
    mixed = [{"name": name}, {"name": None, "topic_id": topic_id}]
    side.call(ApiKey.METADATA, 12, label="mixed", topics=mixed)
    side.call(ApiKey.METADATA, 12, label="mixed", topics=mixed[::-1])


@scenario
def metadata_creates(side: Side) -> None:
    """We answer when the topic exists, Kafka before that: the first response is not compared."""
    for version in (1, 4, 12):
        name = side.name(f"auto{version}")
        given = {"allow_auto_topic_creation": True} if version >= 4 else {}
        side.quiet(ApiKey.METADATA, version, topics=[{"name": name}], **given)
        side.await_leader(name, 1)
        side.call(ApiKey.METADATA, version, topics=[{"name": name}], **given)
    for name in ("a b", "", "."):
        side.call(ApiKey.METADATA, 12, topics=[{"name": name}], allow_auto_topic_creation=True)


@scenario
def describe_topic_partitions(side: Side) -> None:
    a, b, c = side.create("a", 3), side.create("b", 2), side.create("c", 1)

    def describe(label: str, names: list[str], limit: int = 2000, cursor: Any = None) -> None:
        side.call(
            ApiKey.DESCRIBE_TOPIC_PARTITIONS,
            0,
            label=label,
            cursor=cursor,
            topics=[{"name": n} for n in names],
            response_partition_limit=limit,
        )

    describe("all three", [c, b, a])
    describe("twice", [a, a])
    # Not compared: an empty name, which makes Kafka fail (−1) for the whole request.
    for name in ("a b", side.name("nope")):
        describe(f"bad name {name!r}", [name, a])
    for limit in (-1, 0, 1, 2, 3, 4, 5, 6):
        describe(f"limit {limit}", [a, b, c], limit)
    for name, partition in [
        (a, 0),
        (a, 2),
        (a, 3),
        (a, 9),
        (b, 1),
        (a, -1),
        (side.name("aa"), 0),
        (side.name("nope"), 0),
        ("zzz", 0),
        ("", 0),
    ]:
        cursor = {"topic_name": name, "partition_index": partition}
        describe(f"from {name} {partition}", [a, b, c], 2, cursor)
