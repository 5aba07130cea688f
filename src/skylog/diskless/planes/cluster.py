"""The coordinators of a whole cluster: local ones by a call, the others by messages.

The leaders are those in the cluster metadata at the time of the call. A broker that no longer leads
returns NOT_COORDINATOR, and the caller retries: by then the metadata is up to date.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from skylog.diskless.coordinator import requests as ask
from skylog.diskless.coordinator.calls import CoordinatorCalls, Peers
from skylog.diskless.coordinator.remote import RemoteCoordinators
from skylog.diskless.listeners import Listeners
from skylog.diskless.plane import HighWatermarkListener, Unsubscribe
from skylog.diskless.planes.waits import RemoteWaits
from skylog.kernel.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from skylog.diskless.coordinator.registry import DisklessCoordinators
    from skylog.kernel.rng import Random


class Locations(Protocol):
    """What cluster metadata says of coordinators."""

    @property
    def node_id(self) -> int:
        """This broker."""
        ...

    def coordinator_ids(self) -> list[int]:
        """All coordinators, in order."""
        ...

    def leader(self, coordinator_id: int) -> int | None:
        """None or negative: it has no leader now."""
        ...


class ClusterCoordinators:
    """See ``coordinators.Coordinators``."""

    def __init__(
        self,
        local: DisklessCoordinators,
        locations: Locations,
        peers: Peers,
        rng: Random,
    ) -> None:
        self.local = local
        self._locations = locations
        self._calls = CoordinatorCalls(peers, locations.leader)
        self._remote = RemoteCoordinators(self._calls)
        self._listeners = Listeners()
        self._waits = RemoteWaits(self._calls, self.elsewhere, self._listeners.tell, rng)
        self._unsubscribe = local.watch(self._listeners.tell)

    def led(self) -> list[int]:
        return self.local.led()

    def all(self) -> list[int]:
        return self._locations.coordinator_ids()

    def all_led(self) -> bool:
        leaders = [self._locations.leader(one) for one in self._locations.coordinator_ids()]
        return bool(leaders) and all(leader is not None and leader >= 0 for leader in leaders)

    def elsewhere(self) -> dict[int, int]:
        found = {}
        for coordinator_id in self._locations.coordinator_ids():
            leader = self._locations.leader(coordinator_id)
            if leader is not None and leader >= 0 and leader != self._locations.node_id:
                found[coordinator_id] = leader
        return found

    def leaders_changed(self) -> None:
        """Cluster metadata has changed for coordinators."""
        self._calls.leaders_changed()
        self._waits.leaders_changed()

    async def submit(self, coordinator_id: int, request: ask.Write | ask.StrictRead) -> Any:
        node_id = self._node_of(coordinator_id)
        if node_id is None:
            return await self.local.submit(coordinator_id, request)
        return await self._remote.submit(node_id, coordinator_id, request)

    async def find(self, coordinator_id: int, request: ask.Find | ask.ForgetFiles) -> Any:
        """If no leader answers, a find is answered from this broker's own standby."""
        try:
            node_id = self._node_of(coordinator_id)
            if node_id is None:
                return await self.local.find(coordinator_id, request)
            return await self._remote.find(node_id, coordinator_id, request)
        except KafkaError:
            if isinstance(request, ask.FindBatches) and self.local.follows(coordinator_id):
                return await self.local.find_behind(coordinator_id, request)
            raise

    async def look(self, coordinator_id: int, request: ask.Look) -> Any:
        node_id = self._node_of(coordinator_id)
        if node_id is None:
            return await self.local.look(coordinator_id, request)
        return await self._remote.look(node_id, coordinator_id, request)

    def watch(self, listener: HighWatermarkListener) -> Unsubscribe:
        return self._listeners.add(listener)

    async def loaded(self) -> None:
        await self.local.loaded()

    async def close(self) -> None:
        self._unsubscribe()
        await self._waits.close()
        await self._remote.close()
        await self._calls.close()
        await self.local.close()

    def _node_of(self, coordinator_id: int) -> int | None:
        """None: it is led here, or should be."""
        leader = self._locations.leader(coordinator_id)
        if coordinator_id in self.local.led() or leader == self._locations.node_id:
            return None
        if leader is None or leader < 0:
            raise KafkaError(
                ErrorCode.COORDINATOR_NOT_AVAILABLE, f"coordinator {coordinator_id} has no leader"
            )
        return leader
