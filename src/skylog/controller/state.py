"""What the controller's decisions read: the image, the sessions of brokers, the settings."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from skylog.controller.image import ClusterImage
from skylog.controller.image.brokers import UNASSIGNED_DIRECTORY, Broker
from skylog.controller.image.configs import CLUSTER_DEFAULT, ConfigResource, ConfigResourceType
from skylog.controller.image.topics import NO_LEADER, Partition, Topic
from skylog.controller.partition_change import Election, PartitionChange, PartitionRules
from skylog.controller.placement import UsableBroker
from skylog.controller.requests import Contact
from skylog.controller.settings import ConfigLayers, ConfigSchema, ControllerSettings
from skylog.kernel.errors import ErrorCode, KafkaError
from skylog.kernel.ids import Uuid
from skylog.kernel.limits import CONTROLLER_RECORDS_PER_REQUEST_MAX
from skylog.wire.schema import Message

MIN_ISR = "min.insync.replicas"
UNCLEAN_ELECTION = "unclean.leader.election.enable"


@dataclass(slots=True)
class ControllerState:
    """Changed by the machine's ``apply`` alone."""

    settings: ControllerSettings
    configs: ConfigSchema
    image: ClusterImage = field(default_factory=ClusterImage)
    sessions: dict[int, Contact] = field(default_factory=dict)
    # A broker may be unfenced once it has read its own registration.
    registration_offsets: dict[int, int] = field(default_factory=dict)
    # What holds where nobody has set it while the cluster ran.
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
        """The broker, or STALE_BROKER_EPOCH if the caller is not the one that is registered."""
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

    def usable_brokers(self) -> Iterator[UsableBroker]:
        """Brokers that take new replicas: not those that are going, nor those without room."""
        for broker in self.image.brokers.by_id.values():
            going = broker.in_controlled_shutdown and not broker.fenced
            if broker.takes_partitions and not going:
                yield UsableBroker(broker.broker_id, broker.rack, broker.fenced)

    def default_directory(self, broker_id: int) -> Uuid:
        broker = self.image.broker(broker_id)
        return UNASSIGNED_DIRECTORY if broker is None else broker.default_directory

    def layers(self, topic_overrides: Mapping[str, str]) -> ConfigLayers:
        node = ConfigResource(ConfigResourceType.BROKER, str(self.settings.node_id))
        configs = self.image.configs
        return ConfigLayers(topic_overrides, configs.of(node), configs.of(CLUSTER_DEFAULT))

    def min_isr(self, topic: Topic) -> int:
        """Never more than there are replicas."""
        configured = int(self._topic_value(topic.name, MIN_ISR))
        return min(configured, len(topic.partitions[0].replicas))

    def unclean_election(self, topic: str) -> bool:
        return self._topic_value(topic, UNCLEAN_ELECTION).lower() == "true"

    def _topic_value(self, topic: str, name: str) -> str:
        """Asked per partition, so without the schema: these two are called alike at all levels."""
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
        """A change of a partition, not built yet.

        The brokers in ``removed`` are about to be inactive and ``added`` is about to be active,
        though their registrations do not say so yet.
        """
        partition = topic.partitions[index] if partition is None else partition
        brokers = self.image.brokers
        directories = dict(zip(partition.replicas, partition.directories, strict=True))
        gone = frozenset(removed)

        def may_lead(broker_id: int) -> bool:
            if broker_id in gone or not (broker_id == added or brokers.is_active(broker_id)):
                return False
            broker = brokers.by_id.get(broker_id)
            directory = directories.get(broker_id, UNASSIGNED_DIRECTORY)
            return broker is not None and broker.has_online_directory(directory)

        rules = PartitionRules(
            may_lead, self.min_isr(topic), self.elr_enabled, self.default_directory
        )
        return PartitionChange(partition, topic.topic_id, index, rules)

    def updates(
        self,
        partitions: Iterable[tuple[Topic, int]],
        *,
        removed: int = NO_LEADER,
        added: int = NO_LEADER,
        unclean_shutdown: int = NO_LEADER,
    ) -> list[Message]:
        """New leaders and ISRs after a broker went or came."""
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
        """Looks at all partitions: brokers go seldom."""
        for topic, index, partition in self.all_partitions():
            if broker_id in partition.isr:
                yield topic, index

    def partitions_eligible_for(self, broker_id: int) -> Iterator[tuple[Topic, int]]:
        for topic, index, partition in self.all_partitions():
            if broker_id in partition.elr:
                yield topic, index

    def leads_any(self, broker_id: int) -> bool:
        return any(partition.leader == broker_id for _, _, partition in self.all_partitions())

    def leaderless(self) -> Iterator[tuple[Topic, int]]:
        topics = self.image.topics
        for topic_id, index in topics.leaderless:
            yield topics.by_id[topic_id], index

    def all_partitions(self) -> Iterator[tuple[Topic, int, Partition]]:
        for topic in self.image.topics.by_id.values():
            for index, partition in topic.partitions.items():
                yield topic, index, partition


def bounded(records: list[Message]) -> list[Message]:
    """Refuse what one request may not write."""
    if len(records) > CONTROLLER_RECORDS_PER_REQUEST_MAX:
        raise KafkaError(ErrorCode.POLICY_VIOLATION, "The request would change too much at once.")
    return records
