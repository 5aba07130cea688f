"""Brokers that do not know remote topics, and remote topics, keep out of each other's way."""

from __future__ import annotations

from skylog.controller.levels import BROKER_FEATURES, SKYLOG_LEVEL
from skylog.controller.settings import SUPPORTED_FEATURES
from skylog.kernel.errors import ErrorCode
from skylog.kernel.settings import load_settings
from skylog.kernel.settings.resources import ResourceRules
from skylog.wire.messages.broker_registration_request import Feature
from skylog.wire.messages.incremental_alter_configs_request import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from skylog.wire.messages.unregister_broker_request import UnregisterBrokerRequest
from skylog.wire.messages.update_features_request import (
    FeatureUpdateKey,
    UpdateFeaturesRequest,
)
from tests.unit.controller.support import Bench, registration, topic

NEW = [Feature(name, *span) for name, span in BROKER_FEATURES.items()]
OLD = [Feature(name, *span) for name, span in SUPPORTED_FEATURES.items()]


class Rules(ResourceRules):
    def describe_topic(self, _layers: object) -> list[object]:
        return []


def bench() -> Bench:
    settings = load_settings(overrides=["remote.log.storage.system.enable=true"])
    return Bench(configs=Rules(lambda: settings))  # type: ignore[arg-type]


def create(nodes: Bench, name: str = "t") -> tuple[int, str | None]:
    (made,) = nodes.create(topic(name, remote_storage_enable="true")).topics
    return made.error_code, made.error_message


def enable(nodes: Bench, name: str) -> int:
    configs = [AlterableConfig("remote.storage.enable", 0, "true")]
    request = IncrementalAlterConfigsRequest([AlterConfigsResource(2, name, configs)], False)
    return int(nodes.ask(request).responses[0].error_code)


def test_a_topic_becomes_remote_once_every_broker_knows_how() -> None:
    nodes = bench()
    nodes.join(1, features=NEW)
    nodes.join(2, features=OLD)
    nodes.create(topic("plain"))
    code, message = create(nodes)
    assert code == ErrorCode.INVALID_CONFIG
    assert message is not None and "upgraded; these have not: 2." in message
    assert enable(nodes, "plain") == ErrorCode.INVALID_CONFIG
    assert nodes.image.topic("t") is None and nodes.image.topic_configs("plain") == {}
    # A broker that is down may come back, so it counts until it is unregistered.
    nodes.expire(2)
    assert create(nodes)[0] == ErrorCode.INVALID_CONFIG
    nodes.ask(UnregisterBrokerRequest(2))
    assert create(nodes) == (0, None)
    assert enable(nodes, "plain") == 0


def test_a_broker_that_is_upgraded_counts_as_what_it_is_now() -> None:
    nodes = bench()
    nodes.join(1, features=OLD)
    assert create(nodes)[0] == ErrorCode.INVALID_CONFIG
    nodes.expire(1)
    nodes.join(1, features=NEW, life=1)
    assert create(nodes) == (0, None)


def test_an_old_broker_does_not_join_a_cluster_with_remote_topics() -> None:
    nodes = bench()
    nodes.join(1, features=NEW)
    nodes.join(2, features=OLD)
    nodes.ask(UnregisterBrokerRequest(2))
    assert create(nodes) == (0, None)
    refused = nodes.refused(registration(2, features=OLD, life=1))
    assert refused.code is ErrorCode.UNSUPPORTED_VERSION
    assert "topic t has remote.storage.enable=true" in (refused.message or "")
    nodes.join(2, features=NEW, life=1)


def test_the_level_cannot_be_finalized() -> None:
    nodes = bench()
    nodes.join(1, features=NEW)
    update = FeatureUpdateKey(SKYLOG_LEVEL, 1, upgrade_type=1)
    answer = nodes.ask(UpdateFeaturesRequest(feature_updates=[update]), version=1)
    assert answer.error_code == ErrorCode.INVALID_UPDATE_VERSION
    assert SKYLOG_LEVEL not in nodes.image.features.levels
