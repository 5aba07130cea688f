"""Requests with very long lists: each list in turn, of different elements or of one repeated."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

from skylog.kernel.ids import Uuid
from skylog.wire.schema import Message

Path = tuple[str | int, ...]


def wide_requests(request: Message, elements: int) -> Iterator[Message]:
    """The request with about ``elements`` elements in one of its lists, for each list."""
    for path in _lists(request, ()):
        for distinct in (True, False):
            yield _widened(request, path, elements, distinct)


def _lists(value: Any, path: Path) -> Iterator[Path]:
    """Paths of the lists that are not empty."""
    for field in value.FIELDS:
        inner = getattr(value, field.name)
        if field.array and inner:
            yield (*path, field.name)
            if hasattr(inner[0], "FIELDS"):
                yield from _lists(inner[0], (*path, field.name, 0))
        elif hasattr(inner, "FIELDS"):
            yield from _lists(inner, (*path, field.name))


def _widened(request: Message, path: Path, elements: int, distinct: bool) -> Message:
    wide = copy.deepcopy(request)
    holder: Any = wide
    for step in path[:-1]:
        holder = holder[step] if isinstance(step, int) else getattr(holder, step)
    name = str(path[-1])
    (first, *_) = getattr(holder, name)
    count = elements // (1 + _size(first))
    repeated = [_another(first, n) if distinct else first for n in range(count)]
    setattr(holder, name, repeated)
    return wide


def _size(value: Any) -> int:
    """The number of elements in nested lists."""
    if not hasattr(value, "FIELDS"):
        return 0
    lists = [getattr(value, field.name) or () for field in value.FIELDS if field.array]
    return sum(len(one) + sum(map(_size, one)) for one in lists)


def _another(value: Any, number: int) -> Any:
    """The same with another name, or another number if it has no name."""
    if isinstance(value, str):
        return f"{value}{number}"
    if isinstance(value, int):
        return number
    if not hasattr(value, "FIELDS"):
        return value
    other = copy.copy(value)
    for kind, change in (("string", f"-{number}"), ("uuid", None), ("int32", number)):
        for field in value.FIELDS:
            if field.type != kind or field.array or getattr(value, field.name) is None:
                continue
            if isinstance(change, str):
                setattr(other, field.name, getattr(value, field.name) + change)
            elif kind == "uuid":
                setattr(other, field.name, Uuid(number.to_bytes(16, "big")))
            else:
                setattr(other, field.name, number)
            if kind != "uuid":
                return other
    return other
