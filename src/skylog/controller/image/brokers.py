"""Registrations of brokers and controllers. A registration is immutable and replaced on change."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from skylog.controller.image.delta import Delta
from skylog.kernel.errors import invariant
from skylog.kernel.ids import ZERO_UUID, Uuid
from skylog.wire.messages import register_broker_record, register_controller_record
from skylog.wire.messages.broker_registration_change_record import BrokerRegistrationChangeRecord
from skylog.wire.messages.fence_broker_record import FenceBrokerRecord
from skylog.wire.messages.register_broker_record import RegisterBrokerRecord
from skylog.wire.messages.register_controller_record import RegisterControllerRecord
from skylog.wire.messages.unfence_broker_record import UnfenceBrokerRecord
from skylog.wire.messages.unregister_broker_record import UnregisterBrokerRecord
from skylog.wire.schema import Message

# A replica in an unknown directory counts as one in an online directory.
MIGRATING_DIRECTORY: Final = ZERO_UUID
UNASSIGNED_DIRECTORY: Final = Uuid((1).to_bytes(16, "big"))
LOST_DIRECTORY: Final = Uuid((2).to_bytes(16, "big"))
_RESERVED_DIRECTORIES: Final = 100

FENCE: Final = 1
UNFENCE: Final = -1
ENTER_CONTROLLED_SHUTDOWN: Final = 1

VersionRange = tuple[int, int]


def is_reserved_directory(directory: Uuid) -> bool:
    """Kafka reserves the first hundred ids."""
    return int.from_bytes(directory, "big") < _RESERVED_DIRECTORIES


@dataclass(frozen=True, slots=True)
class Node:
    """A broker's address on one listener."""

    id: int
    host: str
    port: int
    rack: str | None = None


@dataclass(frozen=True, slots=True)
class Endpoint:
    """One listener of a broker or controller."""

    name: str
    host: str
    port: int
    security_protocol: int


@dataclass(frozen=True, slots=True)
class Broker:
    """One registered broker."""

    broker_id: int
    epoch: int
    incarnation_id: Uuid
    endpoints: tuple[Endpoint, ...] = ()
    features: Mapping[str, VersionRange] = field(default_factory=dict)
    rack: str | None = None
    fenced: bool = True
    in_controlled_shutdown: bool = False
    directories: tuple[Uuid, ...] = ()
    # None: the broker has not yet reported which directories take no new partitions.
    cordoned_directories: tuple[Uuid, ...] | None = None

    @classmethod
    def from_record(cls, record: RegisterBrokerRecord) -> Broker:
        cordoned = record.cordoned_log_dirs
        return cls(
            broker_id=record.broker_id,
            epoch=record.broker_epoch,
            incarnation_id=record.incarnation_id,
            endpoints=_endpoints(record.end_points),
            features=_features(record.features),
            rack=record.rack,
            fenced=record.fenced,
            in_controlled_shutdown=record.in_controlled_shutdown,
            directories=tuple(record.log_dirs),
            cordoned_directories=None if cordoned is None else tuple(cordoned),
        )

    def to_record(self) -> RegisterBrokerRecord:
        cordoned = self.cordoned_directories
        return RegisterBrokerRecord(
            broker_id=self.broker_id,
            incarnation_id=self.incarnation_id,
            broker_epoch=self.epoch,
            end_points=[
                register_broker_record.BrokerEndpoint(
                    endpoint.name, endpoint.host, endpoint.port, endpoint.security_protocol
                )
                for endpoint in self.endpoints
            ],
            features=[
                register_broker_record.BrokerFeature(name, low, high)
                for name, (low, high) in self.features.items()
            ],
            rack=self.rack,
            fenced=self.fenced,
            in_controlled_shutdown=self.in_controlled_shutdown,
            log_dirs=list(self.directories),
            cordoned_log_dirs=None if cordoned is None else list(cordoned),
        )

    @property
    def active(self) -> bool:
        """Whether it may lead and be in sync."""
        return not self.fenced and not self.in_controlled_shutdown

    @property
    def default_directory(self) -> Uuid:
        """The directory of a new replica on this broker, as far as it is known here."""
        if not self.directories:
            return MIGRATING_DIRECTORY
        return self.directories[0] if len(self.directories) == 1 else UNASSIGNED_DIRECTORY

    def has_online_directory(self, directory: Uuid) -> bool:
        if directory in (UNASSIGNED_DIRECTORY, MIGRATING_DIRECTORY):
            return True
        if directory == LOST_DIRECTORY:
            return False
        # A broker that lists none is older than directory ids: all its directories are online.
        return not self.directories or directory in self.directories

    @property
    def takes_partitions(self) -> bool:
        if not self.directories or self.cordoned_directories is None:
            return True
        return any(found not in self.cordoned_directories for found in self.directories)

    def node(self, listener: str) -> Node | None:
        """Its address on a listener. A broker has only a few of them."""
        for endpoint in self.endpoints:
            if endpoint.name == listener:
                return Node(self.broker_id, endpoint.host, endpoint.port, self.rack)
        return None


@dataclass(frozen=True, slots=True)
class ControllerNode:
    """One registered controller."""

    controller_id: int
    incarnation_id: Uuid
    endpoints: tuple[Endpoint, ...] = ()
    features: Mapping[str, VersionRange] = field(default_factory=dict)

    def to_record(self) -> RegisterControllerRecord:
        return RegisterControllerRecord(
            controller_id=self.controller_id,
            incarnation_id=self.incarnation_id,
            end_points=[
                register_controller_record.ControllerEndpoint(
                    endpoint.name, endpoint.host, endpoint.port, endpoint.security_protocol
                )
                for endpoint in self.endpoints
            ],
            features=[
                register_controller_record.ControllerFeature(name, low, high)
                for name, (low, high) in self.features.items()
            ],
        )


def _endpoints(
    found: Iterable[register_broker_record.BrokerEndpoint]
    | Iterable[register_controller_record.ControllerEndpoint],
) -> tuple[Endpoint, ...]:
    return tuple(Endpoint(one.name, one.host, one.port, one.security_protocol) for one in found)


def _features(
    found: Iterable[register_broker_record.BrokerFeature]
    | Iterable[register_controller_record.ControllerFeature],
) -> dict[str, VersionRange]:
    return {one.name: (one.min_supported_version, one.max_supported_version) for one in found}


class Brokers:
    """All registrations, by id."""

    def __init__(self) -> None:
        self.by_id: dict[int, Broker] = {}
        self.controllers: dict[int, ControllerNode] = {}

    def apply_register(self, record: RegisterBrokerRecord, delta: Delta) -> None:
        self._put(Broker.from_record(record), delta)

    def apply_unregister(self, record: UnregisterBrokerRecord, delta: Delta) -> None:
        broker = self._broker(record.broker_id, record.broker_epoch)
        del self.by_id[broker.broker_id]
        delta.brokers.add(broker.broker_id)

    def apply_fence(self, record: FenceBrokerRecord, delta: Delta) -> None:
        self._put(replace(self._broker(record.id, record.epoch), fenced=True), delta)

    def apply_unfence(self, record: UnfenceBrokerRecord, delta: Delta) -> None:
        self._put(replace(self._broker(record.id, record.epoch), fenced=False), delta)

    def apply_change(self, record: BrokerRegistrationChangeRecord, delta: Delta) -> None:
        broker = self._broker(record.broker_id, record.broker_epoch)
        cordoned = record.cordoned_log_dirs
        self._put(
            replace(
                broker,
                fenced=broker.fenced if record.fenced == 0 else record.fenced == FENCE,
                in_controlled_shutdown=(
                    broker.in_controlled_shutdown or record.in_controlled_shutdown != 0
                ),
                directories=tuple(record.log_dirs) or broker.directories,
                cordoned_directories=(
                    broker.cordoned_directories if cordoned is None else tuple(cordoned)
                ),
            ),
            delta,
        )

    def apply_controller(self, record: RegisterControllerRecord, delta: Delta) -> None:
        self.controllers[record.controller_id] = ControllerNode(
            record.controller_id,
            record.incarnation_id,
            _endpoints(record.end_points),
            _features(record.features),
        )
        delta.controllers.add(record.controller_id)

    def owner(self, directory: Uuid) -> int | None:
        """The broker that has registered a directory."""
        for broker in self.by_id.values():
            if directory in broker.directories:
                return broker.broker_id
        return None

    def is_active(self, broker_id: int) -> bool:
        broker = self.by_id.get(broker_id)
        return broker is not None and broker.active

    def records(self) -> Iterator[Message]:
        for broker in self.by_id.values():
            yield broker.to_record()
        for controller in self.controllers.values():
            yield controller.to_record()

    def _put(self, broker: Broker, delta: Delta) -> None:
        self.by_id[broker.broker_id] = broker
        delta.brokers.add(broker.broker_id)

    def _broker(self, broker_id: int, epoch: int) -> Broker:
        broker = self.by_id.get(broker_id)
        invariant(broker is not None, f"broker {broker_id} is registered")
        invariant(broker and broker.epoch == epoch, f"broker {broker_id} is of epoch {epoch}")
        return broker  # type: ignore[return-value]
