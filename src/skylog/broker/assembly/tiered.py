"""Tiered storage, put together from the broker's parts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from skylog.kernel.settings import BrokerSettings
    from skylog.tiered.counts import TieredCounts
    from skylog.tiered.manager import RemoteLogManager
    from skylog.tiered.ports import RemoteLogs, RemoteStorage


@dataclass(slots=True)
class TieredStorage:
    """The parts of tiered storage that others use."""

    # Which segments are remote, of the partitions that have a replica here.
    logs: RemoteLogs
    storage: RemoteStorage
    manager: RemoteLogManager
    counts: TieredCounts

    async def start(self) -> None:
        """Metadata was read up to this broker's registration: what it leads it leads alone."""
        self.manager.start()

    async def close(self) -> None:
        await self.manager.close()


def open_tiered(settings: BrokerSettings) -> TieredStorage | None:
    """None unless ``remote.log.storage.system.enable`` is true."""
    return None
