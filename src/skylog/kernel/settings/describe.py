"""The response of DescribeConfigs: each setting's value, its source, and its synonyms.

Sensitive values are never returned, and neither are values of settings whose type is unknown: they
could be a plugin's password.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Final

from skylog.kernel.config import ConfigKey, ConfigSource, Dynamic, Value, format_value
from skylog.kernel.settings.broker import BrokerSettings
from skylog.kernel.settings.definitions import (
    CLIENT_METRICS,
    GROUP,
    KAFKA_BROKER,
    OURS,
    TOPIC,
)
from skylog.kernel.settings.synonyms import Layers, broker_key, synonyms_of_listener
from skylog.kernel.settings.topic_facts import GROUP_SYNONYMS, TOPIC_SYNONYMS
from skylog.kernel.settings.topics import group_values, topic_values

UNKNOWN_TYPE = 0
_DEFINED: Final = {**KAFKA_BROKER, **OURS}


@dataclass(frozen=True, slots=True)
class SynonymEntry:
    """A setting that would apply if the ones before it were not set."""

    name: str
    value: str | None
    source: ConfigSource


@dataclass(frozen=True, slots=True)
class ConfigEntry:
    """One setting as DescribeConfigs shows it; ``type`` is a ConfigType number, 0 for unknown."""

    name: str
    value: str | None
    source: ConfigSource
    type: int
    sensitive: bool = False
    read_only: bool = False
    documentation: str = ""
    synonyms: tuple[SynonymEntry, ...] = ()


Names = Collection[str] | None  # None is all


def describe_topic_configs(
    overrides: Mapping[str, str], settings: BrokerSettings, layers: Layers, names: Names = None
) -> list[ConfigEntry]:
    """A topic's settings. ``settings`` are the current ones, dynamic layers applied."""
    values = topic_values(overrides, settings)
    entries = []
    for name, key in TOPIC.items():
        if not _wanted(name, names) or (key.internal and name not in overrides):
            continue
        synonyms = (
            _broker_synonym_entries(TOPIC_SYNONYMS[name][0].name, layers)
            if (name in TOPIC_SYNONYMS)
            else ()
        )
        entries.append(_entry(key, values[name], overrides, ConfigSource.TOPIC_CONFIG, synonyms))
    return entries


def describe_group_configs(
    overrides: Mapping[str, str], settings: BrokerSettings, layers: Layers, names: Names = None
) -> list[ConfigEntry]:
    """A group's settings."""
    values = group_values(overrides, settings)
    entries = []
    for name, key in GROUP.items():
        if not _wanted(name, names):
            continue
        synonyms: tuple[SynonymEntry, ...]
        if name in GROUP_SYNONYMS:
            synonyms = _broker_synonym_entries(GROUP_SYNONYMS[name], layers)
        else:
            default = SynonymEntry(name, key.format(key.default), ConfigSource.DEFAULT_CONFIG)
            synonyms = (default,)
        entries.append(_entry(key, values[name], overrides, ConfigSource.GROUP_CONFIG, synonyms))
    return entries


def describe_client_metrics_configs(
    overrides: Mapping[str, str], names: Names = None
) -> list[ConfigEntry]:
    """A client metrics subscription's settings."""
    return [
        _entry(
            key,
            key.parse(overrides[name]) if name in overrides else key.default,
            overrides,
            ConfigSource.CLIENT_METRICS_CONFIG,
            (),
        )
        for name, key in CLIENT_METRICS.items()
        if _wanted(name, names)
    ]


def describe_logger_configs(levels: Mapping[str, str], names: Names = None) -> list[ConfigEntry]:
    """Loggers and their levels; Kafka gives them no type."""
    return [
        ConfigEntry(name, level, ConfigSource.DYNAMIC_BROKER_LOGGER_CONFIG, UNKNOWN_TYPE)
        for name, level in levels.items()
        if _wanted(name, names)
    ]


def describe_broker_configs(
    settings: BrokerSettings, layers: Layers, names: Names = None
) -> list[ConfigEntry]:
    """This broker's settings: all that Kafka or we define, and others that were set."""
    texts = layers.overlaid()
    shown = {name: settings[name] for name, key in _DEFINED.items() if not key.internal}
    extra = {name: text for name, text in texts.items() if name not in shown}
    return [
        _broker_entry(name, value, layers, default_only=False)
        for name, value in sorted({**shown, **extra}.items())
        if _wanted(name, names)
    ]


def describe_default_broker_configs(layers: Layers, names: Names = None) -> list[ConfigEntry]:
    """The cluster's settings for all brokers."""
    return [
        _broker_entry(name, text, layers, default_only=True)
        for name, text in sorted(layers.dynamic_default.items())
        if _wanted(name, names)
    ]


def _wanted(name: str, names: Names) -> bool:
    return not names or name in names


def _entry(
    key: ConfigKey,
    value: Value,
    overrides: Mapping[str, str],
    own: ConfigSource,
    synonyms: tuple[SynonymEntry, ...],
) -> ConfigEntry:
    text = None if key.sensitive else key.format(value)
    if key.name in overrides:
        synonyms = (SynonymEntry(key.name, text, own), *synonyms)
    return ConfigEntry(
        name=key.name,
        value=text,
        source=synonyms[0].source if synonyms else ConfigSource.DEFAULT_CONFIG,
        type=key.type,
        sensitive=key.sensitive,
        documentation=key.doc,
        synonyms=synonyms,
    )


def _broker_entry(name: str, value: Value, layers: Layers, *, default_only: bool) -> ConfigEntry:
    key = broker_key(name)
    sensitive = key is None or key.sensitive
    synonyms = _broker_synonym_entries(name, layers)
    if default_only:
        dynamic_default = ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG
        synonyms = tuple(entry for entry in synonyms if entry.source is dynamic_default)
    return ConfigEntry(
        name=name,
        value=None if sensitive or value is None else format_value(value),
        source=synonyms[0].source if synonyms else ConfigSource.DEFAULT_CONFIG,
        type=UNKNOWN_TYPE if key is None else key.type,
        sensitive=sensitive,
        read_only=key is None or key.name != name or key.dynamic is Dynamic.READ_ONLY,
        documentation="" if key is None else key.doc,
        synonyms=synonyms,
    )


def _broker_synonym_entries(name: str, layers: Layers) -> tuple[SynonymEntry, ...]:
    """Every layer that sets the name or a synonym, strongest first, defaults last.

    Entries before the first one of the name itself are dropped, as in Kafka: a listener's override
    does not explain the value of its base setting.
    """
    key = broker_key(name)
    hidden = key is None or key.sensitive
    names = synonyms_of_listener(name)
    found = [
        SynonymEntry(other, None if hidden else layer[other], source)
        for source, layer in layers.named()
        for other in names
        if other in layer
    ]
    for other in names:
        known = _DEFINED.get(other)
        if known is not None and known.default is not None:
            text = None if hidden else format_value(known.default)
            found.append(SynonymEntry(other, text, ConfigSource.DEFAULT_CONFIG))
    first = next((at for at, entry in enumerate(found) if entry.name == name), len(found))
    return tuple(found[first:])
