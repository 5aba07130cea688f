"""The router over metadata that changes."""

from __future__ import annotations

from typing import Any

from skylog.controller.image import ClusterImage, Delta
from skylog.controller.image.topics import Partition
from skylog.kernel.ids import Uuid
from skylog.kernel.topics import DISKLESS_METADATA
from skylog.routing.router import Router
from skylog.routing.transformer import Route
from skylog.wire.messages.broker_registration_change_record import BrokerRegistrationChangeRecord
from skylog.wire.messages.partition_change_record import PartitionChangeRecord
from skylog.wire.messages.register_broker_record import RegisterBrokerRecord
from skylog.wire.messages.topic_record import TopicRecord

COORDINATORS, FOO = Uuid(b"coordinators----"), Uuid(b"foo-------------")
RACKS = {1: "a", 2: "b", 3: "c"}


class World:
    def __init__(self, **listeners: str) -> None:
        self.image = ClusterImage()
        self.router = Router(self.image, listeners)
        for broker, rack in RACKS.items():
            self.apply(
                RegisterBrokerRecord(broker_id=broker, broker_epoch=1, rack=rack, fenced=False)
            )
        self.apply(TopicRecord(DISKLESS_METADATA, COORDINATORS))
        for number in range(3):
            leader = number + 1
            state = Partition((leader,), (Uuid(16),), (leader,), leader, 0, 0)
            self.apply(state.to_record(COORDINATORS, number))
        self.apply(TopicRecord("foo", FOO))
        state = Partition((1, 2, 3), (Uuid(16),) * 3, (1, 2, 3), 1, 4, 0, diskless_coordinator=1)
        self.apply(state.to_record(FOO, 0))

    def apply(self, record: Any) -> None:
        self.router.metadata_changed(self.image, self.image.apply(record))

    def fence(self, broker: int) -> None:
        self.apply(BrokerRegistrationChangeRecord(broker, 1, fenced=1))

    def alive(self) -> dict[int, str | None]:
        return {broker: rack for broker, rack in RACKS.items() if self.image.is_alive(broker)}


def test_the_zone_of_a_client() -> None:
    world = World(INSIDE="b")
    assert world.router.zone("diskless_az=c", "INSIDE") == "c"
    assert world.router.zone("app", "inside") == "b"
    assert world.router.zone("app", "OTHER") is None


def test_routes_are_counted() -> None:
    world = World()
    foo = world.image.topic("foo")
    assert foo is not None
    for zone in ("b", "b", "z", None):
        world.router.located(foo, 0, zone, world.alive())
    assert world.router.routes == {Route.LOCAL: 2, Route.REMOTE: 1, Route.UNAWARE: 1}


def test_gateways_follow_metadata() -> None:
    # DC-56 partly: a gateway that stops is no longer named.
    world = World()
    assert list(world.router.produce_gateways(1, "b")) == [2]
    assert world.router.produce_gateways(1, None) == ()
    assert world.router.produce_gateways(7, "b") == ()
    world.fence(2)
    assert list(world.router.produce_gateways(1, "b")) == [1, 3]
    assert list(world.router.produce_gateways(1, "a")) == [1]


def test_gateways_follow_the_coordinators() -> None:
    world = World()
    before = world.router.produce_gateways(0, "b")
    world.apply(PartitionChangeRecord(0, COORDINATORS, leader=2))
    assert world.router._gateways is None
    assert list(before) == list(world.router.produce_gateways(0, "b")) == [2]


def test_without_coordinators_there_are_no_gateways() -> None:
    image = ClusterImage()
    router = Router(image, {})
    router.metadata_changed(image, Delta())
    assert router.produce_gateways(0, "a") == ()


def test_a_consumer_is_sent_to_the_replica_in_its_rack() -> None:
    world = World()
    foo = world.image.topic("foo")
    assert foo is not None
    assert world.router.replica_in(foo, 0, "b", reader=1) == 2
    assert world.router.replica_in(foo, 0, "a", reader=1) is None, "it is there already"
    assert world.router.replica_in(foo, 0, "z", reader=1) is None
    world.fence(2)
    assert world.router.replica_in(foo, 0, "b", reader=1) is None
