"""Broker settings of the same meaning, and the source of a value among several layers."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from skylog.kernel.config import ConfigKey, ConfigSource, Schema
from skylog.kernel.settings.definitions import BROKER_QUOTA, KAFKA_BROKER, OURS

LISTENER_SETTING: Final = re.compile(r"listener\.name\.[^.]*\.(.*)")
# These follow a SASL mechanism: listener.name.<listener>.<mechanism>.<setting>.
_BY_MECHANISM: Final = (
    "sasl.jaas.config",
    "sasl.login.callback.handler.class",
    "sasl.login.class",
    "sasl.server.callback.handler.class",
    "connections.max.reauth.ms",
)
_TOGETHER: Final = (
    ("log.roll.ms", "log.roll.hours"),
    ("log.roll.jitter.ms", "log.roll.jitter.hours"),
    ("log.retention.ms", "log.retention.minutes", "log.retention.hours"),
)
_FLUSH: Final = ("log.flush.interval.ms", "log.flush.scheduler.interval.ms")

DESCRIBED: Final = Schema((*KAFKA_BROKER.values(), *BROKER_QUOTA.values(), *OURS.values()))


@dataclass(frozen=True, slots=True)
class Layers:
    """The texts set for a broker, strongest first; ``static`` is server.properties."""

    dynamic_broker: Mapping[str, str] = field(default_factory=dict)
    dynamic_default: Mapping[str, str] = field(default_factory=dict)
    static: Mapping[str, str] = field(default_factory=dict)

    def named(self) -> tuple[tuple[ConfigSource, Mapping[str, str]], ...]:
        return (
            (ConfigSource.DYNAMIC_BROKER_CONFIG, self.dynamic_broker),
            (ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG, self.dynamic_default),
            (ConfigSource.STATIC_BROKER_CONFIG, self.static),
        )

    def overlaid(self) -> dict[str, str]:
        """The effective value. A dynamic setting overrides all static ones of the same meaning."""
        texts = dict(self.static)
        for layer in (self.dynamic_default, self.dynamic_broker):
            for name, text in layer.items():
                for other in broker_synonyms(name):
                    texts.pop(other, None)
                texts[name] = text
        return texts


def broker_synonyms(name: str) -> tuple[str, ...]:
    """Settings of the same meaning, strongest first; by default only the setting itself."""
    for names in _TOGETHER:
        if name in names:
            return names
    return _FLUSH if name == _FLUSH[0] else (name,)


def synonyms_of_listener(name: str) -> tuple[str, ...]:
    """Like ``broker_synonyms``; for a listener's setting also the one it overrides."""
    found = LISTENER_SETTING.fullmatch(name)
    if found is None:
        return broker_synonyms(name)
    base = next((known for known in _BY_MECHANISM if found[1].endswith(known)), found[1])
    return (name, base)


def broker_key(name: str) -> ConfigKey | None:
    """The definition of a broker setting, including a listener's setting or a quota."""
    for candidate in (name, *synonyms_of_listener(name)):
        if candidate in DESCRIBED:
            return DESCRIBED[candidate]
    return None
