"""The names of a topic's columns, without importing Arrow."""

from __future__ import annotations

from typing import Final

COLUMNS: Final = (
    "key",
    "value",
    "topic",
    "partition",
    "offset",
    "timestamp",
    "timestampType",
    "headers",
)
