"""The effective settings of a topic, and their users."""

from __future__ import annotations

import pytest

from skylog.kernel.config import Operation
from skylog.kernel.errors import ErrorCode, KafkaError
from skylog.kernel.limits import CONFIG_VALUE_CHARACTERS_MAX
from skylog.kernel.logging import Hub, Level
from skylog.kernel.settings import load_settings
from skylog.kernel.settings.dynamic import apply_changes, apply_logger_changes
from skylog.kernel.settings.dynamic import validate_broker_configs as validate_broker
from skylog.kernel.settings.kafka_resource_facts import TOPIC as TOPIC_FACTS
from skylog.kernel.settings.resources import ResourceRules
from skylog.kernel.settings.synonyms import Layers
from skylog.kernel.settings.topic_facts import TOPIC_SYNONYMS
from skylog.kernel.settings.topics import (
    log_config_values,
    produce_limits,
    topic_defaults,
    topic_values,
    validate_topic_configs,
)


def test_defaults_are_kafkas_where_nothing_is_set() -> None:
    values = topic_defaults(load_settings())
    for name, _, default, *_ in TOPIC_FACTS:
        shown = values[name]
        if isinstance(shown, tuple):
            shown = ",".join(shown)
        elif isinstance(shown, bool):
            shown = str(shown).lower()
        assert (None if shown is None else str(shown)) == default, name


@pytest.mark.parametrize(
    ("overrides", "retention_ms"),
    [
        (["log.retention.hours=2"], 2 * 3_600_000),
        (["log.retention.hours=2", "log.retention.minutes=3"], 3 * 60_000),
        (["log.retention.minutes=3", "log.retention.ms=4"], 4),
        (["log.retention.hours=-1"], -1),
        (["log.retention.minutes=-1"], -1),
    ],
)
def test_the_finest_synonym_decides(overrides: list[str], retention_ms: int) -> None:
    assert topic_defaults(load_settings(None, {}, overrides))["retention.ms"] == retention_ms


def test_every_synonym_is_a_broker_setting() -> None:
    settings = load_settings()
    for synonyms in TOPIC_SYNONYMS.values():
        for synonym in synonyms:
            assert synonym.name in settings.values


def test_overrides_win_and_what_cannot_be_read_is_left_out() -> None:
    settings = load_settings(None, {}, ["log.segment.bytes=2097152"])
    values = topic_values(
        {"segment.bytes": "1048576", "retention.ms": "soon", "no.such": "1"}, settings
    )
    assert values["segment.bytes"] == 1_048_576
    assert values["retention.ms"] == 604_800_000
    assert "no.such" not in values


def test_what_a_log_takes() -> None:
    settings = load_settings(None, {}, ["producer.id.expiration.ms=5"])
    values = log_config_values(topic_values({"cleanup.policy": "compact"}, settings), settings)
    assert values["producer.id.expiration.ms"] == 5
    assert values["cleanup.policy"] == ("compact",)
    assert values["segment.bytes"] == 1 << 30
    small = topic_values({"internal.segment.bytes": "100"}, settings)
    assert log_config_values(small, settings)["segment.bytes"] == 100


def test_what_produce_takes() -> None:
    settings = load_settings(None, {}, ["produce.validation=header", "message.max.bytes=9"])
    limits = produce_limits(topic_values({"cleanup.policy": "compact,delete"}, settings), settings)
    assert (limits.message_bytes_max, limits.compacted, limits.full) == (9, True, False)
    assert (limits.compression_type, limits.timestamp_type) == ("producer", "CreateTime")
    assert (limits.gzip_level, limits.lz4_level, limits.zstd_level) == (-1, 9, 3)


def test_null_and_long_values_are_refused() -> None:
    settings = load_settings()
    with pytest.raises(KafkaError, match="Null value not supported for topic configs: a,b"):
        validate_topic_configs({"a": None, "b": None}, settings)
    name = "leader.replication.throttled.replicas"
    most = "1:1," * (CONFIG_VALUE_CHARACTERS_MAX // 4) + "1:1"
    assert len(most) == CONFIG_VALUE_CHARACTERS_MAX
    validate_topic_configs({name: most}, settings)
    with pytest.raises(KafkaError, match="exceeds the maximum value size of 32767 bytes"):
        validate_topic_configs({name: "1" + most}, settings)


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ([("a", Operation.SET, "1")], {"log.cleanup.policy": "delete", "a": "1"}),
        ([("log.cleanup.policy", Operation.DELETE, None)], {}),
        (
            [("log.cleanup.policy", Operation.APPEND, "compact,delete")],
            {"log.cleanup.policy": "delete,compact"},
        ),
        ([("log.cleanup.policy", Operation.SUBTRACT, "delete,x")], {"log.cleanup.policy": ""}),
        (
            [("group.consumer.assignors", Operation.SUBTRACT, "range")],
            {"log.cleanup.policy": "delete", "group.consumer.assignors": "uniform"},
        ),
    ],
)
def test_incremental_changes(
    changes: list[tuple[str, int, str | None]], expected: dict[str, str]
) -> None:
    assert apply_changes({"log.cleanup.policy": "delete"}, changes) == expected


def test_an_unknown_operation_is_refused() -> None:
    with pytest.raises(KafkaError, match="Unknown operations type 9") as caught:
        apply_changes({}, [("a", 9, "1")])
    assert caught.value.code is ErrorCode.INVALID_REQUEST


def test_listeners_change_with_a_restart_only() -> None:
    static = load_settings().static
    validate_broker({"listeners": static["listeners"]}, Layers(static=static), per_broker=True)
    with pytest.raises(KafkaError, match="restart"):
        validate_broker(
            {"listeners": "PLAINTEXT://127.0.0.1:1"}, Layers(static=static), per_broker=True
        )


def test_validation_of_a_broker_gives_the_settings_it_would_have() -> None:
    static = load_settings(None, {}, ["log.retention.hours=1"]).static
    layers = Layers({"max.connections": "1"}, {"max.connections": "2"}, static)
    as_broker = validate_broker({"max.connections": "3"}, layers, per_broker=True)
    assert as_broker.network.connections_max == 3
    as_cluster = validate_broker({"max.connections": "3"}, layers, per_broker=False)
    assert as_cluster.network.connections_max == 1


@pytest.mark.parametrize(("name", "message"), [("x", "base 10"), ("-1", "negative")])
def test_broker_names(name: str, message: str) -> None:
    rules = ResourceRules(load_settings)
    rules.validate((4, ""), {}, {})
    rules.validate((4, "12"), {}, {})
    with pytest.raises(KafkaError, match=message):
        rules.validate((4, name), {}, {})


def test_lists_and_defaults() -> None:
    rules = ResourceRules(load_settings)
    assert rules.is_list(2, "cleanup.policy") and not rules.is_list(2, "retention.ms")
    assert not rules.is_list(2, "no.such") and not rules.is_list(8, "root")
    assert rules.default_value(2, "cleanup.policy") == "delete"
    assert rules.default_value(2, "no.such") is None


def test_log_levels_change() -> None:
    hub = Hub()
    hub.logger("a")
    apply_logger_changes([("a", Operation.SET, "DEBUG"), ("root", Operation.SET, "ERROR")], hub)
    assert hub.levels() == {"a": Level.DEBUG, "root": Level.ERROR}
    apply_logger_changes([("a", Operation.DELETE, None)], hub)
    assert hub.levels() == {"a": Level.ERROR, "root": Level.ERROR}


def test_topics_of_the_system_are_not_diskless_by_default() -> None:
    diskless = load_settings(None, {}, ["log.diskless.enable=true"])
    compacted = {"cleanup.policy": "compact"}
    validate_topic_configs(compacted, diskless, system=True)
    with pytest.raises(KafkaError, match="cannot be compacted"):
        validate_topic_configs(compacted, diskless)
    with pytest.raises(KafkaError, match="cannot be compacted"):
        validate_topic_configs({**compacted, "diskless.enable": "true"}, diskless, system=True)
