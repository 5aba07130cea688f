"""Changing settings at run time: what may change, for which brokers, and Kafka's errors.

A broker setting is read-only, or may be set for one broker, or for one broker and the cluster.
Security settings change for one listener only, never for all at once.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from skylog.kernel.config import (
    ConfigKey,
    ConfigType,
    Dynamic,
    Operation,
    Schema,
    Value,
    changed_list,
    format_value,
)
from skylog.kernel.errors import ConfigError, ErrorCode, KafkaError
from skylog.kernel.logging import ROOT, Hub, Level
from skylog.kernel.settings.broker import BrokerSettings, build_settings
from skylog.kernel.settings.definitions import (
    BROKER,
    BROKER_QUOTA,
    CLIENT_METRICS,
    GROUP,
    KAFKA_BROKER,
    TOPIC,
)
from skylog.kernel.settings.remote_topics import check_local_limits
from skylog.kernel.settings.synonyms import LISTENER_SETTING, Layers
from skylog.kernel.settings.topics import invalid_config, not_null, parsed, topic_defaults

# Resource types of the configuration APIs.
TOPIC_RESOURCE, BROKER_RESOURCE = 2, 4
LOGGER_RESOURCE, CLIENT_METRICS_RESOURCE, GROUP_RESOURCE = 8, 16, 32
SCHEMAS: Final[Mapping[int, Schema]] = {
    TOPIC_RESOURCE: TOPIC,
    BROKER_RESOURCE: KAFKA_BROKER,
    CLIENT_METRICS_RESOURCE: CLIENT_METRICS,
    GROUP_RESOURCE: GROUP,
}
_DYNAMIC: Final = Schema(
    (
        *(key for key in BROKER.values() if key.dynamic is not Dynamic.READ_ONLY),
        *BROKER_QUOTA.values(),
    )
)
_PER_LISTENER_ONLY: Final = frozenset(
    f"ssl.{name}"
    for name in (
        "keystore.type",
        "keystore.location",
        "keystore.password",
        "keystore.key",
        "keystore.certificate.chain",
        "key.password",
        "truststore.type",
        "truststore.location",
        "truststore.password",
        "truststore.certificates",
    )
)
_CLUSTER_LEVEL_LISTENER: Final = frozenset(
    {"max.connections", "max.connection.creation.rate", "num.network.threads"}
)
_POOLS: Final = (
    "num.io.threads",
    "num.replica.fetchers",
    "num.recovery.threads.per.data.dir",
    "background.threads",
    "remote.log.reader.threads",
    "remote.log.manager.copier.thread.pool.size",
    "remote.log.manager.expiration.thread.pool.size",
    "remote.log.manager.follower.thread.pool.size",
)
# Sockets are bound once, at start.
_AT_START: Final = frozenset({"listeners", "listener.security.protocol.map"})


Change = tuple[str, int, str | None]  # name, operation, value


def invalid_request(message: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_REQUEST, message)


def _key(resource_type: int, name: str) -> ConfigKey | None:
    schema = SCHEMAS.get(resource_type)
    return None if schema is None else schema.get(name)


def is_list(resource_type: int, name: str) -> bool:
    """Whether a setting is a list, which values can be appended to."""
    key = _key(resource_type, name)
    return key is not None and key.type is ConfigType.LIST


def default_value(resource_type: int, name: str) -> str | None:
    """The text of a setting's default."""
    key = _key(resource_type, name)
    return None if key is None or key.default is None else format_value(key.default)


def apply_changes(
    current: Mapping[str, str], changes: Sequence[Change], schema: Schema = KAFKA_BROKER
) -> dict[str, str]:
    """Overrides after incremental changes; KafkaError if an operation does not apply."""
    texts = dict(current)
    for name, operation, value in changes:
        if operation == Operation.SET and value is not None:
            texts[name] = value
        elif operation == Operation.DELETE:
            texts.pop(name, None)
        elif operation in (Operation.APPEND, Operation.SUBTRACT):
            texts[name] = _changed_list(texts, name, operation, value or "", schema)
        else:
            raise invalid_request(f"Unknown operations type {operation}")
    return texts


def _changed_list(
    texts: Mapping[str, str], name: str, operation: int, value: str, schema: Schema
) -> str:
    key = schema.get(name)
    if key is None:
        raise invalid_config(f"Unknown config name: {name}")
    if key.type is not ConfigType.LIST:
        verb = Operation(operation).name.lower()
        raise invalid_config(f"Config value {verb} is not allowed for config key: {name}")
    return changed_list(texts.get(name, format_value(key.default or ())), operation, value)


def validate_broker_configs(
    overrides: Mapping[str, str], layers: Layers, *, per_broker: bool
) -> BrokerSettings:
    """Check all dynamic settings that a broker, or the cluster, would have.

    Returns the resulting settings; KafkaError(INVALID_REQUEST) with Kafka's message.
    """
    names = [name for name in overrides if name in BROKER and name not in _DYNAMIC]
    _refuse(names, "Cannot update these configs dynamically")
    _refuse(
        _PER_LISTENER_ONLY & overrides.keys(),
        "These security configs can be dynamically updated only per-listener using the listener"
        " prefix",
    )
    try:
        for name, text in overrides.items():
            found = LISTENER_SETTING.fullmatch(name)
            key = _DYNAMIC.get(found[1] if found else name)
            if key is not None:
                key.parse(text)
        if not per_broker:
            _refuse(
                _per_broker_names(overrides),
                "Cannot update these configs at default cluster level, broker id must be specified",
            )
        _check_at_start(overrides, layers)
        changed = (
            Layers(overrides, layers.dynamic_default, layers.static)
            if per_broker
            else Layers(layers.dynamic_broker, overrides, layers.static)
        )
        settings = build_settings(changed.overlaid())
        _check_pools(build_settings(layers.overlaid()), settings)
        check_local_limits(_log_limits(settings), "log.")
        return settings
    except ConfigError as error:
        raise invalid_request(str(error)) from error


def _check_pools(current: BrokerSettings, changed: BrokerSettings) -> None:
    """Kafka changes the size of a pool of threads in steps only."""
    for name in _POOLS:
        before, after = current[name], changed[name]
        if before // 2 <= after <= before * 2:
            continue
        bound = "should be at least half" if after < before else "should not be greater than double"
        raise ConfigError(
            f"Dynamic thread count update validation failed for {name}={after}, value {bound} the "
            f"current value {before}"
        )


def _log_limits(settings: BrokerSettings) -> dict[str, Value]:
    """The defaults of topics' limits, under the names that a broker has for them."""
    values = topic_defaults(settings)
    return {
        f"log.{kind}.{unit}": values[f"{kind}.{unit}"]
        for kind in ("retention", "local.retention", "remote.copy.lag")
        for unit in ("bytes", "ms")
    }


def _refuse(names: Iterable[str], why: str) -> None:
    found = sorted(names)
    if found:
        raise invalid_request(f"{why}: [{', '.join(found)}]")


def _per_broker_names(overrides: Mapping[str, str]) -> list[str]:
    found = []
    for name in overrides:
        key = _DYNAMIC.get(name)
        listener = LISTENER_SETTING.fullmatch(name)
        if (key is not None and key.dynamic is Dynamic.PER_BROKER) or (
            listener is not None and listener[1] not in _CLUSTER_LEVEL_LISTENER
        ):
            found.append(name)
    return found


def _check_at_start(overrides: Mapping[str, str], layers: Layers) -> None:
    for name in sorted(_AT_START & overrides.keys()):
        if overrides[name] != layers.overlaid().get(name):
            raise ConfigError(
                f"Invalid value {overrides[name]} for configuration {name}: "
                "listeners change only with a restart of the broker"
            )


def validate_client_metrics_configs(name: str, overrides: Mapping[str, str | None]) -> None:
    """Check all settings that a client metrics subscription would have."""
    if not name:
        raise invalid_request("Subscription name can't be empty")
    texts = not_null(overrides, "client metrics")
    for key in texts:
        if key not in CLIENT_METRICS:
            raise invalid_request(f"Unknown client metrics configuration: {key}")
    values = parsed(CLIENT_METRICS, texts)
    interval = values.get("interval.ms")
    if interval is not None and not 100 <= interval <= 3_600_000:
        raise invalid_request(
            f"Invalid value {interval} for interval.ms, "
            "interval must be between 100 and 3600000 (1 hour)"
        )
    for pattern in values.get("match", ()):
        _check_match(pattern)


_MATCHED: Final = frozenset(
    {
        "client_instance_id",
        "client_id",
        "client_software_name",
        "client_software_version",
        "client_source_address",
        "client_source_port",
    }
)


def _check_match(pattern: str) -> None:
    parts = pattern.rstrip("=").split("=")
    try:
        if len(parts) == 2 and parts[0].strip() in _MATCHED:
            re.compile(parts[1].strip())
            return
    except re.error:
        pass
    raise invalid_config(f"Illegal client matching pattern: {pattern}")


def validate_logger_changes(
    node_id: int, resource_name: str, changes: Sequence[Change], hub: Hub
) -> None:
    """Check changes of log levels; KafkaError with Kafka's message."""
    if not re.fullmatch("[+-]?[0-9]{1,10}", resource_name):
        raise invalid_request(f"Node id must be an integer, but it is: {resource_name}")
    if int(resource_name) != node_id:
        raise invalid_request(
            f"Unexpected node id. Expected {node_id}, but received {int(resource_name)}"
        )
    for name, operation, value in changes:
        if operation in (Operation.APPEND, Operation.SUBTRACT):
            raise invalid_request(
                f"{Operation(operation).name} operation is not allowed for the"
                " BROKER_LOGGER resource"
            )
        if operation not in (Operation.SET, Operation.DELETE):
            raise invalid_request(
                f"Unknown operation type {operation} is not allowed for the BROKER_LOGGER resource"
            )
        if not hub.knows(name):
            raise invalid_config(f"Logger {name} does not exist!")
        if operation == Operation.SET and value not in Level.__members__:
            levels = ", ".join(sorted(Level.__members__))
            raise invalid_config(
                f"Cannot set the log level of {name} to {value} as it is not a supported log "
                f"level. Valid log levels are {levels}"
            )
        if operation == Operation.DELETE and name == ROOT:
            raise invalid_request(f"Removing the log level of the {ROOT} logger is not allowed")


def apply_logger_changes(changes: Sequence[Change], hub: Hub) -> None:
    """Set and unset validated levels."""
    for name, operation, value in changes:
        if operation == Operation.SET and value is not None:
            hub.set_level(name, Level[value])
        else:
            hub.unset_level(name)
