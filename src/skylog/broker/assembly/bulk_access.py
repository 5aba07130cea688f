"""Limits on bulk access, so that it does not disturb a broker's regular clients."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from skylog.kernel.limits import BULK_LOOKS_AT_ONCE_MAX, STAGED_OBJECTS_AT_ONCE_MAX

if TYPE_CHECKING:
    from skylog.broker.tiered.bulk_ranges import TieredRanges


def _plans() -> asyncio.Semaphore:
    return asyncio.Semaphore(1)


def _looks() -> asyncio.Semaphore:
    return asyncio.Semaphore(BULK_LOOKS_AT_ONCE_MAX)


def _objects() -> asyncio.Semaphore:
    return asyncio.Semaphore(STAGED_OBJECTS_AT_ONCE_MAX)


@dataclass(slots=True)
class BulkAccess:
    """A plan scans much of a coordinator's state: one at a time. Lookups take threads that also
    sync logs, and staged objects take memory: a few at a time."""

    planning: asyncio.Semaphore = field(default_factory=_plans)
    locating: asyncio.Semaphore = field(default_factory=_looks)
    staging: asyncio.Semaphore = field(default_factory=_objects)
    # None: tiered storage is not enabled.
    tiers: TieredRanges | None = None
