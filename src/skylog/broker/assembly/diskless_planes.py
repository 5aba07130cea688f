"""The control plane of a broker's diskless topics: the only module that knows planes by name."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from skylog.diskless.coordinator.api import DisklessApi
from skylog.diskless.coordinator.links import ReplicaLinks
from skylog.diskless.coordinator.own_api import OwnApi
from skylog.diskless.coordinator.registry import DisklessCoordinators
from skylog.diskless.coordinator.replica import ReplicaStore
from skylog.diskless.coordinator.settings import RuntimeSettings
from skylog.diskless.planes.cluster import ClusterCoordinators
from skylog.diskless.planes.memory import MemoryPlane
from skylog.diskless.planes.topic import TopicPlane
from skylog.diskless.rules.times import PlaneRules
from skylog.kernel.errors import ConfigError, ErrorCode, KafkaError
from skylog.kernel.secret import Secret
from skylog.kernel.topics import DISKLESS_METADATA
from skylog.objects.open import parse_url

if TYPE_CHECKING:
    from skylog.controller.image import ClusterImage
    from skylog.controller.image.topics import Partition as PartitionState
    from skylog.diskless.coordinator.calls import Peers
    from skylog.diskless.plane import ControlPlane, TopicPartition
    from skylog.kernel.settings import BrokerSettings
    from skylog.kernel.settings.diskless import DisklessSettings
    from skylog.kernel.system import System
    from skylog.log.files import Files
    from skylog.replication.partition import Partition

# The coordinators' caches and snapshots, beside the logs.
COORDINATORS_DIRECTORY: Final = "diskless-coordinators"
# Values of ``diskless.control.plane``.
TOPIC: Final = "topic"
MEMORY: Final = "memory"
POSTGRES: Final = "postgres"


class PlaneMetadata:
    """What cluster metadata says of a plane's partitions, brokers and coordinators.

    As one broker sees it (``duties.Brokers``, ``planes.cluster.Locations``).
    """

    def __init__(self, image: ClusterImage, node_id: int) -> None:
        self._image = image
        self.node_id = node_id

    def _partition(self, partition: TopicPartition) -> PartitionState | None:
        topic = self._image.topic_by_id(partition[0])
        return None if topic is None else topic.partitions.get(partition[1])

    def leads(self, partition: TopicPartition) -> bool:
        state = self._partition(partition)
        return state is not None and state.leader == self.node_id

    def is_first(self) -> bool:
        brokers = self._image.brokers.by_id
        alive = [number for number, broker in brokers.items() if not broker.fenced]
        return not alive or min(alive) == self.node_id

    def coordinator_of(self, partition: TopicPartition) -> int | None:
        state = self._partition(partition)
        return state.diskless_coordinator if state is not None and state.writes_diskless else None

    def coordinator_ids(self) -> list[int]:
        topic = self._image.topic(DISKLESS_METADATA)
        return [] if topic is None else sorted(topic.partitions)

    def leader(self, coordinator_id: int) -> int | None:
        state = self._image.partition(DISKLESS_METADATA, coordinator_id)
        return None if state is None else state.leader

    def replicas(self, coordinator_id: int) -> list[int]:
        """The leader first, then the other in-sync replicas."""
        state = self._image.partition(DISKLESS_METADATA, coordinator_id)
        if state is None:
            return []
        return list(dict.fromkeys([state.leader, *state.isr, *state.replicas]))


@dataclass(frozen=True, slots=True)
class Coordination:
    """The coordinators behind a topic plane: this broker's, all of the cluster's, and the APIs by
    which other brokers call this one's."""

    local: DisklessCoordinators
    cluster: ClusterCoordinators
    api: DisklessApi
    own_api: OwnApi

    def assign(self, coordinator_id: int, partition: Partition) -> None:
        """This broker has a replica of a coordinator's log, in a new role or epoch."""
        if partition.is_leader:
            self.local.partition_led(coordinator_id, partition)
        else:
            self.local.partition_followed(coordinator_id, partition)


def open_plane(
    settings: BrokerSettings, image: ClusterImage, peers: Peers, files: Files, system: System
) -> tuple[ControlPlane, Coordination | None]:
    """The plane that ``diskless.control.plane`` names, and its coordinators if it has any."""
    kind = settings.diskless.control_plane
    metadata = PlaneMetadata(image, settings.node.node_id)
    if kind == MEMORY:
        return MemoryPlane(system.clock, plane_rules(settings)), None
    if kind == POSTGRES:
        return _open_postgres(settings, metadata, system), None
    coordination = _open_coordination(settings, metadata, peers, files, system)
    return TopicPlane(coordination.cluster, metadata.coordinator_of, system.rng), coordination


def coordinator_replicas(diskless: DisklessSettings) -> int:
    """The replication factor of a coordinator's log; 0 if the plane uses no coordinators."""
    return diskless.metadata_replication_factor if diskless.control_plane == TOPIC else 0


def refuse_alone(image: ClusterImage, settings: BrokerSettings) -> None:
    """INVALID_CONFIG if the brokers of a cluster could not find each other's diskless data.

    Controllers check this too, although they have no plane.
    """
    if len(image.brokers.by_id) <= 1:
        return
    if not settings.diskless.storage_url:
        raise KafkaError(
            ErrorCode.INVALID_CONFIG,
            "With several brokers, diskless topics need diskless.storage.url, the same on all of"
            " them: a bucket, or a directory (file://…) that all of them share.",
        )
    if settings.diskless.control_plane == MEMORY:
        raise KafkaError(
            ErrorCode.INVALID_CONFIG,
            "diskless.control.plane=memory is for one broker; several need topic or postgres.",
        )


def plane_rules(settings: BrokerSettings) -> PlaneRules:
    return PlaneRules(
        commit_age_ms_max=settings.diskless.commit_age_max_ms,
        producer_expiration_ms=settings.log.producer_id_expiration_ms,
    )


def _open_postgres(
    settings: BrokerSettings, metadata: PlaneMetadata, system: System
) -> ControlPlane:
    # Imported here: few nodes need the library.
    from skylog.diskless.planes.postgres.plane import PostgresPlane  # noqa: PLC0415

    address = settings.diskless.postgres
    if not isinstance(address, Secret):
        raise ConfigError(
            "diskless.control.plane=postgres needs "
            "diskless.control.plane.postgres.connection.string"
        )
    return PostgresPlane(
        address,
        system.clock,
        plane_rules(settings),
        brokers=metadata,
        connections_max=settings.diskless.postgres_connections_max,
    )


def _open_coordination(
    settings: BrokerSettings, metadata: PlaneMetadata, peers: Peers, files: Files, system: System
) -> Coordination:
    clock, rng, executor = system.clock, system.rng, system.executor
    directory = Path(settings.node.log_dirs[0]).absolute() / COORDINATORS_DIRECTORY
    url = settings.diskless.storage_url
    runtime = RuntimeSettings(
        rules=plane_rules(settings),
        snapshot_bytes=settings.diskless.snapshot_bytes,
        # Metadata that outlives the data it points to would be useless.
        sync=settings.storage.file_sync or (url != "" and parse_url(url).is_remote),
    )
    links = ReplicaLinks(metadata.node_id, peers, metadata.replicas, executor)
    store = ReplicaStore(directory, files, executor)
    local = DisklessCoordinators(store, runtime, clock, links)
    # Requests of other brokers are served by the coordinators here, never passed on.
    here = TopicPlane(local, metadata.coordinator_of, rng)
    return Coordination(
        local,
        ClusterCoordinators(local, metadata, peers, rng),
        DisklessApi(here, local, metadata.coordinator_of),
        OwnApi(local, executor),
    )
