"""A controller with six brokers in three racks, and topics that may be diskless."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from skylog.controller.image.configs import ConfigResource, ConfigResourceType
from skylog.controller.image.topics import Partition
from skylog.controller.settings import ConfigLayers, ReplicaPacing
from skylog.kernel.ids import Uuid
from skylog.wire.messages.alter_partition_reassignments_request import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from skylog.wire.messages.config_record import ConfigRecord
from skylog.wire.messages.create_topics_request import CreatableTopic
from skylog.wire.messages.topic_record import TopicRecord
from tests.unit.controller.support import Bench, FewConfigs, topic

F6 = {101: "A", 102: "A", 103: "B", 104: "B", 105: "C", 106: "C"}
OFFLINE_TIMER = "diskless-offline-replicas"
WARNING_TIMER = "diskless-placement-warning"


class DisklessConfigs(FewConfigs):
    def validate(
        self,
        resource: ConfigResource,
        configs: Mapping[str, str],
        existing: Mapping[str, str],
        layers: ConfigLayers,
    ) -> None:
        known = {name: text for name, text in configs.items() if name != "diskless.enable"}
        super().validate(resource, known, existing, layers)

    def topic_value(self, name: str, layers: ConfigLayers) -> str | None:
        if name == "diskless.enable":
            return layers.topic.get(name, "false")
        return super().topic_value(name, layers)


def diskless(name: str, partitions: int = 1, replicas: int = -1, **more: Any) -> CreatableTopic:
    return topic(name, partitions, replicas, diskless_enable="true", **more)


class RackBench(Bench):
    """``racks`` has the rack of each broker; None is a broker without one."""

    def __init__(
        self,
        racks: Mapping[int, str | None] = F6,
        pacing: ReplicaPacing | None = None,
        **settings: Any,
    ) -> None:
        super().__init__(
            configs=DisklessConfigs(),
            replica_pacing=pacing or ReplicaPacing(),
            **settings,
        )
        self.racks = dict(racks)
        for broker_id, rack in racks.items():
            self.join(broker_id, rack=rack)
        self.look()

    def add(self, broker_id: int, rack: str | None, *, life: int = 0) -> None:
        self.racks[broker_id] = rack
        self.join(broker_id, rack=rack, life=life)

    def look(self) -> None:
        """Run the timer's work after brokers have started or failed."""
        self.run(self.timers[OFFLINE_TIMER].request)

    def wait(self, ms: int) -> None:
        """Let time pass, with heartbeats of all live brokers, and run the timer's work again."""
        self.now_ms += ms
        for broker_id, broker in tuple(self.image.brokers.by_id.items()):
            if not broker.fenced:
                self.beat(broker_id)
        self.look()

    def kill(self, *broker_ids: int) -> None:
        """They fail at the same time: their sessions expire, the others' do not."""
        alive = [
            broker_id
            for broker_id, broker in self.image.brokers.by_id.items()
            if not broker.fenced and broker_id not in broker_ids
        ]
        self.now_ms += self.machine.state.settings.session_timeout_ms
        for broker_id in alive:
            self.beat(broker_id)
        for broker_id in broker_ids:
            self.run(self.timers["broker-session", broker_id].request)
        self.look()

    def revive(self, broker_id: int, life: int = 1) -> None:
        self.join(broker_id, rack=self.racks[broker_id], life=life)
        self.look()

    def load(self, name: str, *replicas: list[int]) -> None:
        """A diskless topic of another cluster: one partition for each list of replicas."""
        topic_id = Uuid(name.encode().ljust(16, b"-"))
        partitions = [
            Partition(
                tuple(each),
                (Uuid(16),) * len(each),
                tuple(each),
                each[0],
                0,
                0,
                diskless_coordinator=0,
            )
            for each in replicas
        ]
        records = [
            TopicRecord(name, topic_id),
            ConfigRecord(ConfigResourceType.TOPIC, name, "diskless.enable", "true"),
            *(found.to_record(topic_id, index) for index, found in enumerate(partitions)),
        ]
        for record in records:
            self.machine.apply(record, len(self.log))
            self.log.append(record)

    def reassign(self, name: str, index: int, replicas: list[int] | None) -> Any:
        answer = self.ask(
            AlterPartitionReassignmentsRequest(
                topics=[ReassignableTopic(name, [ReassignablePartition(index, replicas)])]
            )
        )
        return answer.responses[0].partitions[0]

    def set_broker_config(self, name: str, value: str) -> None:
        self.machine.apply(ConfigRecord(ConfigResourceType.BROKER, "", name, value), -1)

    def replicas(self, name: str) -> list[list[int]]:
        found = self.image.topic(name).partitions
        return [list(found[index].replicas) for index in sorted(found)]

    def racks_of(self, replicas: Iterable[int]) -> list[str]:
        return [self.machine.state.rack_of(replica) for replica in replicas]

    @property
    def replaced(self) -> int:
        return self.machine.state.watch.replaced
