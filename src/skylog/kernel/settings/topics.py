"""Topic and group settings: which overrides are allowed, and the effective values.

A topic's setting is its own override, else the broker setting of the same meaning (the cluster's
dynamic ones, then ``server.properties``), else Kafka's default.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from skylog.kernel.config import Schema, Value
from skylog.kernel.errors import ConfigError, ErrorCode, KafkaError
from skylog.kernel.limits import CONFIG_VALUE_CHARACTERS_MAX
from skylog.kernel.settings.definitions import GROUP, TOPIC
from skylog.kernel.settings.remote_topics import check_remote
from skylog.kernel.settings.topic_facts import GROUP_SYNONYMS, TOPIC_SYNONYMS

if TYPE_CHECKING:
    from skylog.kernel.settings.broker import BrokerSettings


@dataclass(frozen=True, slots=True)
class ProduceLimits:
    """A topic's rules for produced batches; names are those of TopicRules."""

    message_bytes_max: int
    compression_type: str
    timestamp_type: str
    timestamp_before_max_ms: int
    timestamp_after_max_ms: int
    compacted: bool
    gzip_level: int
    lz4_level: int
    zstd_level: int
    full: bool


def topic_defaults(settings: BrokerSettings) -> dict[str, Value]:
    """Every topic setting without overrides, under these broker settings."""
    values = {name: key.default for name, key in TOPIC.items()}
    for name, synonyms in TOPIC_SYNONYMS.items():
        for synonym in synonyms:
            value = settings[synonym.name]
            if value is not None:
                values[name] = value * synonym.factor if synonym.factor > 1 else value
                break
    values["retention.ms"] = max(values["retention.ms"], -1)
    return values


def topic_values(overrides: Mapping[str, str], settings: BrokerSettings) -> dict[str, Value]:
    """Every effective setting of a topic with these overrides.

    Overrides were validated when they were set; one that is unknown or invalid now is skipped
    rather than making the topic unavailable.
    """
    return _overlaid(TOPIC, topic_defaults(settings), overrides)


def group_values(overrides: Mapping[str, str], settings: BrokerSettings) -> dict[str, Value]:
    """Every effective setting of a group with these overrides."""
    values = {name: key.default for name, key in GROUP.items()}
    values.update({name: settings[broker] for name, broker in GROUP_SYNONYMS.items()})
    return _overlaid(GROUP, values, overrides)


def _overlaid(
    schema: Schema, values: dict[str, Value], overrides: Mapping[str, str]
) -> dict[str, Value]:
    for name, text in overrides.items():
        if name in schema:
            try:
                values[name] = schema[name].parse(text)
            except ConfigError:
                continue
    return values


def log_config_values(values: Mapping[str, Value], settings: BrokerSettings) -> dict[str, Value]:
    """The input of ``LogConfig.from_mapping``: a topic's values and the broker's for every log."""
    internal = values["internal.segment.bytes"]
    return {
        **values,
        "segment.bytes": values["segment.bytes"] if internal is None else internal,
        "producer.id.expiration.ms": settings.log.producer_id_expiration_ms,
        "tiering.assembler": values["diskless.tiering.assembler"],
    }


def produce_limits(values: Mapping[str, Value], settings: BrokerSettings) -> ProduceLimits:
    """A topic's rules for produced batches."""
    return ProduceLimits(
        message_bytes_max=values["max.message.bytes"],
        compression_type=values["compression.type"],
        timestamp_type=values["message.timestamp.type"],
        timestamp_before_max_ms=values["message.timestamp.before.max.ms"],
        timestamp_after_max_ms=values["message.timestamp.after.max.ms"],
        compacted="compact" in values["cleanup.policy"],
        gzip_level=values["compression.gzip.level"],
        lz4_level=values["compression.lz4.level"],
        zstd_level=values["compression.zstd.level"],
        full=settings.topics.produce_validation == "full",
    )


# Validation ---------------------------------------------------------------------------------


def validate_topic_configs(
    overrides: Mapping[str, str | None],
    settings: BrokerSettings,
    *,
    existing: Mapping[str, str] | None = None,
    system: bool = False,
) -> None:
    """Check all overrides a topic would have, given the ``existing`` ones; KafkaError(
    INVALID_CONFIG) with Kafka's message. An internal topic is never diskless by default.
    """
    texts = not_null(overrides, "topic")
    for name in texts:
        if name not in TOPIC:
            raise invalid_config(f"Unknown topic config name: {name}")
    values = {**topic_defaults(settings), **parsed(TOPIC, texts)}
    _check_compaction_lag(values)
    if not system or "diskless.enable" in texts:
        _check_diskless(values)
    try:
        check_remote(values, existing or {}, system=settings.tiered.enabled)
    except ConfigError as error:
        raise invalid_config(str(error)) from error


def _check_diskless(values: Mapping[str, Value]) -> None:
    if not values["diskless.enable"]:
        return
    if "compact" in values["cleanup.policy"]:
        raise invalid_config(
            "A diskless topic cannot be compacted yet: cleanup.policy must be delete."
        )


def _check_compaction_lag(values: Mapping[str, Value]) -> None:
    low, high = values["min.compaction.lag.ms"], values["max.compaction.lag.ms"]
    if low > high:
        raise invalid_config(
            f"conflict topic config setting min.compaction.lag.ms ({low})"
            f" > max.compaction.lag.ms ({high})"
        )


_KINDS: Final = ("consumer", "share", "streams")
_BOUNDED: Final = ("heartbeat.interval.ms", "session.timeout.ms", "assignment.interval.ms")
_SHARE_BOUNDED: Final = (
    "record.lock.duration.ms",
    "delivery.count.limit",
    "partition.max.record.locks",
)


def validate_group_configs(overrides: Mapping[str, str | None], settings: BrokerSettings) -> None:
    """Check all overrides a group would have; KafkaError(INVALID_CONFIG) with Kafka's message."""
    texts = not_null(overrides, "group")
    for name in texts:
        if name not in GROUP:
            raise invalid_config(f"Unknown group config name: {name}")
    values = {**group_values({}, settings), **parsed(GROUP, texts)}
    for kind in _KINDS:
        _check_bounds(kind, values, texts, settings)
    standby = "group.streams.max.standby.replicas"
    if values["streams.num.standby.replicas"] > settings[standby]:
        raise invalid_config(
            f"streams.num.standby.replicas must be less than or equal to {standby}"
        )
    for kind in _KINDS:
        beat, session = f"{kind}.heartbeat.interval.ms", f"{kind}.session.timeout.ms"
        if values[beat] >= values[session]:
            raise invalid_config(f"{session} must be greater than {beat}")


def _check_bounds(
    kind: str, values: Mapping[str, Value], texts: Mapping[str, str], settings: BrokerSettings
) -> None:
    for name in _BOUNDED if kind != "share" else (*_BOUNDED, *_SHARE_BOUNDED):
        own = f"{kind}.{name}"
        if name == "assignment.interval.ms" and own not in texts:
            continue  # the broker's default was checked with the broker's settings
        low, high = f"group.{kind}.min.{name}", f"group.{kind}.max.{name}"
        if values[own] < settings[low]:
            raise invalid_config(f"{own} must be greater than or equal to {low}")
        if values[own] > settings[high]:
            raise invalid_config(f"{own} must be less than or equal to {high}")


def invalid_config(message: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_CONFIG, message)


def not_null(overrides: Mapping[str, str | None], kind: str) -> dict[str, str]:
    """The overrides, none of which may be null or too long for the metadata log."""
    nulls = [name for name, text in overrides.items() if text is None]
    if nulls:
        raise invalid_config(f"Null value not supported for {kind} configs: {','.join(nulls)}")
    texts = {name: text for name, text in overrides.items() if text is not None}
    if any(len(text) > CONFIG_VALUE_CHARACTERS_MAX for text in texts.values()):
        raise invalid_config(
            "The configuration value cannot be added because it exceeds the maximum value size of "
            f"{CONFIG_VALUE_CHARACTERS_MAX} bytes."
        )
    return texts


def parsed(schema: Schema, texts: Mapping[str, str]) -> dict[str, Value]:
    """Typed values of known settings; KafkaError(INVALID_CONFIG) for the first invalid one."""
    try:
        return {name: schema[name].parse(text) for name, text in texts.items()}
    except ConfigError as error:
        raise invalid_config(str(error)) from error
