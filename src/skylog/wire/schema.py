"""The metadata of message classes, used by the generated classes in ``messages/``.

A generated class covers all versions of its message, as Kafka's own data classes do. ``FIELDS``
defines which fields exist on the wire in a version; ``compile.py`` turns that into straight-line
readers and writers, one per (class, version).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Literal

MessageType = Literal[
    "request",
    "response",
    "header",
    "data",
    "metadata",
    "coordinator-key",
    "coordinator-value",
    "diskless-record",
    "remote-log-record",
    "struct",
]


@dataclass(frozen=True, slots=True)
class Versions:
    """An inclusive range of versions; ``NEVER`` is the empty one."""

    low: int
    high: int

    def __contains__(self, version: int) -> bool:
        return self.low <= version <= self.high


NEVER = Versions(0, -1)
LAST = 32767


@dataclass(frozen=True, slots=True)
class Field:
    """One field of a message: ``type`` is a primitive's name or, for a struct, its class."""

    name: str
    type: str | type[Struct]
    versions: Versions
    default: Any = None
    array: bool = False
    nullable: Versions = NEVER
    tag: int | None = None
    tagged: Versions = NEVER
    ignorable: bool = False
    # The request header's client id keeps its old two-byte length in flexible versions.
    never_flexible: bool = False


# Marks a default that must be created for every instance.
UNSET: Any = object()


class Struct:
    """Base of every generated class: compares and prints its fields, like a dataclass."""

    __slots__: tuple[str, ...] = ()
    FIELDS: ClassVar[tuple[Field, ...]] = ()
    __hash__ = None  # type: ignore[assignment]

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        return all(getattr(self, name) == getattr(other, name) for name in self.__slots__)

    def __repr__(self) -> str:
        values = ", ".join(f"{name}={getattr(self, name)!r}" for name in self.__slots__)
        return f"{type(self).__name__}({values})"


class Message(Struct):
    """A whole message: a struct with its own versions."""

    __slots__ = ()
    TYPE: ClassVar[MessageType] = "data"
    API_KEY: ClassVar[int] = -1
    VERSIONS: ClassVar[Versions] = NEVER
    FLEXIBLE: ClassVar[Versions] = NEVER
    LISTENERS: ClassVar[tuple[str, ...]] = ()
    # Kafka does not offer its newest version to clients while this is set.
    LATEST_UNSTABLE: ClassVar[bool] = False
