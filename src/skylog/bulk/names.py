"""The names of a topic's columns, for those who need no Arrow to speak of them."""

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
