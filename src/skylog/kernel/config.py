"""How settings are defined, parsed and formatted: Kafka's rules.

A ``ConfigKey`` defines one setting; a ``Schema`` is a set of keys. Text is converted to a typed
value only here; anything unreadable or not allowed raises a ``ConfigError`` with Kafka's message,
because clients see these messages too.
"""

from __future__ import annotations

import difflib
import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from enum import Enum, IntEnum
from typing import Any, Final

from skylog.kernel.errors import ConfigError
from skylog.kernel.secret import Secret
from skylog.kernel.validators import Validator, invalid

Value = Any  # bool, int, float, str, tuple[str, ...], Secret or None, as the key's type says


class ConfigType(IntEnum):
    """A setting's type; the numbers are those of DescribeConfigs."""

    BOOLEAN = 1
    STRING = 2
    INT = 3
    SHORT = 4
    LONG = 5
    DOUBLE = 6
    LIST = 7
    CLASS = 8
    PASSWORD = 9


class ConfigSource(IntEnum):
    """Where a value comes from; the numbers are those of DescribeConfigs."""

    TOPIC_CONFIG = 1
    DYNAMIC_BROKER_CONFIG = 2
    DYNAMIC_DEFAULT_BROKER_CONFIG = 3
    STATIC_BROKER_CONFIG = 4
    DEFAULT_CONFIG = 5
    DYNAMIC_BROKER_LOGGER_CONFIG = 6
    CLIENT_METRICS_CONFIG = 7
    GROUP_CONFIG = 8


class Importance(Enum):
    HIGH = "high"
    MEDIUM = "medium"
    LOW = "low"


class Dynamic(Enum):
    """Whether a broker setting may change at run time, and for which brokers."""

    READ_ONLY = "read-only"
    PER_BROKER = "per-broker"
    CLUSTER_WIDE = "cluster-wide"


class Operation(IntEnum):
    """What IncrementalAlterConfigs does with a setting; lists can be appended to and subtracted
    from."""

    SET = 0
    DELETE = 1
    APPEND = 2
    SUBTRACT = 3


def changed_list(text: str, operation: int, given: str) -> str:
    """The text of a list after APPEND, which adds missing entries, or SUBTRACT."""
    entries = [entry for entry in text.split(",") if entry]
    if operation == Operation.APPEND:
        known = set(entries)
        return ",".join([*entries, *(e for e in dict.fromkeys(given.split(",")) if e not in known)])
    gone, left = Counter(given.split(",")), []
    for entry in entries:
        if gone[entry] > 0:
            gone[entry] -= 1
        else:
            left.append(entry)
    return ",".join(left)


@dataclass(frozen=True, slots=True)
class ConfigKey:
    """One setting. ``doc`` is empty when skylog accepts the setting without using it."""

    name: str
    type: ConfigType
    default: Value
    validator: Validator | None = None
    importance: Importance = Importance.MEDIUM
    doc: str = ""
    dynamic: Dynamic = Dynamic.READ_ONLY
    internal: bool = False

    @property
    def sensitive(self) -> bool:
        return self.type is ConfigType.PASSWORD

    def parse(self, text: str) -> Value:
        """The typed value that ``text`` means; raises ConfigError."""
        value = parse(self.name, text, self.type)
        if self.validator is not None:
            value = self.validator.distinct(value)
            self.validator.check(self.name, value)
        return value

    def format(self, value: Value) -> str | None:
        """The text that parses to ``value``."""
        return None if value is None else format_value(value)

    @property
    def allowed(self) -> str:
        """The allowed values, in readable form."""
        kind = _ALLOWED[self.type]
        return f"{kind}, {self.validator}" if self.validator and str(self.validator) else kind


_ALLOWED: Final = {
    ConfigType.BOOLEAN: "true or false",
    ConfigType.STRING: "text",
    ConfigType.INT: "a 32-bit integer",
    ConfigType.SHORT: "a 16-bit integer",
    ConfigType.LONG: "a 64-bit integer",
    ConfigType.DOUBLE: "a number",
    ConfigType.LIST: "a comma-separated list",
    ConfigType.CLASS: "a class name",
    ConfigType.PASSWORD: "text",
}
_BITS: Final = {ConfigType.INT: 32, ConfigType.SHORT: 16, ConfigType.LONG: 64}
_INTEGER: Final = re.compile(r"[+-]?[0-9]+")
_DOUBLE: Final = re.compile(
    r"([+-]?(?:NaN|Infinity|(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?))[dDfF]?"
)
_COMMA: Final = re.compile(r"[ \t\n\x0b\f\r]*,[ \t\n\x0b\f\r]*")
_BLANK: Final = "".join(map(chr, range(33)))  # what Java's trim removes


def is_true(text: str | None) -> bool:
    """Whether the text of a boolean, which is kept as it was given, says true."""
    return text is not None and text.strip(_BLANK).lower() == "true"


def parse(name: str, text: str, kind: ConfigType) -> Value:
    """Parse ``text`` as Kafka does: trimmed, lists split at commas, numbers range-checked."""
    trimmed = text.strip(_BLANK)
    match kind:
        case ConfigType.BOOLEAN:
            if trimmed.lower() not in ("true", "false"):
                raise invalid(name, text, "Expected value to be either true or false")
            return trimmed.lower() == "true"
        case ConfigType.INT | ConfigType.SHORT | ConfigType.LONG:
            return _parse_integer(name, text, trimmed, kind)
        case ConfigType.DOUBLE:
            match_ = _DOUBLE.fullmatch(trimmed)
            if match_ is None:
                raise invalid(name, text, "Not a number of type DOUBLE")
            return float(match_[1])
        case ConfigType.LIST:
            return tuple(_COMMA.split(trimmed)) if trimmed else ()
        case ConfigType.PASSWORD:
            return Secret(trimmed)
        case _:
            return trimmed


def _parse_integer(name: str, text: str, trimmed: str, kind: ConfigType) -> int:
    limit = 1 << (_BITS[kind] - 1)
    # 20 characters hold any 64-bit number: int() must not parse megabytes of digits.
    if len(trimmed) <= 64 and _INTEGER.fullmatch(trimmed) and -limit <= int(trimmed) < limit:
        return int(trimmed)
    raise invalid(name, text, f"Not a number of type {kind.name}")


def format_value(value: Value) -> str:
    """A typed value as text, in Java's notation."""
    match value:
        case bool():
            return "true" if value else "false"
        case float():
            return format_double(value)
        case tuple():
            return ",".join(value)
        case Secret():
            return value.reveal()
        case _:
            return str(value)


def format_double(value: float) -> str:
    """Java's ``Double.toString``: 0.5, 1.0E10, NaN, Infinity."""
    if not math.isfinite(value):
        return {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}[repr(value)]
    if value == 0 or 1e-3 <= abs(value) < 1e7:
        return repr(value)
    sign, digits, exponent = Decimal(repr(value)).as_tuple()
    shown = "".join(map(str, digits)).rstrip("0")
    scale = len(digits) - 1 + int(exponent)
    return f"{'-' if sign else ''}{shown[0]}.{shown[1:] or '0'}E{scale}"


class Schema(Mapping[str, ConfigKey]):
    """A named set of settings."""

    def __init__(self, keys: Iterable[ConfigKey]) -> None:
        self._keys = {key.name: key for key in sorted(keys, key=lambda key: key.name)}

    def __getitem__(self, name: str) -> ConfigKey:
        return self._keys[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._keys)

    def __len__(self) -> int:
        return len(self._keys)

    def nearest(self, name: str) -> list[str]:
        """Known names similar to a mistyped one."""
        return difflib.get_close_matches(name[:200], self._keys, n=3, cutoff=0.6)

    def unknown(self, name: str, value: str, where: str) -> ConfigError:
        near = ", ".join(self.nearest(name))
        hint = f"similar known names: {near}" if near else "no known name is similar"
        return ConfigError(f"Unknown setting {name}={value} ({where}): {hint}")
