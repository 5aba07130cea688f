"""Validators of settings, in Kafka's notation and with Kafka's messages.

``validator("[1,...,9] or -1")`` parses the notation; ``str`` of a validator formats it.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, Final

from skylog.kernel.errors import ConfigError


def invalid(name: str, value: object, why: str) -> ConfigError:
    """Kafka's message for an invalid value: a list prints as in Java."""
    shown = f"[{', '.join(value)}]" if isinstance(value, tuple) else value
    return ConfigError(f"Invalid value {shown} for configuration {name}: {why}")


class Validator(ABC):
    """Checks whether a typed value is allowed. An absent (None) value is not checked."""

    notation: ClassVar[str] = ""

    @abstractmethod
    def check(self, name: str, value: Any) -> None: ...

    def distinct(self, value: Any) -> Any:
        """The value as it is stored: lists of distinct values lose duplicates."""
        return value

    def __str__(self) -> str:
        return self.notation


@dataclass(frozen=True)
class Range(Validator):
    """A number within bounds, or one more allowed number (``also``)."""

    low: float | None = None
    high: float | None = None
    also: int | None = None

    def check(self, name: str, value: Any) -> None:
        if value is None or (self.also is not None and value == self.also):
            return
        below = self.low is not None and not value >= self.low  # NaN is below everything
        above = self.high is not None and value > self.high
        if self.also is not None and (below or above):
            why = f"Value must be between {self.low} and {self.high} or equal to {self.also}"
            raise invalid(name, value, why)
        if below:
            raise invalid(name, value, f"Value must be at least {self.low}")
        if above:
            raise invalid(name, value, f"Value must be no more than {self.high}")

    def __str__(self) -> str:
        low = "" if self.low is None else f"{self.low},"
        high = "" if self.high is None else f",{self.high}"
        return f"[{low}...{high}]" + ("" if self.also is None else f" or {self.also}")


@dataclass(frozen=True)
class OneOf(Validator):
    """One of several words."""

    words: tuple[str, ...]
    any_case: bool = False

    def check(self, name: str, value: Any) -> None:
        if self.any_case:
            if str(value).upper() not in {word.upper() for word in self.words}:
                raise invalid(
                    name, value, f"String must be one of (case insensitive): {self._list()}"
                )
        elif value not in self.words:
            raise invalid(name, value, f"String must be one of: {self._list()}")

    def _list(self) -> str:
        return ", ".join(self.words)

    def __str__(self) -> str:
        return f"{'(case insensitive) ' if self.any_case else ''}[{self._list()}]"


@dataclass(frozen=True)
class ListOf(Validator):
    """A list of distinct, non-empty words, optionally from a given set."""

    words: tuple[str, ...] = ()
    empty_allowed: bool = True

    def distinct(self, value: Any) -> Any:
        return tuple(dict.fromkeys(value))

    def check(self, name: str, value: Any) -> None:
        if value is None:
            return
        if not value and not self.empty_allowed:
            valid = f"[{', '.join(self.words)}]" if self.words else "any non-empty value"
            raise ConfigError(
                f"Configuration '{name}' must not be empty. Valid values include: {valid}"
            )
        for word in value:
            if not word:
                raise ConfigError(f"Configuration '{name}' values must not be empty.")
            if self.words:
                OneOf(self.words).check(name, word)

    def __str__(self) -> str:
        kind = "list" if self.empty_allowed else "non-empty list"
        return f"{kind} of [{', '.join(self.words)}]" if self.words else kind


class NonEmptyString(Validator):
    notation = "non-empty string"

    def check(self, name: str, value: Any) -> None:
        if value == "":
            raise invalid(name, value, "String must be non-empty")


class NonNullString(Validator):
    notation = "non-null string"

    def check(self, name: str, value: Any) -> None:
        """Text is never null; only the notation is Kafka's."""


class ThrottledReplicas(Validator):
    notation = "list of partition:broker or *"

    def check(self, name: str, value: Any) -> None:
        if value != ("*",) and not all(re.fullmatch("([0-9]+:[0-9]+)?", item) for item in value):
            why = (
                f"{name} must be the literal '*' or a list of replicas in the following format: "
                "[partitionId]:[brokerId],[partitionId]:[brokerId],..."
            )
            raise invalid(name, value, why)


class OffsetReset(Validator):
    notation = "[latest, earliest, by_duration:PnDTnHnMn.nS]"
    _DURATION: ClassVar = re.compile(
        r"by_duration:P(?!$)([0-9]+D)?(T(?!$)([0-9]+H)?([0-9]+M)?([0-9]+(\.[0-9]+)?S)?)?"
    )

    def check(self, name: str, value: Any) -> None:
        if value not in ("latest", "earliest") and not self._DURATION.fullmatch(value):
            why = (
                f"Invalid value `{value}` for configuration {name}. The value must be either "
                "'earliest', 'latest' or of the format 'by_duration:<PnDTnHnMn.nS>'."
            )
            raise invalid(name, value, why)


HOST_PORT: Final = re.compile(r"(?:\[([0-9a-fA-F:.%]+)\]|([0-9a-zA-Z\-._%]+)):([0-9]{1,5})")


def parse_host_port(text: str) -> tuple[str, int] | None:
    """``host:port`` or ``[ipv6]:port`` with a port up to 65535, else None."""
    found = HOST_PORT.fullmatch(text)
    if found is None or int(found[3]) > 65_535:
        return None
    return found[1] or found[2], int(found[3])


class HostPorts(Validator):
    notation = "list of host:port"

    def check(self, name: str, value: Any) -> None:
        for entry in value:
            if parse_host_port(entry) is None:
                raise ConfigError(
                    f"Failed to parse host and port from {entry} for the configuration {name}. "
                    'Each entry should be in the form "{host}:{port}"'
                )


class Voters(Validator):
    notation = "list of id@host:port"

    def check(self, name: str, value: Any) -> None:
        for entry in value:
            identity, separator, address = entry.partition("@")
            if not separator or parse_host_port(address) is None:
                raise ConfigError(
                    f"Invalid configuration value {entry} for {name}. "
                    "Each entry should be in the form `{id}@{host}:{port}`."
                )
            if not re.fullmatch("[0-9]{1,10}", identity):
                raise ConfigError(
                    f"Failed to parse voter ID as an integer from {identity} for {name}."
                )


_SIMPLE: Final[dict[str, Callable[[], Validator]]] = {
    kind.notation: kind
    for kind in (NonEmptyString, NonNullString, ThrottledReplicas, OffsetReset, HostPorts, Voters)
}
_RANGE: Final = re.compile(r"\[(?:([-0-9.]+),)?\.\.\.(?:,([-0-9.]+))?\](?: or (-?[0-9]+))?")
_WORDS: Final = re.compile(r"(?:(list|non-empty list) of |(\(case insensitive\)) )?\[(.*)\]")


def validator(notation: str) -> Validator | None:
    """The validator that Kafka's notation describes; None for the empty notation."""
    if not notation:
        return None
    if notation in _SIMPLE:
        return _SIMPLE[notation]()
    if notation in ("list", "non-empty list"):
        return ListOf(empty_allowed=notation == "list")
    if found := _RANGE.fullmatch(notation):
        return Range(_number(found[1]), _number(found[2]), _whole(found[3]))
    if found := _WORDS.fullmatch(notation):
        words = tuple(found[3].split(", "))
        if found[1]:
            return ListOf(words, empty_allowed=found[1] == "list")
        return OneOf(words, any_case=bool(found[2]))
    raise ValueError(f"unknown notation of a validator: {notation}")


def _number(text: str | None) -> float | None:
    if text is None:
        return None
    return float(text) if "." in text else int(text)


def _whole(text: str | None) -> int | None:
    return None if text is None else int(text)
