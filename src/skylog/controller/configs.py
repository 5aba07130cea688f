"""Altering configs: each resource succeeds or fails as a whole."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from skylog.controller.diskless import check_unchanged
from skylog.controller.image.configs import ConfigResource, ConfigResourceType
from skylog.controller.levels import check_remote_topic
from skylog.controller.names import check_topic_name
from skylog.controller.requests import ControllerRequest
from skylog.controller.state import MIN_ISR, ControllerState, bounded
from skylog.kernel.config import Operation, changed_list
from skylog.kernel.errors import ConfigError, ErrorCode, KafkaError
from skylog.kernel.ids import parse_node_id
from skylog.kernel.limits import CONFIG_VALUE_CHARACTERS_MAX
from skylog.replicated.machine import Result
from skylog.wire.messages import alter_configs_response, incremental_alter_configs_response
from skylog.wire.messages.alter_configs_request import AlterConfigsRequest
from skylog.wire.messages.alter_configs_response import AlterConfigsResponse
from skylog.wire.messages.clear_elr_record import ClearElrRecord
from skylog.wire.messages.config_record import ConfigRecord
from skylog.wire.messages.incremental_alter_configs_request import IncrementalAlterConfigsRequest
from skylog.wire.messages.incremental_alter_configs_response import (
    IncrementalAlterConfigsResponse,
)
from skylog.wire.schema import Message


@dataclass(frozen=True, slots=True)
class ConfigChange:
    """The change of one key; only a deletion has no value."""

    operation: Operation
    value: str | None


class _Named(Protocol):
    @property
    def name(self) -> str: ...
    @property
    def value(self) -> str | None: ...


class _Resource(Protocol):
    @property
    def resource_type(self) -> int: ...
    @property
    def resource_name(self) -> str: ...
    @property
    def configs(self) -> Sequence[_Named]: ...


def incremental_alter_configs(
    state: ControllerState, _request: ControllerRequest, message: IncrementalAlterConfigsRequest
) -> Result[IncrementalAlterConfigsResponse]:
    response = IncrementalAlterConfigsResponse()
    records: list[Message] = []
    repeated = _repeated(message.resources)
    for wanted in message.resources:
        error: KafkaError | None = None
        resource = ConfigResource(wanted.resource_type, wanted.resource_name)
        try:
            _check_shape(wanted, repeated)
            changes = {
                config.name: ConfigChange(_operation(config.config_operation), config.value)
                for config in wanted.configs
            }
            _check_nulls(
                name
                for name, change in changes.items()
                if change.value is None and change.operation is not Operation.DELETE
            )
            records += alter_resource(state, resource, changes)
        except KafkaError as refused:
            error = refused
        response.responses.append(
            incremental_alter_configs_response.AlterConfigsResourceResponse(
                *_outcome(error), wanted.resource_type, wanted.resource_name
            )
        )
    return Result(response, () if message.validate_only else bounded(records))


def alter_configs(
    state: ControllerState, _request: ControllerRequest, message: AlterConfigsRequest
) -> Result[AlterConfigsResponse]:
    """The legacy API: keys that are not named are deleted."""
    response = AlterConfigsResponse()
    records: list[Message] = []
    repeated = _repeated(message.resources)
    for wanted in message.resources:
        error: KafkaError | None = None
        resource = ConfigResource(wanted.resource_type, wanted.resource_name)
        try:
            _check_shape(wanted, repeated)
            _check_nulls(config.name for config in wanted.configs if config.value is None)
            records += _replace_resource(
                state, resource, {config.name: config.value or "" for config in wanted.configs}
            )
        except KafkaError as refused:
            error = refused
        response.responses.append(
            alter_configs_response.AlterConfigsResourceResponse(
                *_outcome(error), wanted.resource_type, wanted.resource_name
            )
        )
    return Result(response, () if message.validate_only else bounded(records))


def alter_resource(
    state: ControllerState,
    resource: ConfigResource,
    changes: Mapping[str, ConfigChange],
    *,
    new: bool = False,
) -> list[Message]:
    """The records of the changes; a KafkaError, and none of them, if one is invalid."""
    current = state.image.configs.of(resource)
    values = {
        name: _changed_value(state, resource, name, current.get(name), change)
        for name, change in changes.items()
    }
    return _set_values(state, resource, values, new=new)


def _replace_resource(
    state: ControllerState, resource: ConfigResource, wanted: Mapping[str, str]
) -> list[Message]:
    values: dict[str, str | None] = dict(wanted)
    for name in state.image.configs.of(resource):
        values.setdefault(name, None)
    return _set_values(state, resource, values)


def _set_values(
    state: ControllerState,
    resource: ConfigResource,
    values: Mapping[str, str | None],
    *,
    new: bool = False,
) -> list[Message]:
    current = state.image.configs.of(resource)
    # Brokers reload their configs on a record, so it is written even if nothing changed.
    records = [
        ConfigRecord(resource.type, resource.name, name, value)
        for name, value in values.items()
        if current.get(name) != value or resource.type == ConfigResourceType.BROKER
    ]
    for record in records:
        _check_record(state, record)
    after = {
        name: value
        for name, value in {**current, **{record.name: record.value for record in records}}.items()
        if value is not None
    }
    _check_name(resource)
    try:
        state.configs.validate(resource, after, current, state.layers(current))
    except ConfigError as error:
        raise KafkaError(ErrorCode.INVALID_CONFIG, str(error)) from error
    check_remote_topic(state, resource, after)
    if not new:
        _check_existence(state, resource)
        check_unchanged(state, resource, after)
    return [*records, *_forget_eligible_leaders(state, records)]


def _changed_value(
    state: ControllerState,
    resource: ConfigResource,
    name: str,
    current: str | None,
    change: ConfigChange,
) -> str | None:
    match change.operation:
        case Operation.SET:
            return change.value
        case Operation.DELETE:
            return None
    if not state.configs.is_list(resource.type, name):
        raise KafkaError(
            ErrorCode.INVALID_CONFIG,
            f"Can't {change.operation.name} to key {name} because its type is not LIST.",
        )
    if current is None:
        current = state.configs.default_value(resource.type, name)
    return changed_list(current or "", change.operation, change.value or "")


def _check_record(state: ControllerState, record: ConfigRecord) -> None:
    if record.value is not None and len(record.value) > CONFIG_VALUE_CHARACTERS_MAX:
        raise KafkaError(
            ErrorCode.INVALID_CONFIG,
            f"The value of {record.name} is longer than {CONFIG_VALUE_CHARACTERS_MAX} characters.",
        )
    if record.name != MIN_ISR or record.resource_type != ConfigResourceType.BROKER:
        return
    # Eligible leader replicas require one minimum ISR for the whole cluster.
    if state.elr_enabled and record.resource_name:
        raise KafkaError(
            ErrorCode.INVALID_CONFIG,
            f"Broker-level {MIN_ISR} cannot be altered while ELR is enabled.",
        )
    if state.elr_enabled and record.value is None:
        raise KafkaError(
            ErrorCode.INVALID_CONFIG,
            f"Cluster-level {MIN_ISR} cannot be removed while ELR is enabled.",
        )


def _check_name(resource: ConfigResource) -> None:
    if resource.type == ConfigResourceType.TOPIC:
        if not resource.name:
            raise _invalid("Default topic resources are not allowed.")
        check_topic_name(resource.name)
    elif resource.type == ConfigResourceType.GROUP and not resource.name:
        raise _invalid("Default group resources are not allowed.")
    elif resource.type == ConfigResourceType.BROKER and resource.name:
        broker_id = parse_node_id(resource.name)
        if broker_id is None:
            raise _invalid("Unable to parse broker name as a base 10 number.")
        if broker_id < 0:
            raise _invalid("Invalid negative broker ID.")


def _check_existence(state: ControllerState, resource: ConfigResource) -> None:
    if resource.type == ConfigResourceType.TOPIC and state.image.topic(resource.name) is None:
        raise KafkaError(
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"The topic '{resource.name}' does not exist."
        )
    if resource.type == ConfigResourceType.BROKER and resource.name:
        broker_id = int(resource.name)
        known = state.image.broker(broker_id) or broker_id in state.settings.quorum_node_ids
        if not known:
            raise KafkaError(
                ErrorCode.BROKER_ID_NOT_REGISTERED, f"No broker with id {broker_id} found."
            )


def _forget_eligible_leaders(
    state: ControllerState, records: Iterable[ConfigRecord]
) -> list[Message]:
    """Another minimum ISR invalidates the eligible leader replicas so far."""
    if not state.elr_enabled:
        return []
    return [
        ClearElrRecord(
            record.resource_name if record.resource_type == ConfigResourceType.TOPIC else ""
        )
        for record in records
        if record.name == MIN_ISR
    ]


def _repeated(resources: Iterable[_Resource]) -> set[tuple[int, str]]:
    counts = Counter((wanted.resource_type, wanted.resource_name) for wanted in resources)
    return {key for key, count in counts.items() if count > 1}


def _check_shape(wanted: _Resource, repeated: set[tuple[int, str]]) -> None:
    if (wanted.resource_type, wanted.resource_name) in repeated:
        raise _invalid("Each resource must appear at most once.")
    if len({config.name for config in wanted.configs}) != len(wanted.configs):
        raise _invalid("Error due to duplicate config keys")
    kind = ConfigResourceType.of(wanted.resource_type)
    if kind in (ConfigResourceType.UNKNOWN, ConfigResourceType.BROKER_LOGGER):
        raise _invalid(f"Unknown resource type {wanted.resource_type}")


def _check_nulls(names: Iterable[str]) -> None:
    nulls = list(names)
    if nulls:
        raise _invalid(f"Null value not supported for : {', '.join(nulls)}")


def _operation(number: int) -> Operation:
    if number not in Operation._value2member_map_:
        raise _invalid(f"Unknown operation type {number}")
    return Operation(number)


def _outcome(error: KafkaError | None) -> tuple[int, str | None]:
    return (0, None) if error is None else (error.code, error.message)


def _invalid(why: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_REQUEST, why)
