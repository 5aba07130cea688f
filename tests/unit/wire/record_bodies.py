"""Handmade bodies of records, and both walkers behind one interface."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from skylog.wire import walker, walker_reference
from skylog.wire.records import varint


class Walker(NamedTuple):
    walk: Callable[..., walker_reference.Walk]
    locate: Callable[..., list[walker_reference.Location]]
    find_faults: Callable[..., list[Any]]
    find_timestamp: Callable[..., tuple[int, int] | None]
    is_plain: Callable[..., bool]


PYTHON = Walker(
    walker_reference.walk_python,
    walker_reference.locate_python,
    walker_reference.find_faults_python,
    walker_reference.find_timestamp_python,
    walker_reference.is_plain_python,
)
WALKERS = {"python": PYTHON}
if walker.NATIVE is not None:
    native = walker.NATIVE
    WALKERS["native"] = Walker(
        native.walk, native.locate, native.find_faults, native.find_timestamp, native.is_plain
    )


def record(
    timestamp_delta: int,
    offset_delta: int,
    key: bytes | None,
    value: bytes | None = b"v",
    headers: bytes = b"\0",
) -> bytes:
    """One record; ``headers`` are the bytes from their count on."""
    parts = [b"\0", varint(timestamp_delta), varint(offset_delta)]
    for part in (key, value):
        parts += [varint(-1)] if part is None else [varint(len(part)), part]
    fields = b"".join(parts) + headers
    return varint(len(fields)) + fields


def body(records: Sequence[tuple[int, bytes | None]]) -> bytes:
    """Records of (timestamp delta, key) with dense offsets."""
    return b"".join(record(delta, index, key) for index, (delta, key) in enumerate(records))
