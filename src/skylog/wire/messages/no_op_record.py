"""Generated from NoOpRecord.json; do not edit."""

from __future__ import annotations

from skylog.wire.schema import LAST, Message, Versions


class NoOpRecord(Message):
    __slots__ = ()
    TYPE = "metadata"
    API_KEY = 20
    VERSIONS = Versions(0, 0)
    FLEXIBLE = Versions(0, LAST)

