"""Random values for any message class and version, limits included."""

from __future__ import annotations

import importlib
import pkgutil
import random
from collections.abc import Callable, Iterator
from typing import Any

from skylog.kernel.ids import ZERO_UUID, Uuid
from skylog.wire import messages
from skylog.wire.schema import Field, Message, Struct

INTEGERS = {
    "int8": (-(2**7), 2**7 - 1),
    "int16": (-(2**15), 2**15 - 1),
    "uint16": (0, 2**16 - 1),
    "int32": (-(2**31), 2**31 - 1),
    "uint32": (0, 2**32 - 1),
    "int64": (-(2**63), 2**63 - 1),
}
STRINGS = ("", "a", "orders", "tópico", "主题", "x" * 126, "y" * 127, "z" * 128, "w" * 20_000)
# A hook: (owner, field) -> a function that draws values, or None for the default.
Special = Callable[[type[Struct], Field], Callable[[random.Random], Any] | None]


def all_messages() -> list[type[Message]]:
    found: list[type[Message]] = []
    for module in pkgutil.iter_modules(messages.__path__):
        names = vars(importlib.import_module(f"{messages.__name__}.{module.name}"))
        classes = [cls for cls in names.values() if isinstance(cls, type)]
        found += [cls for cls in classes if issubclass(cls, Message) and cls is not Message]
    return sorted(found, key=lambda cls: cls.__name__)


def all_versions() -> Iterator[tuple[type[Message], int]]:
    for cls in all_messages():
        for version in range(cls.VERSIONS.low, cls.VERSIONS.high + 1):
            yield cls, version


def no_special(owner: type[Struct], field: Field) -> None:
    return None


def make(cls: type[Struct], version: int, rng: random.Random, special: Special = no_special) -> Any:
    """An instance with random values in all fields that the version carries."""
    out = cls()
    for field in cls.FIELDS:
        if version in field.versions:
            setattr(out, field.name, _value(cls, field, version, rng, special))
    return out


def _value(
    owner: type[Struct], field: Field, version: int, rng: random.Random, special: Special
) -> Any:
    if version in field.nullable and rng.random() < 0.25:
        return None
    if version in field.tagged and rng.random() < 0.4:
        return getattr(owner(), field.name)
    if field.array:
        count = rng.choice((0, 1, 1, 2, 3))
        if field.type in INTEGERS and rng.random() < 0.1:
            count = 300
        return [_element(owner, field, version, rng, special) for _ in range(count)]
    return _element(owner, field, version, rng, special)


def _element(
    owner: type[Struct], field: Field, version: int, rng: random.Random, special: Special
) -> Any:
    maker = special(owner, field)
    if maker is not None:
        return maker(rng)
    if isinstance(field.type, type):
        return make(field.type, version, rng, special)
    return primitive(field.type, rng)


def primitive(kind: str, rng: random.Random) -> Any:
    if kind in INTEGERS:
        low, high = INTEGERS[kind]
        return rng.choice((low, high, 0, 1, rng.randint(low, high)))
    if kind == "bool":
        return rng.random() < 0.5
    if kind == "float64":
        return rng.choice((0.0, -1.5, 1e300, rng.uniform(-1e9, 1e9)))
    if kind == "string":
        return rng.choice(STRINGS[:-1]) if rng.random() < 0.99 else STRINGS[-1]
    if kind == "uuid":
        return rng.choice((ZERO_UUID, Uuid(rng.randbytes(16))))
    return rng.randbytes(rng.choice((0, 1, 61, 127, 128, 3_000)))
