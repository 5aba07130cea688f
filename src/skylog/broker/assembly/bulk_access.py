"""Bulk access of a broker: what limits it, so that it stays beside the daily work."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

from skylog.kernel.limits import BULK_LOOKS_AT_ONCE_MAX, STAGED_OBJECTS_AT_ONCE_MAX


def _plans() -> asyncio.Semaphore:
    return asyncio.Semaphore(1)


def _looks() -> asyncio.Semaphore:
    return asyncio.Semaphore(BULK_LOOKS_AT_ONCE_MAX)


def _objects() -> asyncio.Semaphore:
    return asyncio.Semaphore(STAGED_OBJECTS_AT_ONCE_MAX)


@dataclass(slots=True)
class BulkAccess:
    """Plans go through much of a coordinator's state: one at a time. Looks at it take threads that
    also sync logs, staged objects take memory: few at a time."""

    planning: asyncio.Semaphore = field(default_factory=_plans)
    locating: asyncio.Semaphore = field(default_factory=_looks)
    staging: asyncio.Semaphore = field(default_factory=_objects)
