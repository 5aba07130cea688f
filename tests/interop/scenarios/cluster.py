"""The cluster's own APIs: description, quorum, features, reassignments, elections, ids."""

from __future__ import annotations

from typing import Any

from skylog.wire.apis import ApiKey
from tests.interop.scenarios.batches import batch, fill
from tests.interop.wire import Side, scenario, served


@scenario
def describe_cluster(side: Side) -> None:
    for version in served(ApiKey.DESCRIBE_CLUSTER):
        side.call(ApiKey.DESCRIBE_CLUSTER, version)
        side.call(ApiKey.DESCRIBE_CLUSTER, version, include_cluster_authorized_operations=True)
        if version >= 1:
            for kind in (0, 1, 2, 3):
                side.call(ApiKey.DESCRIBE_CLUSTER, version, endpoint_type=kind)
        if version >= 2:
            side.call(ApiKey.DESCRIBE_CLUSTER, version, include_fenced_brokers=True)


@scenario
def describe_quorum(side: Side) -> None:
    def shape(answer: Any) -> Any:
        for topic in answer["topics"]:
            for part in topic["partitions"]:
                part.pop("leader_epoch")
                part["high_watermark"] = part["high_watermark"] > 0
                for replica in part["current_voters"] + part["observers"]:
                    replica["log_end_offset"] = replica["log_end_offset"] > 0
        return answer

    cases: list[list[Any]] = [
        [("__cluster_metadata", [0])],
        [("__cluster_metadata", [0, 1])],
        [("__cluster_metadata", [1])],
        [("__cluster_metadata", [])],
        [("other", [0])],
        [("__cluster_metadata", [0]), ("other", [0])],
        [],
    ]
    for version in served(ApiKey.DESCRIBE_QUORUM):
        for asked in cases:
            topics = [
                {"topic_name": name, "partitions": [{"partition_index": i} for i in indexes]}
                for name, indexes in asked
            ]
            side.call(ApiKey.DESCRIBE_QUORUM, version, keep=shape, topics=topics)


@scenario
def update_features(side: Side) -> None:
    def ordered(answer: Any) -> Any:
        answer["results"].sort(key=str)
        return answer

    cases = [
        ("metadata.version", 30, 1),
        ("metadata.version", 31, 1),
        ("metadata.version", 25, 1),
        ("metadata.version", 25, 2),
        ("metadata.version", 6, 3),
        ("metadata.version", 0, 2),
        ("group.version", 1, 1),
        ("group.version", 2, 1),
        ("group.version", 0, 1),
        ("transaction.version", 3, 1),
        ("no.such", 1, 1),
        ("", 1, 1),
        ("kraft.version", 1, 1),
        ("kraft.version", 0, 2),
        ("kraft.version", 2, 1),
        ("group.version", -1, 1),
        ("group.version", 1, 9),
    ]
    for version in served(ApiKey.UPDATE_FEATURES):
        for feature, level, kind in cases:
            update: dict[str, Any] = {"feature": feature, "max_version_level": level}
            more: dict[str, Any] = {}
            if version >= 1:
                update["upgrade_type"] = kind
                more["validate_only"] = True
            elif (feature, level) not in [("no.such", 1), ("", 1), ("metadata.version", 31)]:
                continue
            side.call(
                ApiKey.UPDATE_FEATURES,
                version,
                keep=ordered,
                timeout_ms=5_000,
                feature_updates=[update],
                **more,
            )
    twice = [{"feature": "group.version", "max_version_level": 1}] * 2
    for version in (1, 2):
        side.call(
            ApiKey.UPDATE_FEATURES,
            version,
            keep=ordered,
            timeout_ms=5_000,
            feature_updates=twice,
            validate_only=True,
        )
        side.call(
            ApiKey.UPDATE_FEATURES, version, keep=ordered, timeout_ms=5_000, feature_updates=[]
        )


@scenario
def log_dirs(side: Side) -> None:
    name = side.create(partitions=2)
    fill(side, name, batch(b"a" * 100))

    def ordered(answer: Any) -> Any:
        for result in answer["results"]:
            for topic in result["topics"]:
                topic["partitions"].sort(key=str)
        return answer

    for version in served(ApiKey.DESCRIBE_LOG_DIRS):
        for topics in ([(name, [0, 1])], [(name, [7])], [(name, [])], [("no", [0])], []):
            asked = [{"topic": topic, "partitions": indexes} for topic, indexes in topics]
            side.call(ApiKey.DESCRIBE_LOG_DIRS, version, keep=ordered, topics=asked)


@scenario
def elect_leaders(side: Side) -> None:
    name = side.create(partitions=2)

    def ordered(answer: Any) -> Any:
        for topic in answer["replica_election_results"]:
            topic["partition_result"].sort(key=str)
        answer["replica_election_results"].sort(key=str)
        return answer

    for version in served(ApiKey.ELECT_LEADERS):
        kinds = (0, 1, 2, -1) if version >= 1 else (0,)
        for kind in kinds:
            for topics in (
                [(name, [0, 1])],
                [(name, [9])],
                [("no", [0])],
                [("a b", [0])],
                [],
                [(name, [])],
            ):
                asked = [{"topic": topic, "partitions": indexes} for topic, indexes in topics]
                more = {"election_type": kind} if version >= 1 else {}
                side.call(
                    ApiKey.ELECT_LEADERS,
                    version,
                    keep=ordered,
                    timeout_ms=5_000,
                    topic_partitions=asked,
                    **more,
                )


@scenario
def reassignments(side: Side) -> None:
    name = side.create(partitions=2)

    def move(label: str, topic: str, index: int, replicas: list[int] | None, **more: Any) -> None:
        asked = [{"name": topic, "partitions": [{"partition_index": index, "replicas": replicas}]}]
        version = more.pop("version", 1)
        side.call(
            ApiKey.ALTER_PARTITION_REASSIGNMENTS,
            version,
            label=label,
            timeout_ms=5_000,
            topics=asked,
            **more,
        )

    for version in served(ApiKey.ALTER_PARTITION_REASSIGNMENTS):
        move("where it is", name, 0, [1], version=version)
        move("to nobody", name, 0, [], version=version)
        move("cancel nothing", name, 0, None, version=version)
        move("to a stranger", name, 0, [2], version=version)
        move("to a stranger too", name, 0, [1, 2], version=version)
        move("twice", name, 0, [1, 1], version=version)
        move("negative", name, 0, [-1], version=version)
        move("no such partition", name, 9, [1], version=version)
        move("no such topic", side.name("no"), 0, [1], version=version)
    move("more replicas forbidden", name, 0, [1], allow_replication_factor_change=False)
    for topics in (None, [(name, [0, 1])], [(name, [9])], [("no", [0])], []):
        asked = topics and [{"name": t, "partition_indexes": indexes} for t, indexes in topics]
        side.call(ApiKey.LIST_PARTITION_REASSIGNMENTS, 0, timeout_ms=5_000, topics=asked)


@scenario
def producer_ids(side: Side) -> None:
    side.producer_id()
    for version in served(ApiKey.INIT_PRODUCER_ID):
        side.call(
            ApiKey.INIT_PRODUCER_ID, version, transactional_id=None, transaction_timeout_ms=60_000
        )
        if version >= 3:
            for producer, epoch in [(5, 0), (-1, 0), (5, -1), (5, 32767), (-2, -2)]:
                side.call(
                    ApiKey.INIT_PRODUCER_ID,
                    version,
                    transactional_id=None,
                    transaction_timeout_ms=60_000,
                    producer_id=producer,
                    producer_epoch=epoch,
                )
        side.call(
            ApiKey.INIT_PRODUCER_ID, version, transactional_id="", transaction_timeout_ms=60_000
        )


@scenario
def unregister_broker(side: Side) -> None:
    for number in (7, -1):
        side.call(ApiKey.UNREGISTER_BROKER, 0, broker_id=number)
