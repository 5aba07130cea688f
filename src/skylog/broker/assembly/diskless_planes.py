"""Which control plane a broker's diskless topics have, and where their coordinators are."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

from skylog.diskless.coordinator.links import ReplicaLinks
from skylog.diskless.coordinator.ports import RuntimeSettings
from skylog.diskless.coordinator.registry import DisklessCoordinators, Environment
from skylog.diskless.plane import CoordinatorOf
from skylog.diskless.planes.memory import MemoryPlane
from skylog.diskless.planes.topic import TopicPlane
from skylog.diskless.rules.times import PlaneRules
from skylog.kernel.errors import ConfigError
from skylog.kernel.secret import Secret
from skylog.kernel.topics import DISKLESS_METADATA
from skylog.objects.open import parse_url

if TYPE_CHECKING:
    from skylog.controller.image import ClusterImage
    from skylog.diskless.coordinator.calls import Peers
    from skylog.diskless.plane import ControlPlane, TopicPartition
    from skylog.diskless.planes.cluster import ClusterCoordinators
    from skylog.kernel.clock import Clock
    from skylog.kernel.executor import Executor
    from skylog.kernel.rng import Random
    from skylog.kernel.settings import BrokerSettings
    from skylog.log.files import Files

# The coordinators' caches and snapshots, beside the logs.
COORDINATORS_DIRECTORY: Final = "diskless-coordinators"


def plane_rules(settings: BrokerSettings) -> PlaneRules:
    return PlaneRules(
        commit_age_ms_max=settings.diskless.commit_age_max_ms,
        producer_expiration_ms=settings.log.producer_id_expiration_ms,
    )


class CoordinatorLocations:
    """Who has which coordinator, as cluster metadata says (``planes.cluster.Locations``)."""

    def __init__(self, image: ClusterImage, node_id: int) -> None:
        self._image = image
        self.node_id = node_id

    def coordinator_ids(self) -> list[int]:
        topic = self._image.topic(DISKLESS_METADATA)
        return [] if topic is None else sorted(topic.partitions)

    def leader(self, coordinator_id: int) -> int | None:
        state = self._image.partition(DISKLESS_METADATA, coordinator_id)
        return None if state is None else state.leader

    def replicas(self, coordinator_id: int) -> list[int]:
        """The leader first, then those in sync."""
        state = self._image.partition(DISKLESS_METADATA, coordinator_id)
        if state is None:
            return []
        return list(dict.fromkeys([state.leader, *state.isr, *state.replicas]))


def open_coordinators(
    settings: BrokerSettings,
    files: Files,
    clock: Clock,
    executor: Executor,
    peers: Peers,
    locations: CoordinatorLocations,
) -> DisklessCoordinators:
    """The coordinators that this broker may come to lead, or follow."""
    directory = Path(settings.node.log_dirs[0]).absolute() / COORDINATORS_DIRECTORY
    url = settings.diskless.storage_url
    runtime = RuntimeSettings(
        rules=plane_rules(settings),
        snapshot_bytes=settings.diskless.snapshot_bytes,
        # Coordinates would be of no use that outlive the bytes they lead to.
        sync=settings.storage.file_sync or (url != "" and parse_url(url).is_remote),
    )
    links = ReplicaLinks(locations.node_id, peers, locations.replicas, executor)
    environment = Environment.of_broker(directory, files, clock, executor, links)
    return DisklessCoordinators(environment, runtime)


def coordinators_by_metadata(image: ClusterImage) -> CoordinatorOf:
    """Which coordinator a partition has, as cluster metadata says."""

    def coordinator_of(partition: TopicPartition) -> int | None:
        topic = image.topic_by_id(partition[0])
        state = topic.partitions.get(partition[1]) if topic is not None else None
        return state.diskless_coordinator if state is not None and state.writes_diskless else None

    return coordinator_of


def open_plane(
    settings: BrokerSettings,
    coordinators: ClusterCoordinators,
    coordinator_of: CoordinatorOf,
    clock: Clock,
    rng: Random,
) -> ControlPlane:
    """The plane that ``diskless.control.plane`` names."""
    kind = settings.diskless.control_plane
    if kind == "memory":
        return MemoryPlane(clock, plane_rules(settings))
    if kind == "postgres":
        # Imported here: few nodes need the library.
        from skylog.diskless.planes.postgres.plane import PostgresPlane  # noqa: PLC0415

        address = settings.diskless.postgres
        if not isinstance(address, Secret):
            raise ConfigError(
                "diskless.control.plane=postgres needs "
                "diskless.control.plane.postgres.connection.string"
            )
        connections = settings.diskless.postgres_connections_max
        return PostgresPlane(address, clock, plane_rules(settings), connections_max=connections)
    return TopicPlane(coordinators, coordinator_of, rng)
