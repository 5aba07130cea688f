"""Routing of clients: the pure routing functions, applied to the current metadata."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from skylog.controller.image import ClusterImage, Delta
from skylog.controller.image.topics import Topic
from skylog.controller.racks import rack_name
from skylog.kernel.topics import DISKLESS_METADATA
from skylog.routing.gateways import Gateways, assign_gateways, gateways_for
from skylog.routing.transformer import Located, Route, locate
from skylog.routing.zones import zone_of_client


class Router:
    """Follows the metadata to invalidate cached results."""

    def __init__(self, image: ClusterImage, zone_by_listener: Mapping[str, str]) -> None:
        self._image = image
        self._zone_by_listener = zone_by_listener
        self._gateways: list[Gateways] | None = None
        # Counts of partitions shown to clients, by how their leader was chosen.
        self.routes: Counter[Route] = Counter()

    def metadata_changed(self, image: ClusterImage, delta: Delta) -> None:
        metadata = image.topic(DISKLESS_METADATA)
        if delta.brokers or metadata is None or metadata.topic_id in delta.partitions:
            self._gateways = None

    def zone(self, client_id: str | None, listener: str) -> str | None:
        brokers = self._image.brokers.by_id.values()
        racks = {rack_name(broker.rack) for broker in brokers if not broker.fenced}
        return zone_of_client(client_id, listener, racks, self._zone_by_listener)

    def located(
        self, topic: Topic, index: int, zone: str | None, racks: Mapping[int, str | None]
    ) -> Located | None:
        """The broker that a client in a zone is shown for a partition that any broker can serve;
        None for other partitions. ``racks`` as for ``locate``."""
        if not topic.partitions[index].is_pure:
            return None
        found = locate(topic.topic_id, index, topic.partitions[index], zone, racks)
        if found is not None:
            self.routes[found.route] += 1
        return found

    def produce_gateways(self, coordinator: int, zone: str | None) -> Sequence[int]:
        """The preferred brokers for a producer in a zone; empty without a zone."""
        if zone is None:
            return ()
        if self._gateways is None:
            self._gateways = self._assign()
        if not 0 <= coordinator < len(self._gateways):
            return ()
        return gateways_for(self._gateways[coordinator], zone)

    def replica_in(self, topic: Topic, index: int, rack: str, reader: int) -> int | None:
        """A replica in a consumer's own rack, if ``reader`` is in another."""
        brokers = self._image.brokers.by_id
        alive = {
            replica: brokers[replica].rack
            for replica in topic.partitions[index].replicas
            if self._image.is_alive(replica)
        }
        asked = brokers.get(reader)
        if asked is not None and rack_name(asked.rack) == rack:
            return None
        found = locate(topic.topic_id, index, topic.partitions[index], rack, alive)
        return found.leader if found is not None and found.route is Route.LOCAL else None

    def _assign(self) -> list[Gateways]:
        image = self._image
        metadata = image.topic(DISKLESS_METADATA)
        if metadata is None:
            return []
        racks = {
            broker.broker_id: rack_name(broker.rack)
            for broker in image.brokers.by_id.values()
            if not broker.fenced
        }
        hosts = [metadata.partitions[number].leader for number in sorted(metadata.partitions)]
        return assign_gateways(racks, hosts)
