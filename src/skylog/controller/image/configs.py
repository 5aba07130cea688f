"""Dynamic configs, by resource."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from enum import IntEnum
from types import MappingProxyType
from typing import Final, NamedTuple

from skylog.controller.image.delta import Delta
from skylog.wire.messages.config_record import ConfigRecord
from skylog.wire.schema import Message


class ConfigResourceType(IntEnum):
    """Resource types; the numbers are Kafka's."""

    UNKNOWN = 0
    TOPIC = 2
    BROKER = 4
    BROKER_LOGGER = 8
    CLIENT_METRICS = 16
    GROUP = 32

    @classmethod
    def of(cls, number: int) -> ConfigResourceType:
        return cls(number) if number in cls._value2member_map_ else cls.UNKNOWN


class ConfigResource(NamedTuple):
    """A resource by type and name; the broker without a name is the default of all brokers."""

    type: int
    name: str


CLUSTER_DEFAULT: Final = ConfigResource(ConfigResourceType.BROKER, "")
NO_CONFIGS: Final[Mapping[str, str]] = MappingProxyType({})


class Configs:
    """Overrides by resource; a resource without any has no entry."""

    def __init__(self) -> None:
        self.by_resource: dict[ConfigResource, dict[str, str]] = {}

    def of(self, resource: ConfigResource) -> Mapping[str, str]:
        return self.by_resource.get(resource, NO_CONFIGS)

    def apply(self, record: ConfigRecord, delta: Delta) -> None:
        resource = ConfigResource(record.resource_type, record.resource_name)
        configs = self.by_resource.setdefault(resource, {})
        if record.value is None:
            configs.pop(record.name, None)
        else:
            configs[record.name] = record.value
        if not configs:
            del self.by_resource[resource]
        delta.configs.add(resource)

    def forget(self, resource: ConfigResource, delta: Delta) -> None:
        if self.by_resource.pop(resource, None) is not None:
            delta.configs.add(resource)

    def records(self) -> Iterator[Message]:
        for resource, configs in self.by_resource.items():
            for name, value in configs.items():
                yield ConfigRecord(resource.type, resource.name, name, value)
