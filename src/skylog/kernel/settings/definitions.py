"""All settings: Kafka's, with their facts, and skylog's own.

``BROKER`` is what ``server.properties`` may contain; the others are the resources of the
configuration APIs. A setting's ``doc`` comes from the section field that holds it; a setting
without a field is accepted without effect, so that a ``server.properties`` written for Kafka works
unchanged.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from skylog.kernel.config import ConfigKey, ConfigType, Dynamic, Importance, Schema, parse
from skylog.kernel.settings import (
    diskless,
    kafka_broker_facts,
    kafka_resource_facts,
    managed_replication,
    replication,
    storage,
    tiered,
)
from skylog.kernel.settings.consumer_groups import GROUP_DOCS
from skylog.kernel.settings.fields import docs_of
from skylog.kernel.settings.listeners import LISTENER_DOCS
from skylog.kernel.settings.sections import SECTIONS
from skylog.kernel.settings.topic_facts import BROKER_QUOTA_DOCS, TOPIC_BROKER_DOCS, TOPIC_DOCS
from skylog.kernel.validators import OneOf, validator

# Kafka has no default for these: the author of server.properties decides.
REQUIRED: Final = ("process.roles", "node.id", "controller.listener.names")

# Where our default differs from Kafka's: listen on the loopback address only.
DEFAULTS: Final[Mapping[str, str]] = {"listeners": "PLAINTEXT://127.0.0.1:9092"}

ALL_SECTIONS: Final = (
    *SECTIONS,
    replication.ReplicationSettings,
    diskless.DisklessSettings,
    managed_replication.ManagedReplicationSettings,
    storage.StorageSettings,
    tiered.TieredSettings,
)
_SECTION_DOCS: Final = docs_of(*ALL_SECTIONS)


def _key(fact: kafka_broker_facts.Fact, docs: Mapping[str, str]) -> ConfigKey:
    name, kind, default, allowed, importance, dynamic, internal = fact
    return ConfigKey(
        name=name,
        type=ConfigType[kind],
        # Defaults are not validated: some of Kafka's own are outside the allowed range.
        default=None if default is None else parse(name, default, ConfigType[kind]),
        validator=validator(allowed),
        importance=Importance[importance],
        doc=docs.get(name, ""),
        dynamic=Dynamic(dynamic),
        internal=internal,
    )


def _own(name: str, kind: ConfigType, default: str, *words: str) -> ConfigKey:
    return ConfigKey(
        name=name,
        type=kind,
        default=parse(name, default, kind),
        validator=OneOf(words) if words else None,
        doc=_SECTION_DOCS[name],
    )


# Other names of settings that sections hold.
OTHER_NAME_DOCS: Final[Mapping[str, str]] = {
    "broker.id": "Old name of node.id.",
    "log.dir": "Used if log.dirs is not set.",
}
_BROKER_DOCS: Final = {**TOPIC_BROKER_DOCS, **LISTENER_DOCS, **OTHER_NAME_DOCS, **_SECTION_DOCS}

OWN: Final = (
    _own("produce.validation", ConfigType.STRING, "full", "full", "header"),
    _own("http.listener", ConfigType.STRING, "127.0.0.1:9464"),
    _own("log.format", ConfigType.STRING, "auto", "auto", "text", "json"),
    _own(
        "log.level",
        ConfigType.STRING,
        "INFO",
        *("TRACE", "DEBUG", "INFO", "WARN", "ERROR", "FATAL"),
    ),
)
# Kafka passes these to its authorizer without defining them, and does not show them.
AUTHORIZER: Final = (
    _own("super.users", ConfigType.STRING, ""),
    _own("allow.everyone.if.no.acl.found", ConfigType.BOOLEAN, "false"),
)


def _schema(facts: Iterable[kafka_broker_facts.Fact], docs: Mapping[str, str]) -> Schema:
    return Schema(_key(fact, docs) for fact in facts)


KAFKA_BROKER: Final = _schema(
    ((*fact[:2], DEFAULTS.get(fact[0], fact[2]), *fact[3:]) for fact in kafka_broker_facts.BROKER),
    _BROKER_DOCS,
)
_OBJECTS: Final = tuple(
    _key(fact, _SECTION_DOCS)
    for fact in (
        *(
            (*fact, "MEDIUM", "read-only", False)
            for fact in (*diskless.FACTS, *storage.FACTS, *tiered.FACTS)
        ),
        *managed_replication.FACTS,
    )
)
_TOPIC_DEFAULTS: Final = tuple(
    _key((name, kind, default, allowed, "MEDIUM", "cluster-wide", False), TOPIC_BROKER_DOCS)
    for name, kind, default, allowed in (
        ("log.diskless.enable", "BOOLEAN", "false", ""),
        ("log.remote.copy.lag.bytes", "LONG", "-1", "[-1,...]"),
        ("log.remote.copy.lag.ms", "LONG", "0", "[-1,...]"),
    )
)
# What Kafka does not have.
OURS: Final = Schema((*OWN, *_OBJECTS, *_TOPIC_DEFAULTS))
BROKER: Final = Schema((*KAFKA_BROKER.values(), *AUTHORIZER, *OURS.values()))
BROKER_QUOTA: Final = _schema(kafka_resource_facts.BROKER_QUOTA, BROKER_QUOTA_DOCS)
_OWN_TOPIC: Final = (
    ("diskless.enable", "BOOLEAN", "false", "", "MEDIUM", "read-only", False),
    (
        "diskless.tiering.assembler",
        *("STRING", "broker", "[broker, external]", "MEDIUM", "read-only", False),
    ),
    # Kafka has these since 4.4 (KIP-1241).
    ("remote.copy.lag.bytes", "LONG", "-1", "[-1,...]", "MEDIUM", "read-only", False),
    ("remote.copy.lag.ms", "LONG", "0", "[-1,...]", "MEDIUM", "read-only", False),
)
TOPIC: Final = _schema((*kafka_resource_facts.TOPIC, *_OWN_TOPIC), TOPIC_DOCS)
GROUP: Final = _schema(kafka_resource_facts.GROUP, GROUP_DOCS)
CLIENT_METRICS: Final = _schema(kafka_resource_facts.CLIENT_METRICS, {})
CLIENT_QUOTA: Final = _schema(kafka_resource_facts.CLIENT_QUOTA, {})
IP_QUOTA: Final = _schema(kafka_resource_facts.IP_QUOTA, {})
