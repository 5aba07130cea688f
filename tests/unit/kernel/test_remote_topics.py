"""Kafka's rules for settings of tiered topics, in its words."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import pytest

from skylog.controller.settings import ConfigLayers
from skylog.kernel.errors import ConfigError, ErrorCode, KafkaError
from skylog.kernel.settings import BrokerSettings, load_settings
from skylog.kernel.settings.dynamic import validate_broker_configs
from skylog.kernel.settings.remote_topics import SYSTEM_OFF
from skylog.kernel.settings.resources import ResourceRules
from skylog.kernel.settings.synonyms import Layers
from skylog.kernel.settings.topics import (
    log_config_values,
    topic_values,
    validate_topic_configs,
)
from skylog.log.config import LogConfig

ON = "remote.log.storage.system.enable=true"
LIMITS = (-2, -1, 0, 5, 10, 2**63 - 1)


def settings(*overrides: str) -> BrokerSettings:
    return load_settings(overrides=overrides)


def refusal(
    overrides: dict[str, str], node: BrokerSettings, existing: dict[str, str] | None = None
) -> str | None:
    try:
        validate_topic_configs(overrides, node, existing=existing)
    except KafkaError as error:
        assert error.code is ErrorCode.INVALID_CONFIG
        return error.message
    return None


def kafkas_answer(unit: str, local: int, total: int) -> str | None:
    """What LogConfig of Kafka 4.3.1 says: bytes may be any number below -1, ms may not."""
    limited = total > -1 if unit == "bytes" else total != -1
    if not limited or local == -2:
        return None
    start = f"Invalid value {local} for configuration local.retention.{unit}: "
    if local == -1:
        return f"{start}Value must not be -1 as retention.{unit} value is set as {total}."
    if local > total:
        return f"{start}Value must not be more than retention.{unit} property value: {total}"
    return None


@pytest.mark.parametrize(
    ("unit", "local", "total"),
    [
        case
        for case in product(("ms", "bytes"), LIMITS, LIMITS)
        if case[0] == "bytes" or case[2] >= -1
    ],
)
def test_every_pair_of_a_local_and_a_total_limit(unit: str, local: int, total: int) -> None:
    limits = {f"local.retention.{unit}": str(local), f"retention.{unit}": str(total)}
    assert refusal({"remote.storage.enable": "true", **limits}, settings(ON)) == kafkas_answer(
        unit, local, total
    )
    # Without remote storage they are not compared, as in Kafka.
    assert refusal(limits, settings(ON)) is None


@pytest.mark.parametrize("unit", ["ms", "bytes"])
def test_a_limit_that_a_topic_does_not_set_is_the_brokers(unit: str) -> None:
    node = settings(ON, f"log.retention.{unit}=100", f"log.local.retention.{unit}=50")
    remote = {"remote.storage.enable": "true"}
    assert refusal(remote, node) is None
    assert refusal({**remote, f"retention.{unit}": "49"}, node) == kafkas_answer(unit, 50, 49)
    assert refusal({**remote, f"local.retention.{unit}": "101"}, node) == kafkas_answer(
        unit, 101, 100
    )


@pytest.mark.parametrize("value", ["true", "TRUE", " true "])
def test_the_system_must_be_enabled(value: str) -> None:
    assert refusal({"remote.storage.enable": value}, settings()) == SYSTEM_OFF
    assert refusal({"remote.storage.enable": value}, settings(ON)) is None


@pytest.mark.parametrize(
    ("policy", "fits"),
    [("delete", True), ("", True), ("compact", False), ("compact,delete", False)],
)
def test_only_topics_that_are_not_compacted_are_remote(policy: str, fits: bool) -> None:
    said = refusal({"remote.storage.enable": "true", "cleanup.policy": policy}, settings(ON))
    assert said == (
        None
        if fits
        else "Remote log storage only supports topics with cleanup.policy=delete or "
        "cleanup.policy being an empty list."
    )


@pytest.mark.parametrize("after", [{"remote.storage.enable": "false"}, {}])
def test_remote_storage_is_not_disabled_without_deleting(after: dict[str, str]) -> None:
    before = {"remote.storage.enable": "true"}
    said = refusal(after, settings(ON), before)
    assert said is not None
    assert said.startswith("It is invalid to disable remote storage without deleting remote data.")
    assert refusal({**after, "remote.log.delete.on.disable": "true"}, settings(ON), before) is None
    assert refusal(after, settings(ON), {"remote.storage.enable": "false"}) is None


@pytest.mark.parametrize("unit", ["ms", "bytes"])
@pytest.mark.parametrize(
    ("local", "total", "fits"),
    [(-2, 10, True), (10, 10, True), (5, 10, False), (-1, -1, True), (5, -1, False)],
)
def test_without_copies_both_limits_are_the_same(
    unit: str, local: int, total: int, fits: bool
) -> None:
    limits = {f"local.retention.{unit}": str(local), f"retention.{unit}": str(total)}
    remote = {"remote.storage.enable": "true", "remote.log.copy.disable": "true"}
    assert refusal({**remote, **limits}, settings(ON)) == (
        None
        if fits
        else f"When `remote.log.copy.disable` is set to true, the `local.retention.{unit}` and "
        f"`retention.{unit}` must be set to the identical value because there will be no more logs "
        "copied to the remote storage."
    )


@pytest.mark.parametrize("unit", ["ms", "bytes"])
@pytest.mark.parametrize(
    ("lag", "local", "total", "kept"),
    [
        (0, 5, 10, None),
        (-1, 5, 10, None),
        (5, 5, 10, None),
        (6, 5, 10, 5),
        (10, -2, 10, None),
        (11, -2, 10, 10),
        (2**63 - 1, -2, -1, None),
        (2**63 - 1, -1, -1, None),
    ],
)
def test_copying_lags_no_further_than_the_local_limit(
    unit: str, lag: int, local: int, total: int, kept: int | None
) -> None:
    given = {
        f"remote.copy.lag.{unit}": str(lag),
        f"local.retention.{unit}": str(local),
        f"retention.{unit}": str(total),
    }
    said = refusal({"remote.storage.enable": "true", **given}, settings(ON))
    assert said == (
        None
        if kept is None
        else f"Invalid value {lag} for configuration remote.copy.lag.{unit}: Value must not exceed "
        f"local.retention.{unit} (effective value: {kept})"
    )
    assert refusal(given, settings(ON)) is None


DISKLESS = {"diskless.enable": "true", "remote.storage.enable": "true"}


def test_a_diskless_topic_is_remote_under_kafkas_rules() -> None:
    assert refusal(DISKLESS, settings()) == SYSTEM_OFF
    assert refusal(DISKLESS, settings(ON)) is None
    # Checked, though they govern nothing: the topic might be read by Kafka one day.
    limits = {"local.retention.ms": "11", "retention.ms": "10"}
    assert refusal({**DISKLESS, **limits}, settings(ON)) == kafkas_answer("ms", 11, 10)


@pytest.mark.parametrize("delete", ["true", "false"])
@pytest.mark.parametrize("after", [{"remote.storage.enable": "false"}, {}])
def test_a_diskless_topic_stays_remote(after: dict[str, str], delete: str) -> None:
    """Deleting remote data, as a classic topic can, would delete all that was pruned."""
    kept = {"diskless.enable": "true", "remote.log.delete.on.disable": delete}
    said = refusal({**kept, **after}, settings(ON), DISKLESS)
    assert said is not None
    assert said.startswith("Remote storage of a diskless topic cannot be disabled")
    assert "set `remote.log.copy.disable=true`" in said
    stopped = {**DISKLESS, "remote.log.copy.disable": "true"}
    assert refusal(stopped, settings(ON), DISKLESS) is None
    assert refusal(DISKLESS, settings(ON), stopped) is None
    # It may become remote at any time.
    assert refusal(DISKLESS, settings(ON), {"diskless.enable": "true"}) is None


@pytest.mark.parametrize(
    ("value", "fits"), [("broker", True), ("external", True), ("", False), ("spark", False)]
)
def test_who_makes_the_segments_of_a_diskless_topic(value: str, fits: bool) -> None:
    given = {"diskless.tiering.assembler": value}
    said = refusal(given, settings())
    assert (said is None) == fits, said
    values = topic_values(given if fits else {}, settings())
    config = LogConfig.from_mapping(log_config_values(values, settings()))
    assert config.tiering_assembler == (value if fits else "broker")


def test_the_controller_looks_at_what_a_topic_has_so_far() -> None:
    rules = ResourceRules(lambda: settings(ON))
    with pytest.raises(KafkaError, match="without deleting remote data"):
        rules.validate((2, "t"), {}, {"remote.storage.enable": "true"})
    rules.validate((2, "t"), {"remote.storage.enable": "true"}, {})


def test_the_controller_compares_with_the_clusters_dynamic_defaults() -> None:
    rules = ResourceRules(lambda: settings(ON))
    remote = {"remote.storage.enable": "true", "retention.ms": "49"}
    below = ConfigLayers({}, {}, {"log.local.retention.ms": "50"})
    with pytest.raises(KafkaError) as refused:
        rules.validate((2, "t"), remote, {}, below)
    assert refused.value.message == kafkas_answer("ms", 50, 49)
    # The node's own setting is stronger; what is not usable here is left out.
    rules.validate((2, "t"), remote, {}, replace(below, node={"log.local.retention.ms": "40"}))
    rules.validate((2, "t"), remote, {}, replace(below, cluster={"max.connections": "x"}))


# The broker's own settings -------------------------------------------------------------------


@pytest.mark.parametrize("unit", ["ms", "bytes"])
def test_a_broker_with_a_local_limit_above_the_total_one_does_not_start(unit: str) -> None:
    given = (f"log.retention.{unit}=10", f"log.local.retention.{unit}=11")
    settings(*given)
    with pytest.raises(ConfigError) as refused:
        settings(ON, *given)
    assert str(refused.value) == kafkas_answer(unit, 11, 10)


def test_what_is_pruned_is_in_a_backup() -> None:
    stored = "diskless.storage.url=file:///tmp/bucket"
    late = (stored, "diskless.metadata.backup.interval.ms=150001")
    settings(*late)
    settings(ON, *late[1:])
    with pytest.raises(ConfigError) as refused:
        settings(ON, *late)
    assert str(refused.value) == (
        "Invalid value 300000 for configuration diskless.tiering.prune.delay.ms: it must be at "
        "least twice diskless.metadata.backup.interval.ms=150001"
    )
    settings(ON, *late, "diskless.tiering.prune.delay.ms=300002")
    settings(ON, stored, "diskless.metadata.backup.interval.ms=150000")
    settings(
        ON,
        stored,
        "diskless.metadata.backup.interval.ms=0",
        "diskless.tiering.prune.delay.ms=0",
    )


def change(name: str, text: str, *static: str) -> str | None:
    layers = Layers(static=settings(ON, *static).static)
    try:
        validate_broker_configs({name: text}, layers, per_broker=False)
    except KafkaError as error:
        assert error.code is ErrorCode.INVALID_REQUEST
        return error.message
    return None


@pytest.mark.parametrize("unit", ["ms", "bytes"])
def test_a_broker_wide_limit_is_compared_when_it_changes(unit: str) -> None:
    local, total = f"log.local.retention.{unit}", f"log.retention.{unit}"
    assert change(local, "10", f"{total}=10") is None
    assert change(local, "-2", f"{total}=10") is None
    assert change(local, "11", f"{total}=10") == (
        f"Invalid value 11 for configuration {local}: Value must not be more than {total} property "
        "value: 10"
    )
    assert change(local, "-1", f"{total}=10") == (
        f"Invalid value -1 for configuration {local}: Value must not be -1 as {total} value is set "
        "as 10."
    )
    assert change(total, "9", f"{total}=10", f"{local}=10") == (
        f"Invalid value 10 for configuration {local}: Value must not be more than {total} property "
        "value: 9"
    )


@pytest.mark.parametrize(
    "name",
    [
        "remote.log.reader.threads",
        "remote.log.manager.copier.thread.pool.size",
        "remote.log.manager.expiration.thread.pool.size",
    ],
)
@pytest.mark.parametrize(
    ("size", "why"),
    [
        (5, None),
        (20, None),
        (4, "should be at least half the current value 10"),
        (21, "should not be greater than double the current value 10"),
    ],
)
def test_pools_change_by_a_factor_of_two_at_most(name: str, size: int, why: str | None) -> None:
    said = change(name, str(size))
    start = f"Dynamic thread count update validation failed for {name}={size}, value "
    assert said == (None if why is None else start + why)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("remote.log.manager.copy.max.bytes.per.second", "1000"),
        ("remote.log.manager.fetch.max.bytes.per.second", "1000"),
        ("remote.log.index.file.cache.total.size.bytes", "1"),
        ("remote.fetch.max.wait.ms", "5"),
        ("remote.list.offsets.request.timeout.ms", "5"),
        ("follower.fetch.last.tiered.offset.enable", "true"),
    ],
)
def test_these_change_while_the_broker_runs(name: str, text: str) -> None:
    assert change(name, text) is None


@pytest.mark.parametrize(
    "name",
    [
        "remote.log.storage.system.enable",
        "remote.log.manager.task.interval.ms",
        "remote.log.manager.copy.quota.window.num",
        "remote.log.reader.max.pending.tasks",
        "remote.log.storage.manager.class.name",
        "tiered.storage.url",
        "diskless.tiering.default",
        "diskless.tiering.prune.delay.ms",
    ],
)
def test_these_change_with_a_restart_only(name: str) -> None:
    assert change(name, "1") == f"Cannot update these configs dynamically: [{name}]"
