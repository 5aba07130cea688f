"""Our responses about settings are those of Kafka 4.3.1 (tests/golden/configs)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from skylog.kernel.config import ConfigSource
from skylog.kernel.errors import KafkaError
from skylog.kernel.logging import Hub
from skylog.kernel.properties import parse_properties
from skylog.kernel.settings import BrokerSettings, build_settings
from skylog.kernel.settings.definitions import OURS
from skylog.kernel.settings.describe import (
    ConfigEntry,
    describe_broker_configs,
    describe_client_metrics_configs,
    describe_default_broker_configs,
    describe_group_configs,
    describe_topic_configs,
)
from skylog.kernel.settings.dynamic import (
    BROKER_RESOURCE,
    CLIENT_METRICS_RESOURCE,
    GROUP_RESOURCE,
    LOGGER_RESOURCE,
    SCHEMAS,
    TOPIC_RESOURCE,
    apply_changes,
    validate_broker_configs,
    validate_logger_changes,
)
from skylog.kernel.settings.resources import ResourceRules
from skylog.kernel.settings.synonyms import Layers

FOLDER = Path(__file__).parents[2] / "golden" / "configs"
ANSWERS: dict[str, Any] = json.loads((FOLDER / "answers.json").read_text())
# Kafka's message for a rule between settings; ours says more, and the code is the same.
OTHER_WORDS = "requirement failed: "


def overrides(kind: int, name: str) -> dict[str, str]:
    """The settings of a resource in the golden run."""
    found: dict[str, str] = {}
    if (kind, name) == (TOPIC_RESOURCE, "changed"):
        found["segment.ms"] = "5000"
    if (kind, name) == (BROKER_RESOURCE, ""):
        found["min.insync.replicas"] = "1"  # the controller writes it where ELR is enabled
    for setup_kind, setup_name, changes in ANSWERS["setup"]:
        if (kind, name) == (setup_kind, setup_name):
            found.update({name: value for name, _, value in changes})
    return found


def built() -> BrokerSettings:
    """The golden run's settings, with the one that skylog would refuse to load."""
    return build_settings(parse_properties((FOLDER / "server.properties").read_text()))


@pytest.fixture(scope="module")
def static() -> BrokerSettings:
    return built()


@pytest.fixture(scope="module")
def layers(static: BrokerSettings) -> Layers:
    return Layers(overrides(BROKER_RESOURCE, "1"), overrides(BROKER_RESOURCE, ""), static.static)


@pytest.fixture(scope="module")
def current(static: BrokerSettings, layers: Layers) -> BrokerSettings:
    return static.with_dynamic(layers.dynamic_default, layers.dynamic_broker)


def shown(entry: ConfigEntry) -> list[Any]:
    synonyms = [[synonym.name, synonym.value, synonym.source] for synonym in entry.synonyms]
    flags = [entry.read_only, entry.sensitive]
    return [entry.value, entry.source, entry.type, *flags, synonyms]


def describe(kind: int, name: str, current: BrokerSettings, layers: Layers) -> list[ConfigEntry]:
    own = overrides(kind, name)
    match kind:
        case 2:
            return describe_topic_configs(own, current, layers)
        case 4:
            if name:
                return describe_broker_configs(current, layers)
            return describe_default_broker_configs(layers)
        case 32:
            return describe_group_configs(own, current, layers)
        case _:
            return describe_client_metrics_configs(own)


def is_own(name: str) -> bool:
    """Settings that Kafka does not have."""
    return name in OURS or "diskless." in name or name.startswith("remote.copy.lag.")


@pytest.mark.parametrize(
    ("kind", "name", "expected"),
    ANSWERS["described"],
    ids=[f"{kind}-{name or 'default'}" for kind, name, _ in ANSWERS["described"]],
)
def test_described_as_kafka_describes(
    kind: int,
    name: str,
    expected: Mapping[str, Any],
    current: BrokerSettings,
    layers: Layers,
) -> None:
    entries = describe(kind, name, current, layers)
    described = {entry.name: shown(entry) for entry in entries if not is_own(entry.name)}
    expected = dict(expected)
    if (kind, name) == (BROKER_RESOURCE, "1"):
        # The one default that differs: nothing listens on other than the loopback address.
        assert expected["listeners"][5][1:] == [["listeners", "PLAINTEXT://:9092", 5]]
        assert described["listeners"][5][1:] == [["listeners", "PLAINTEXT://127.0.0.1:9092", 5]]
        del expected["listeners"], described["listeners"]
    assert described == expected


def test_names_choose_what_is_described(current: BrokerSettings, layers: Layers) -> None:
    entries = describe_topic_configs({}, current, layers, ["retention.ms", "no.such"])
    assert [entry.name for entry in entries] == ["retention.ms"]
    assert entries[0].source is ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG


class TopicLayers:
    def __init__(self, topic: Mapping[str, str]) -> None:
        self.topic = topic
        self.node: Mapping[str, str] = {}
        self.cluster: Mapping[str, str] = {"min.insync.replicas": "1"}


@pytest.mark.parametrize("topic", ["plain", "changed"])
def test_created_topics_are_answered_as_kafka_answers(topic: str, static: BrokerSettings) -> None:
    own = {"segment.ms": "5000"} if topic == "changed" else {}
    entries = ResourceRules(lambda: static).topic_entries(TopicLayers(own))
    answered = {
        e.name: [e.value, e.source, e.read_only, e.sensitive] for e in entries if not is_own(e.name)
    }
    assert answered == ANSWERS["created"][topic]


def refuse(
    kind: int, name: str, changes: list[tuple[str, int, str | None]], layers: Layers
) -> None:
    """Validate and apply a change of settings as the broker and the controller do."""
    settings = built()
    if kind == LOGGER_RESOURCE:
        validate_logger_changes(1, name, changes, Hub())
        return
    own = overrides(kind, name)
    if kind == BROKER_RESOURCE:
        validate_broker_configs(apply_changes(own, changes), layers, per_broker=bool(name))
        return
    rules = ResourceRules(lambda: settings)
    schema = SCHEMAS.get(kind, SCHEMAS[TOPIC_RESOURCE])
    rules.validate((kind, name), apply_changes(own, changes, schema), own)


def settled_elsewhere(kind: int, name: str, message: str | None) -> bool:
    """Errors about the request's form or its broker, not about settings."""
    return bool(message) and (
        message.startswith(("Null value", "Can't APPEND"))
        or (kind == BROKER_RESOURCE and name not in ("", "1"))
    )


TRIED = [
    pytest.param(*tried, id=f"{tried[0]}-{tried[1]}-{tried[2][0][0]}-{at}")
    for at, tried in enumerate(ANSWERS["tried"])
    if not settled_elsewhere(tried[0], tried[1], tried[4])
]


@pytest.mark.parametrize(("kind", "name", "changes", "code", "message"), TRIED)
def test_refused_as_kafka_refuses(
    kind: int,
    name: str,
    changes: list[tuple[str, int, str | None]],
    code: int,
    message: str | None,
    layers: Layers,
) -> None:
    if not code:
        refuse(kind, name, changes, layers)
        return
    with pytest.raises(KafkaError) as caught:
        refuse(kind, name, changes, layers)
    assert caught.value.code == code
    if message is not None and not message.startswith(OTHER_WORDS):
        assert caught.value.message == message


def test_golden_covers_all_kinds() -> None:
    assert {kind for kind, *_ in ANSWERS["tried"]} >= {
        TOPIC_RESOURCE,
        BROKER_RESOURCE,
        LOGGER_RESOURCE,
        CLIENT_METRICS_RESOURCE,
        GROUP_RESOURCE,
    }
