"""Pins of a coordinator: the effects of their records, and their storage."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from struct import Struct
from typing import Any, Final

from skylog.diskless.coordinator import schema
from skylog.diskless.coordinator.state import Pin, StateStore, StoredAnswer
from skylog.wire.messages.file_pinned_record import FilePinnedRecord, PinnedAnswer

_ANSWER: Final = Struct(">ihqq")


def apply_pin(store: StateStore, record: FilePinnedRecord) -> None:
    """Set or extend a pin; in a snapshot, with its results. Without expiry, remove it."""
    key = record.object_key
    if record.expires_ms < 0:
        store.pins.remove(key)
        return
    known = store.pins.get(key) or _of_file(store, key)
    pin = Pin(key, record.writer_id, record.epoch, record.expires_ms)
    if record.file_size >= 0:
        answers = tuple(
            StoredAnswer(one.byte_offset, one.error_code, one.base_offset, one.log_append_time)
            for one in record.answers
        )
        pin = pin._replace(size=record.file_size, format=record.object_format, answers=answers)
    elif known is not None:
        pin = known._replace(
            writer_id=record.writer_id,
            epoch=record.epoch,
            expires_ms=max(known.expires_ms, record.expires_ms),
        )
    store.pins.put(pin)


def _of_file(store: StateStore, key: str) -> Pin | None:
    """A pin for an object that was committed before it was pinned."""
    file = store.file(key)
    if file is None:
        return None
    return Pin(key, "", 0, -1, file.size, file.format, tuple(store.answers(key) or ()))


def note_committed(store: StateStore, key: str, size: int, format_: int, answers: Any) -> None:
    """The pin of a file that is now committed keeps its results."""
    pin = store.pins.get(key)
    if pin is not None:
        store.pins.put(pin._replace(size=size, format=format_, answers=tuple(answers)))


def pin_record(pin: Pin) -> FilePinnedRecord:
    """For a snapshot."""
    return FilePinnedRecord(
        pin.object_key,
        pin.writer_id,
        pin.epoch,
        pin.expires_ms,
        pin.size,
        pin.format,
        [PinnedAnswer(*answer) for answer in pin.answers],
    )


class MemoryPins:
    """See ``PinStore``."""

    def __init__(self) -> None:
        self._pins: dict[str, Pin] = {}

    def get(self, object_key: str) -> Pin | None:
        return self._pins.get(object_key)

    def put(self, pin: Pin) -> None:
        self._pins[pin.object_key] = pin

    def remove(self, object_key: str) -> None:
        self._pins.pop(object_key, None)

    def expire(self, before_ms: int) -> None:
        self._pins = {k: pin for k, pin in self._pins.items() if pin.expires_ms >= before_ms}

    def all(self) -> Iterator[Pin]:
        for key in sorted(self._pins):
            yield self._pins[key]


class SqlitePins:
    """See ``PinStore``."""

    def __init__(self, db: sqlite3.Connection) -> None:
        self._db = db

    def get(self, object_key: str) -> Pin | None:
        found = self._db.execute(schema.PIN, (object_key,)).fetchone()
        return _pin(found) if found else None

    def put(self, pin: Pin) -> None:
        packed = b"".join([_ANSWER.pack(*answer) for answer in pin.answers])
        self._db.execute(schema.PUT_PIN, (*pin[:-1], packed))

    def remove(self, object_key: str) -> None:
        self._db.execute(schema.REMOVE_PIN, (object_key,))

    def expire(self, before_ms: int) -> None:
        self._db.execute(schema.EXPIRE_PINS, (before_ms,))

    def all(self) -> Iterator[Pin]:
        for row in self._db.execute(schema.ALL_PINS):
            yield _pin(row)


def _pin(row: tuple[Any, ...]) -> Pin:
    *told, answers = row
    return Pin(*told)._replace(
        answers=tuple(StoredAnswer(*one) for one in _ANSWER.iter_unpack(answers))
    )
