"""Ports for servers whose address must be known before they start."""

from __future__ import annotations

from skylog.testing.cluster import Port

_HELD: list[Port] = []


def free_port() -> int:
    """A port that is reserved for one server as long as these tests run."""
    held = Port()
    _HELD.append(held)
    return held.number
