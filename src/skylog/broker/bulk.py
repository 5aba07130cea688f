"""Bulk access of a broker: what limits it, so that it stays beside the daily work."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field


def _one() -> asyncio.Semaphore:
    return asyncio.Semaphore(1)


@dataclass(slots=True)
class BulkAccess:
    """Plans go through much of a coordinator's state: one at a time."""

    planning: asyncio.Semaphore = field(default_factory=_one)
