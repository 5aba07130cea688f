"""Brokers that do not know remote topics, and remote topics, keep out of each other's way.

New diskless topics are remote by default, once every broker knows how.
"""

from __future__ import annotations

from typing import Any

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
ONE = [*OLD, Feature(SKYLOG_LEVEL, 0, 1)]


class Rules(ResourceRules):
    def describe_topic(self, _layers: object) -> list[object]:
        return []


def bench(*overrides: str, **more: Any) -> Bench:
    settings = load_settings(overrides=["remote.log.storage.system.enable=true", *overrides])
    return Bench(configs=Rules(lambda: settings), **more)  # type: ignore[arg-type]


def create(nodes: Bench, name: str = "t", **more: str) -> tuple[int, str | None]:
    (made,) = nodes.create(topic(name, remote_storage_enable="true", **more)).topics
    return made.error_code, made.error_message


def created(nodes: Bench, name: str, **configs: str) -> dict[str, str]:
    replicas = 1 if name in ("classic", "__system") else -1
    (made,) = nodes.create(topic(name, replicas=replicas, **configs)).topics
    assert made.error_code == 0, made
    return dict(nodes.image.topic_configs(name))


def enable(nodes: Bench, name: str, value: str = "true") -> int:
    configs = [AlterableConfig("remote.storage.enable", 0, value)]
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


def test_remote_segments_of_diskless_topics_need_a_level_of_their_own() -> None:
    """A coordinator of level 1 would delete the records that are to be pruned."""
    nodes = bench(diskless_metadata_replicas=1)
    nodes.join(1, features=NEW)
    nodes.join(2, features=ONE)
    assert create(nodes, "classic") == (0, None)
    code, message = create(nodes, "d", diskless_enable="true")
    assert code == ErrorCode.INVALID_CONFIG
    assert message is not None and "these have not: 2." in message
    plain = topic("plain", replicas=-1, diskless_enable="true")
    assert nodes.create(plain).topics[0].error_code == 0
    assert enable(nodes, "plain") == ErrorCode.INVALID_CONFIG
    nodes.expire(2)
    nodes.join(2, features=NEW, life=1)
    assert enable(nodes, "plain") == 0
    assert enable(nodes, "plain", "false") == ErrorCode.INVALID_CONFIG
    refused = nodes.refused(registration(3, features=ONE))
    assert refused.code is ErrorCode.UNSUPPORTED_VERSION
    assert "topic plain has remote.storage.enable=true" in (refused.message or "")


def test_new_diskless_topics_are_remote_by_default() -> None:
    """Written out: a topic stays what it was created as when the default changes."""
    nodes = bench(diskless_tiering=True)
    nodes.join(1, features=NEW)
    written = {"diskless.enable": "true", "remote.storage.enable": "true"}
    assert created(nodes, "d", diskless_enable="true") == written
    # As given; it is true all the same.
    loud = {"diskless.enable": " TRUE", "remote.storage.enable": "true"}
    assert created(nodes, "loud", diskless_enable=" TRUE") == loud
    assert nodes.image.topics.by_name["loud"].diskless_enabled
    off = {"diskless.enable": "true", "remote.storage.enable": "false"}
    assert created(nodes, "off", diskless_enable="true", remote_storage_enable="false") == off
    assert created(nodes, "classic") == {}
    assert created(nodes, "__system") == {}
    old = bench(diskless_tiering=True)
    old.join(1, features=ONE)
    assert created(old, "upgrading", diskless_enable="true") == {"diskless.enable": "true"}


def test_the_default_of_diskless_topics_is_remote_too() -> None:
    nodes = bench("log.diskless.enable=true", diskless_tiering=True)
    nodes.join(1, features=NEW)
    written = {"diskless.enable": "true", "remote.storage.enable": "true"}
    assert created(nodes, "d") == written
    assert created(nodes, "classic", diskless_enable="false") == {"diskless.enable": "false"}
    assert created(nodes, "__system") == {}


def test_the_default_can_be_off() -> None:
    nodes = bench(diskless_tiering=False)
    nodes.join(1, features=NEW)
    assert created(nodes, "d", diskless_enable="true") == {"diskless.enable": "true"}


def test_the_level_cannot_be_finalized() -> None:
    nodes = bench()
    nodes.join(1, features=NEW)
    update = FeatureUpdateKey(SKYLOG_LEVEL, 1, upgrade_type=1)
    answer = nodes.ask(UpdateFeaturesRequest(feature_updates=[update]), version=1)
    assert answer.error_code == ErrorCode.INVALID_UPDATE_VERSION
    assert SKYLOG_LEVEL not in nodes.image.features.levels
