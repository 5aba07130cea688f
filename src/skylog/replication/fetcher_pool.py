"""All fetchers of a broker: a few for each leader, which share its partitions."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING, Final
from zlib import crc32

from skylog.replication.fetcher import Fetcher

if TYPE_CHECKING:
    from skylog.replication.partition import Partition
    from skylog.replication.ports import FetchPorts, FetchSettings, RemoteTier

_LANE: Final = "replica-fetcher"


class Fetchers:
    """Finds the fetcher of a partition. All calls come from the event loop."""

    def __init__(self, settings: FetchSettings, ports: FetchPorts, count: int = 1) -> None:
        """``count`` is ``num.replica.fetchers``."""
        self._settings = settings
        self._ports = ports
        self._count = count
        self._fetchers: dict[tuple[int, int], Fetcher] = {}
        self._homes: dict[Partition, Fetcher] = {}
        self._closing: set[asyncio.Task[None]] = set()
        self._closed = False

    def use_remote_tier(self, tier: RemoteTier) -> None:
        """Tiered storage is on; called before the first partition is followed."""
        self._ports = replace(self._ports, remote_tier=tier)

    def start(self) -> None:
        """This broker is registered: begin to fetch."""
        self._ports.started.set()

    def follow(self, partition: Partition) -> None:
        """Fetch a partition from its current leader, if it has one."""
        leader_id = partition.leader_id
        if self._closed or partition.deleted or leader_id < 0 or partition.is_leader:
            self.forget(partition)
            return
        slot = leader_id, crc32(repr(partition).encode()) % self._count
        fetcher = self._fetchers.get(slot)
        if fetcher is None:
            lane = f"{_LANE}-{slot[1]}"
            fetcher = self._fetchers[slot] = Fetcher(leader_id, lane, self._settings, self._ports)
        if self._homes.get(partition) is not fetcher:
            self.forget(partition)
            self._homes[partition] = fetcher
        fetcher.add(partition)

    def forget(self, partition: Partition) -> None:
        """Stop fetching a partition."""
        fetcher = self._homes.pop(partition, None)
        if fetcher is not None:
            fetcher.remove(partition)

    def resize(self, count: int) -> None:
        """``num.replica.fetchers`` changed."""
        if count == self._count or self._closed:
            return
        self._count = count
        partitions = tuple(self._homes)
        for partition in partitions:
            self.forget(partition)
        for fetcher in self._fetchers.values():
            self._retire(fetcher)
        self._fetchers.clear()
        for partition in partitions:
            self.follow(partition)

    def _retire(self, fetcher: Fetcher) -> None:
        task = asyncio.get_running_loop().create_task(fetcher.close())
        self._closing.add(task)
        task.add_done_callback(self._closing.discard)

    @property
    def lag_max(self) -> int:
        return max((each.lag_max for each in tuple(self._fetchers.values())), default=0)

    @property
    def failed_count(self) -> int:
        return sum(len(each.failed) for each in tuple(self._fetchers.values()))

    @property
    def followed_count(self) -> int:
        return len(self._homes)

    async def close(self) -> None:
        """Stop fetching."""
        self._closed = True
        closing = [fetcher.close() for fetcher in self._fetchers.values()]
        await asyncio.gather(*closing, *self._closing, return_exceptions=True)
        self._fetchers.clear()
        self._homes.clear()
