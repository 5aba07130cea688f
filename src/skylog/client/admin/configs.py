"""Configurations of topics, brokers and groups."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from typing import NamedTuple

from skylog.client.admin.ask import outcome
from skylog.client.cluster import Cluster
from skylog.client.connection import ClientConnection
from skylog.kernel.config import Operation
from skylog.kernel.errors import KafkaError
from skylog.wire.messages.describe_configs_request import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
)
from skylog.wire.messages.describe_configs_response import (
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
)
from skylog.wire.messages.incremental_alter_configs_request import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from skylog.wire.messages.incremental_alter_configs_response import (
    IncrementalAlterConfigsResponse,
)


class ConfigType(IntEnum):
    """The kind of resource that a configuration belongs to."""

    TOPIC = 2
    BROKER = 4
    BROKER_LOGGER = 8
    CLIENT_METRICS = 16
    GROUP = 32


class ConfigResource(NamedTuple):
    """A topic, a broker by its id, all brokers (an empty name), or a group."""

    type: ConfigType
    name: str


class ConfigSource(IntEnum):
    """The source of a value."""

    UNKNOWN = -1
    NONE = 0
    TOPIC = 1
    BROKER = 2
    DEFAULT_BROKER = 3
    STATIC_BROKER = 4
    DEFAULT = 5
    BROKER_LOGGER = 6
    CLIENT_METRICS = 7
    GROUP = 8


@dataclass(frozen=True, slots=True)
class ConfigEntry:
    """A setting's effective value, and the values behind it, first the one that applies."""

    name: str
    value: str | None
    source: int
    read_only: bool
    sensitive: bool
    synonyms: tuple[tuple[str, str | None, int], ...] = field(default=())
    documentation: str | None = None


class Change(NamedTuple):
    """One change of a setting."""

    name: str
    value: str | None = None
    operation: Operation = Operation.SET


class ConfigAdmin:
    """Brokers are asked about themselves; any broker knows everything else."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster

    async def describe(
        self,
        resources: Collection[ConfigResource],
        keys: Sequence[str] | None = None,
        *,
        synonyms: bool = False,
        documentation: bool = False,
    ) -> dict[ConfigResource, list[ConfigEntry] | KafkaError]:
        found: dict[ConfigResource, list[ConfigEntry] | KafkaError] = {}
        chosen = None if keys is None else list(keys)
        for node_id, asked in _by_node(resources).items():
            wanted = [
                DescribeConfigsResource(resource.type, resource.name, chosen) for resource in asked
            ]
            request = DescribeConfigsRequest(wanted, synonyms, documentation)

            async def ask(
                node_id: int | None = node_id, request: DescribeConfigsRequest = request
            ) -> DescribeConfigsResponse:
                answer: DescribeConfigsResponse = await (await self._at(node_id)).request(request)
                return answer

            for result in (await self._cluster.retry(ask)).results:
                key = ConfigResource(ConfigType(result.resource_type), result.resource_name)
                error = outcome(result.error_code, result.error_message)
                found[key] = error or [_entry(config) for config in result.configs]
        return found

    async def alter(
        self,
        changes: Mapping[ConfigResource, Collection[Change]],
        *,
        validate_only: bool = False,
    ) -> dict[ConfigResource, KafkaError | None]:
        found: dict[ConfigResource, KafkaError | None] = {}
        for node_id, asked in _by_node(changes).items():
            altered = [
                AlterConfigsResource(
                    resource.type,
                    resource.name,
                    [AlterableConfig(c.name, c.operation, c.value) for c in changes[resource]],
                )
                for resource in asked
            ]
            request = IncrementalAlterConfigsRequest(altered, validate_only)
            connection = await self._at(node_id)
            answer: IncrementalAlterConfigsResponse = await connection.request(request)
            for result in answer.responses:
                key = ConfigResource(ConfigType(result.resource_type), result.resource_name)
                found[key] = outcome(result.error_code, result.error_message)
        return found

    async def _at(self, node_id: int | None) -> ClientConnection:
        if node_id is None:
            return await self._cluster.any_node()
        return await self._cluster.node(node_id)


def _by_node(resources: Collection[ConfigResource]) -> dict[int | None, list[ConfigResource]]:
    grouped: dict[int | None, list[ConfigResource]] = {}
    for resource in resources:
        own = resource.type in (ConfigType.BROKER, ConfigType.BROKER_LOGGER)
        node_id = int(resource.name) if own and resource.name.isdigit() else None
        grouped.setdefault(node_id, []).append(resource)
    return grouped


def _entry(config: DescribeConfigsResourceResult) -> ConfigEntry:
    return ConfigEntry(
        config.name,
        config.value,
        config.config_source,
        config.read_only,
        config.is_sensitive,
        tuple((synonym.name, synonym.value, synonym.source) for synonym in config.synonyms),
        config.documentation,
    )
