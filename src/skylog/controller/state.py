"""The input of the controller's decisions: the image, broker sessions, settings."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields, replace

from skylog.controller.image import ClusterImage
from skylog.controller.image.brokers import UNASSIGNED_DIRECTORY, Broker
from skylog.controller.image.configs import CLUSTER_DEFAULT, ConfigResource, ConfigResourceType
from skylog.controller.image.topics import NO_LEADER, Partition, Topic
from skylog.controller.partition_change import Election, PartitionChange, PartitionRules
from skylog.controller.placement import UsableBroker
from skylog.controller.racks import RackBroker, RackPlacer, rack_name
from skylog.controller.requests import Contact, ReplicaWatch
from skylog.controller.settings import (
    ConfigLayers,
    ConfigSchema,
    ControllerSettings,
    ReplicaPacing,
)
from skylog.kernel.errors import ErrorCode, KafkaError
from skylog.kernel.ids import Uuid
from skylog.kernel.limits import CONTROLLER_RECORDS_PER_REQUEST_MAX
from skylog.kernel.settings.fields import bound
from skylog.kernel.settings.managed_replication import ManagedReplicationSettings
from skylog.wire.schema import Message

MIN_ISR = "min.insync.replicas"
UNCLEAN_ELECTION = "unclean.leader.election.enable"
# Fields of ReplicaPacing and their settings.
_PACING = {
    known.name: bound(ManagedReplicationSettings)[known.name].name
    for known in fields(ReplicaPacing)
}
PACING_SETTINGS = frozenset(_PACING.values())


@dataclass(slots=True)
class ControllerState:
    """Changed only by the machine's ``apply``."""

    settings: ControllerSettings
    configs: ConfigSchema
    image: ClusterImage = field(default_factory=ClusterImage)
    sessions: dict[int, Contact] = field(default_factory=dict)
    # A broker may be unfenced once it has read its own registration.
    registration_offsets: dict[int, int] = field(default_factory=dict)
    # State of offline replicas of diskless partitions.
    watch: ReplicaWatch = field(default_factory=ReplicaWatch)
    # Static values, used unless set dynamically.
    static_values: Mapping[str, str] = field(init=False)

    def __post_init__(self) -> None:
        nothing = ConfigLayers({}, {}, {})
        self.static_values = {
            MIN_ISR: self.configs.topic_value(MIN_ISR, nothing) or "1",
            UNCLEAN_ELECTION: self.configs.topic_value(UNCLEAN_ELECTION, nothing) or "false",
        }

    @property
    def elr_enabled(self) -> bool:
        return self.image.features.elr_enabled

    def broker_of_epoch(self, broker_id: int, epoch: int) -> Broker:
        """The broker, or STALE_BROKER_EPOCH if the caller is not the registered one."""
        broker = self.image.broker(broker_id)
        if broker is None:
            raise KafkaError(
                ErrorCode.STALE_BROKER_EPOCH, f"No registration found for broker {broker_id}."
            )
        if broker.epoch != epoch:
            raise KafkaError(
                ErrorCode.STALE_BROKER_EPOCH,
                f"Broker {broker_id} is of epoch {broker.epoch}, not {epoch}.",
            )
        return broker

    @property
    def is_one_node(self) -> bool:
        """Whether this controller is the only voter, and the only broker that has registered."""
        own = {self.settings.node_id}
        return set(self.settings.quorum_node_ids) == own and self.image.brokers.by_id.keys() == own

    def usable_brokers(self) -> Iterator[UsableBroker]:
        """Brokers that take new replicas: neither shutting down nor without usable directories."""
        for broker in self.image.brokers.by_id.values():
            going = broker.in_controlled_shutdown and not broker.fenced
            if broker.takes_partitions and not going:
                yield UsableBroker(broker.broker_id, broker.rack, broker.fenced)

    def rack_placer(self) -> RackPlacer:
        """Chooses among all registered brokers: a rack that is temporarily down still counts."""
        topics = self.image.topics
        brokers = (
            RackBroker(
                broker.broker_id, rack_name(broker.rack), broker.active, broker.takes_partitions
            )
            for broker in self.image.brokers.by_id.values()
        )
        return RackPlacer(brokers, topics.replica_counts, topics.leader_counts)

    def rack_of(self, broker_id: int) -> str:
        broker = self.image.broker(broker_id)
        return rack_name(None if broker is None else broker.rack)

    def rack_count(self) -> int:
        return len({rack_name(broker.rack) for broker in self.image.brokers.by_id.values()})

    def replica_pacing(self) -> ReplicaPacing:
        """How offline replicas are replaced, with the current settings."""
        layers = self.layers({})
        dynamic = {}
        for name, setting in _PACING.items():
            text = layers.node.get(setting, layers.cluster.get(setting, ""))
            if text.strip().isdecimal():
                dynamic[name] = int(text)
        return replace(self.settings.replica_pacing, **dynamic)

    def default_directory(self, broker_id: int) -> Uuid:
        broker = self.image.broker(broker_id)
        return UNASSIGNED_DIRECTORY if broker is None else broker.default_directory

    def layers(self, topic_overrides: Mapping[str, str]) -> ConfigLayers:
        node = ConfigResource(ConfigResourceType.BROKER, str(self.settings.node_id))
        configs = self.image.configs
        return ConfigLayers(topic_overrides, configs.of(node), configs.of(CLUSTER_DEFAULT))

    def min_isr(self, topic: Topic) -> int:
        """At most the number of replicas."""
        configured = int(self._topic_value(topic.name, MIN_ISR))
        return min(configured, len(topic.partitions[0].replicas))

    def unclean_election(self, topic: str) -> bool:
        return self._topic_value(topic, UNCLEAN_ELECTION).lower() == "true"

    def _topic_value(self, topic: str, name: str) -> str:
        """Called per partition, so without the schema: these two have the same name at all
        levels."""
        layers = self.layers(self.image.topic_configs(topic))
        for layer in (layers.topic, layers.node, layers.cluster):
            if name in layer:
                return layer[name]
        return self.static_values[name]

    def change(
        self,
        topic: Topic,
        index: int,
        *,
        removed: Iterable[int] = (),
        added: int = NO_LEADER,
        partition: Partition | None = None,
    ) -> PartitionChange:
        """A change of a partition, under construction.

        The brokers in ``removed`` are about to become inactive and ``added`` active, although their
        registrations do not show it yet.
        """
        partition = topic.partitions[index] if partition is None else partition
        brokers = self.image.brokers
        directories = dict(zip(partition.replicas, partition.directories, strict=True))
        gone = frozenset(removed)
        is_pure = partition.is_pure

        def may_lead(broker_id: int) -> bool:
            if broker_id in gone or not (broker_id == added or brokers.is_active(broker_id)):
                return False
            broker = brokers.by_id.get(broker_id)
            directory = directories.get(broker_id, UNASSIGNED_DIRECTORY)
            return broker is not None and (is_pure or broker.has_online_directory(directory))

        elr_enabled = self.elr_enabled and not is_pure
        rules = PartitionRules(may_lead, self.min_isr(topic), elr_enabled, self.default_directory)
        change = PartitionChange(partition, topic.topic_id, index, rules)
        if is_pure:
            change.follow_liveness()
        return change

    def updates(
        self,
        partitions: Iterable[tuple[Topic, int]],
        *,
        removed: int = NO_LEADER,
        added: int = NO_LEADER,
        unclean_shutdown: int = NO_LEADER,
    ) -> list[Message]:
        """New leaders and ISRs after a broker left or returned."""
        records: list[Message] = []
        for topic, index in partitions:
            change = self.change(topic, index, removed=(removed, unclean_shutdown), added=added)
            if self.unclean_election(topic.name):
                change.election = Election.UNCLEAN
            change.unclean_shutdown = unclean_shutdown
            change.isr = [
                replica for replica in change.isr if replica not in (removed, unclean_shutdown)
            ]
            record = change.build()
            if record is not None:
                records.append(record)
        return records

    def partitions_in_sync_with(self, broker_id: int) -> Iterator[tuple[Topic, int]]:
        """Scans all partitions: brokers leave rarely."""
        for topic, index, partition in self.all_partitions():
            if broker_id in partition.isr:
                yield topic, index

    def partitions_eligible_for(self, broker_id: int) -> Iterator[tuple[Topic, int]]:
        for topic, index, partition in self.all_partitions():
            if broker_id in partition.elr:
                yield topic, index

    def leads_any(self, broker_id: int) -> bool:
        return broker_id in self.image.topics.leader_counts

    def leaderless(self) -> Iterator[tuple[Topic, int]]:
        topics = self.image.topics
        for topic_id, index in topics.leaderless:
            yield topics.by_id[topic_id], index

    def waiting_for(self, broker_id: int) -> Iterator[tuple[Topic, int]]:
        """The changes when a broker returns: partitions without a leader, and diskless ones."""
        yield from self.leaderless()
        for topic, index, partition in self.all_partitions():
            back = broker_id in partition.replicas and broker_id not in partition.isr
            if partition.is_pure and back and partition.leader != NO_LEADER:
                yield topic, index

    def all_partitions(self) -> Iterator[tuple[Topic, int, Partition]]:
        for topic in self.image.topics.by_id.values():
            for index, partition in topic.partitions.items():
                yield topic, index, partition


def bounded(records: list[Message]) -> list[Message]:
    """Refuse requests that would write too many records."""
    if len(records) > CONTROLLER_RECORDS_PER_REQUEST_MAX:
        raise KafkaError(ErrorCode.POLICY_VIOLATION, "The request would change too much at once.")
    return records
