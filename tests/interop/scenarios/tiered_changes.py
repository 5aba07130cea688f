"""What becomes of remote segments: retention, disabling, deletion; settings and their errors."""

from __future__ import annotations

import time
from typing import Any

from skylog.wire.apis import ApiKey
from tests.interop.scenarios.configs import BROKER, SET, TOPIC, describe
from tests.interop.scenarios.configs import alter as alter_compared
from tests.interop.scenarios.remote import (
    GONE,
    METADATA_TOPIC,
    SETTLE_SECONDS_MAX,
    START_MS,
    TINY,
    alter,
    ask,
    metadata,
    produce,
    settle,
    tiered,
)
from tests.interop.wire import Side

DELETE_FINISHED = 3
OLD_MS = 100_000_000
WITHOUT = {name: value for name, value in TINY.items() if name != "remote_storage_enable"}


def full(side: Side, **more: str) -> str:
    """A topic whose segments 0 to 3 are remote only."""
    name = side.create(**{**TINY, **GONE, **more})
    produce(side, name, range(5))
    settle(side, name, earliest_local=4, latest_tiered=3)
    return name


def await_deleted(side: Side, name: str, count: int) -> None:
    """Until so many segments are gone from the metadata topic."""
    deadline = time.monotonic() + SETTLE_SECONDS_MAX
    while deleted(metadata(side, name)) < count:
        assert time.monotonic() < deadline, metadata(side, name)
        time.sleep(0.1)


def deleted(records: list[Any]) -> int:
    return sum(one[1] == DELETE_FINISHED for one in records if one[0] != "partition")


def by_segment(records: list[Any]) -> Any:
    """The life of each segment: where all go at once, the order among them is not told."""
    return sorted(one for one in records if one[0] != "partition")


@tiered
def by_size(side: Side) -> None:
    name = full(side)
    # Five records of 69 bytes: three fit, and the rest of a segment does not count.
    alter(side, name, retention_bytes="210")
    await_deleted(side, name, 1)
    settle(side, name, earliest=1)
    ask(side, "four are left", name)
    side.note("metadata", metadata(side, name))
    alter(side, name, retention_bytes="1")
    await_deleted(side, name, 4)
    settle(side, name, earliest=4)
    ask(side, "the active segment is left", name)
    side.note("metadata", metadata(side, name))


@tiered
def by_time(side: Side) -> None:
    name = side.create(**{**TINY, **GONE})
    produce(side, name, range(2), at=START_MS - OLD_MS)
    produce(side, name, range(2, 5))
    settle(side, name, earliest_local=4)
    alter(side, name, retention_ms=f"{OLD_MS // 2}", local_retention_ms=f"{OLD_MS // 2}")
    await_deleted(side, name, 2)
    settle(side, name, earliest=2)
    ask(side, "two are gone", name)
    side.note("metadata", metadata(side, name))


@tiered
def all_by_time(side: Side) -> None:
    """The active segment is rolled, copied, and goes too."""
    name = side.create(**{**TINY, **GONE})
    produce(side, name, range(5), at=START_MS - OLD_MS)
    settle(side, name, earliest_local=4)
    alter(side, name, retention_ms=f"{OLD_MS // 2}", local_retention_ms=f"{OLD_MS // 2}")
    settle(side, name, earliest=5, earliest_local=5, max_timestamp=-1)
    await_deleted(side, name, 5)
    ask(side, "all is gone", name)
    produce(side, name, range(5, 6))
    ask(side, "and one more", name)
    side.note("metadata", by_segment(metadata(side, name)))


@tiered
def the_active_segment_is_rolled(side: Side) -> None:
    """Local retention takes it, too, once it is copied; nothing is lost."""
    name = side.create(**{**TINY, "local_retention_ms": f"{OLD_MS // 2}"})
    produce(side, name, range(1), at=START_MS - OLD_MS)
    settle(side, name, earliest_local=1)
    ask(side, "all is remote", name)
    side.note("metadata", metadata(side, name))


@tiered
def copying_disabled(side: Side) -> None:
    name = full(side)
    alter(side, name, remote_log_copy_disable="true", local_retention_bytes="-2")
    side.settle()
    produce(side, name, range(5, 8))
    ask(side, "copying is disabled", name)
    alter(side, name, retention_bytes="400")
    # Eight records of 69 bytes: two go; the remote ones are the oldest.
    await_deleted(side, name, 2)
    ask(side, "expiry goes on", name)
    alter(side, name, remote_log_copy_disable="false", local_retention_bytes="1")
    settle(side, name, latest_tiered=6)
    side.note("metadata", metadata(side, name))


@tiered
def disabled_and_enabled_again(side: Side) -> None:
    name = full(side)
    alter(side, name, remote_storage_enable="false")
    alter(side, name, remote_storage_enable=None)
    alter(side, name, remote_storage_enable="false", remote_log_delete_on_disable="true")
    await_deleted(side, name, 4)
    settle(side, name, earliest=4)
    ask(side, "disabled", name)
    produce(side, name, range(5, 8))
    side.note("metadata", by_segment(metadata(side, name)))
    alter(side, name, remote_storage_enable="true", remote_log_delete_on_disable="false")
    settle(side, name, latest_tiered=6)
    ask(side, "enabled again", name, -1, -2, -5, -6)


@tiered
def enabled_late(side: Side) -> None:
    """A topic that has records already, cut at its beginning."""
    name = side.create(**WITHOUT)
    produce(side, name, range(4))
    ask(side, "plain", name)
    asked = [{"partition_index": 0, "offset": 1}]
    side.call(
        ApiKey.DELETE_RECORDS,
        2,
        topics=[{"name": name, "partitions": asked}],
        timeout_ms=30_000,
    )
    ask(side, "cut", name)
    alter(side, name, remote_storage_enable="true", **GONE)
    settle(side, name, earliest_local=3)
    ask(side, "enabled", name)
    side.note("metadata", metadata(side, name))


@tiered
def deleted_topic(side: Side) -> None:
    name = full(side)
    side.call(ApiKey.DELETE_TOPICS, 6, topics=[{"name": name}], timeout_ms=30_000)
    await_deleted(side, name, 4)
    # We mark the partition as deleted as well, so that any leader can complete it.
    side.note("metadata", by_segment(metadata(side, name)))


@tiered
def more_partitions(side: Side) -> None:
    name = full(side)
    topics = [{"name": name, "count": 3, "assignments": None}]
    side.call(ApiKey.CREATE_PARTITIONS, 3, topics=topics, timeout_ms=30_000)
    side.await_leader(name, 3)
    for index in (1, 2):
        produce(side, name, range(3), index=index)
        settle(side, name, index, earliest_local=2)
        ask(side, f"partition {index}", name, index=index)


# Settings ------------------------------------------------------------------------------------


@tiered
def errors_of_new_topics(side: Side) -> None:
    on = {"remote.storage.enable": "true"}
    off = {"remote.log.copy.disable": "true"}
    limits = ("retention.ms", "local.retention.ms"), ("retention.bytes", "local.retention.bytes")
    cases = [
        {**on, "cleanup.policy": "compact"},
        {**on, "cleanup.policy": "compact,delete"},
        {**on, "cleanup.policy": ""},
        {"remote.storage.enable": "maybe"},
        {**on, **off},
        off,
        {"remote.log.delete.on.disable": "true"},
        {**on, "retention.ms": "1", "local.retention.ms": "2", "retention.bytes": "1",
         "local.retention.bytes": "2"},
    ]  # fmt: skip
    for total, local in limits:
        for values in (("1000", "2000"), ("1000", "-1"), ("-1", "-1"), ("-1", "5"), ("1000", "-3"),
                       ("1000", "-2"), ("1000", "1000"), ("1000", "0"), ("0", "1")):  # fmt: skip
            pair = dict(zip((total, local), values, strict=True))
            cases += [pair, {**on, **pair}, {**on, **off, **pair}]
    for number, configs in enumerate(cases):
        settings = [{"name": key, "value": value} for key, value in configs.items()]
        topic = {"name": side.name(f"new{number}"), "num_partitions": 1, "replication_factor": 1}
        answer = side.quiet(
            ApiKey.CREATE_TOPICS,
            7,
            topics=[{**topic, "configs": settings}],
            timeout_ms=10_000,
            validate_only=True,
        )
        found = answer.topics[0]
        side.note(f"create {configs}", (found.error_code, found.error_message))


@tiered
def errors_of_changes(side: Side) -> None:
    plain, on = side.create("plain"), side.create("on", remote_storage_enable="true")
    limited = side.create("limited", retention_ms="1000", local_retention_ms="2000")
    alter(side, limited, remote_storage_enable="true")
    for configs in (
        {"remote_storage_enable": "false"},
        {"remote_storage_enable": None},
        {"cleanup_policy": "compact"},
        {"remote_log_copy_disable": "true"},
        {"local_retention_ms": "1"},
        {"retention_ms": "5", "local_retention_ms": "9"},
        {"remote_log_copy_disable": "false"},
        {"local_retention_ms": "1"},
        {"retention_ms": "0"},
        {"local_retention_bytes": "-3"},
        {"remote_storage_enable": "false", "remote_log_delete_on_disable": "true"},
    ):
        alter(side, on, **configs)
        side.settle()
    alter(side, plain, remote_storage_enable="true")
    side.settle()
    for name in (plain, on, limited):
        describe(side, "after all", (TOPIC, name, None), include_synonyms=True)
    side.note("metadata topic", sorted(_own(side, METADATA_TOPIC)))


# What we also say of the metadata topic: no default of the cluster may cost it a record.
OURS = {"unclean.leader.election.enable", "retention.bytes"}


def _own(side: Side, name: str) -> list[tuple[str, str]]:
    """A topic's own settings."""
    resource = {"resource_type": 2, "resource_name": name, "configuration_keys": None}
    found = side.quiet(ApiKey.DESCRIBE_CONFIGS, 4, resources=[resource])
    return [
        (one.name, one.value)
        for one in found.results[0].configs
        if one.config_source == 1 and one.name not in OURS
    ]


BROKER_SETTINGS = (
    ("remote.log.index.file.cache.total.size.bytes", "2000000", "-1"),
    ("remote.log.manager.copier.thread.pool.size", "3", "0"),
    ("remote.log.manager.expiration.thread.pool.size", "3", "0"),
    ("remote.log.manager.follower.thread.pool.size", "3", "0"),
    ("remote.log.reader.threads", "5", "0"),
    ("remote.log.manager.copy.max.bytes.per.second", "1000000000", "0"),
    ("remote.log.manager.fetch.max.bytes.per.second", "1000000000", "0"),
    ("remote.fetch.max.wait.ms", "700", "0"),
    ("remote.list.offsets.request.timeout.ms", "20000", "0"),
    ("log.local.retention.ms", "-2", "-3"),
    ("log.local.retention.bytes", "-2", "-3"),
    ("remote.log.manager.task.interval.ms", "600", "x"),
    ("remote.log.storage.system.enable", "false", "x"),
    ("remote.log.metadata.custom.metadata.max.bytes", "5", "-1"),
)


@tiered
def settings_of_brokers(side: Side) -> None:
    for name in ("", "1"):
        for key, good, bad in BROKER_SETTINGS:
            for value in (bad, "x", good):
                change = (BROKER, name, [(key, SET, value)])
                alter_compared(side, f"{name!r} {key}={value}", change)
        side.settle()
        keys = [key for key, _, _ in BROKER_SETTINGS]
        describe(side, f"then {name!r}", (BROKER, name, keys), include_synonyms=True)
        for key in keys:
            alter_compared(side, f"undo {name!r} {key}", (BROKER, name, [(key, 1, None)]))
    side.settle()
