"""Client quotas: setting, removing and listing them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from typing import Final

from skylog.controller.image import ClusterImage
from skylog.controller.image.quotas import CLIENT_ID, IP, USER, QuotaEntity, quota_entity
from skylog.controller.requests import ControllerRequest
from skylog.controller.state import ControllerState, bounded
from skylog.kernel.errors import ErrorCode, KafkaError
from skylog.replicated.machine import Result
from skylog.wire.messages import alter_client_quotas_response, describe_client_quotas_response
from skylog.wire.messages.alter_client_quotas_request import AlterClientQuotasRequest, EntryData
from skylog.wire.messages.alter_client_quotas_response import AlterClientQuotasResponse
from skylog.wire.messages.client_quota_record import ClientQuotaRecord, EntityData
from skylog.wire.messages.describe_client_quotas_request import (
    ComponentData,
    DescribeClientQuotasRequest,
)
from skylog.wire.messages.describe_client_quotas_response import DescribeClientQuotasResponse
from skylog.wire.schema import Message

# The largest value of each key, None for those that may be fractional.
_CLIENT_KEYS: Final[Mapping[str, int | None]] = {
    "producer_byte_rate": 2**63 - 1,
    "consumer_byte_rate": 2**63 - 1,
    "request_percentage": None,
    "controller_mutation_rate": None,
}
_IP_KEYS: Final[Mapping[str, int | None]] = {"connection_creation_rate": 2**31 - 1}
_ENTITY_TYPES: Final = (USER, CLIENT_ID, IP)
_FRACTION_MIN: Final = 1e-6
_IPV4 = re.compile(r"(?:(?:25[0-5]|2[0-4]\d|1?\d?\d)(?:\.(?!$)|$)){4}", re.ASCII)
_IPV6 = re.compile(r"[0-9a-fA-F:.]*:[0-9a-fA-F:.]*")

_EXACT, _DEFAULT, _SPECIFIED = 0, 1, 2


def alter_client_quotas(
    state: ControllerState, _request: ControllerRequest, message: AlterClientQuotasRequest
) -> Result[AlterClientQuotasResponse]:
    """Each entity's quotas change together or not at all."""
    response = AlterClientQuotasResponse()
    records: list[Message] = []
    seen: set[QuotaEntity] = set()
    for entry in message.entries:
        # If a type is repeated, the last one counts.
        entry.entity = list({part.entity_type: part for part in entry.entity}.values())
        result = alter_client_quotas_response.EntryData(
            0,
            None,
            [
                alter_client_quotas_response.EntityData(part.entity_type, part.entity_name)
                for part in entry.entity
            ],
        )
        response.entries.append(result)
        try:
            records += _alter(state, entry, seen)
        except KafkaError as error:
            result.error_code, result.error_message = error.code, error.message
    return Result(response, () if message.validate_only else bounded(records))


def _alter(state: ControllerState, entry: EntryData, seen: set[QuotaEntity]) -> list[Message]:
    entity = quota_entity((part.entity_type, part.entity_name) for part in entry.entity)
    if entity in seen:
        raise _invalid("Ignoring duplicate entity.")
    seen.add(entity)
    for key, count in Counter(op.key for op in entry.ops).items():
        if count > 1:
            raise _invalid(f"Duplicate quota key {key}.")
    limits = _keys_of(entity)
    current = state.image.quotas.of(entity)
    records: list[Message] = []
    for op in entry.ops:
        if op.remove:
            if op.key in current:
                records.append(ClientQuotaRecord(_parts(entity), op.key, remove=True))
            continue
        _check_value(limits, op.key, op.value)
        if current.get(op.key) != op.value:
            records.append(ClientQuotaRecord(_parts(entity), op.key, op.value))
    return records


def _parts(entity: QuotaEntity) -> list[EntityData]:
    return [EntityData(kind, name) for kind, name in entity]


def _keys_of(entity: QuotaEntity) -> Mapping[str, int | None]:
    """The keys allowed for this kind of entity; INVALID_REQUEST for an unknown kind."""
    if not entity:
        raise _invalid("Invalid empty client quota entity")
    kinds = [kind for kind, _ in entity]
    for kind, name in entity:
        if kind not in _ENTITY_TYPES:
            raise _invalid(f"Unhandled client quota entity type: {kind}")
        if name == "":
            raise _invalid(f"Empty {kind} not supported")
    if IP not in kinds:
        return _CLIENT_KEYS
    if len(kinds) > 1:
        raise _invalid("An ip entity cannot be combined with a user or client-id.")
    address = entity[0][1]
    if address is not None and not _is_address(address):
        raise _invalid(f"{address} is not a valid IP address.")
    return _IP_KEYS


def _is_address(text: str) -> bool:
    """By its syntax alone: the controller does not resolve names."""
    return _IPV4.fullmatch(text) is not None or _IPV6.fullmatch(text) is not None


def _check_value(limits: Mapping[str, int | None], key: str, value: float) -> None:
    if key not in limits:
        raise _invalid(f"Invalid configuration key {key}")
    if not value > 0.0:
        raise _invalid(f"Quota {key} must be greater than 0")
    most = limits[key]
    if most is None:
        return
    if value > most:
        raise _invalid(f"Proposed value for {key} is too large.")
    if value % 1.0 > _FRACTION_MIN:
        raise _invalid(f"{key} cannot be a fractional value.")


def describe_client_quotas(
    image: ClusterImage, message: DescribeClientQuotasRequest
) -> DescribeClientQuotasResponse:
    """Raises INVALID_REQUEST or UNSUPPORTED_VERSION for an invalid filter."""
    exact: dict[str, str | None] = {}
    named: set[str] = set()
    for component in message.components:
        if component.entity_type in exact or component.entity_type in named:
            raise _invalid(
                f"Entity type {component.entity_type} cannot appear more than once in the filter."
            )
        _check_component(component)
        if component.match_type == _SPECIFIED:
            named.add(component.entity_type)
        else:
            exact[component.entity_type] = component.match
    asked = named | set(exact)
    if IP in asked and len(asked) > 1:
        raise _invalid("An ip filter cannot be combined with user or client-id.")
    response = DescribeClientQuotasResponse(entries=[])
    for entity, values in image.quotas.by_entity.items():
        if _matches(dict(entity), exact, named, message.strict):
            response.entries.append(  # type: ignore[union-attr]
                describe_client_quotas_response.EntryData(
                    [describe_client_quotas_response.EntityData(*part) for part in entity],
                    [describe_client_quotas_response.ValueData(*pair) for pair in values.items()],
                )
            )
    return response


def _check_component(component: ComponentData) -> None:
    if not component.entity_type:
        raise _invalid("Invalid empty entity type.")
    if component.entity_type not in _ENTITY_TYPES:
        raise KafkaError(
            ErrorCode.UNSUPPORTED_VERSION, f"Unsupported entity type {component.entity_type}"
        )
    if component.match_type not in (_EXACT, _DEFAULT, _SPECIFIED):
        raise _invalid(f"Unknown match type {component.match_type}")
    if component.match_type == _EXACT and component.match is None:
        raise _invalid("An exact match needs a name.")
    if component.match_type != _EXACT and component.match is not None:
        raise _invalid("Only an exact match takes a name.")


def _matches(
    entity: Mapping[str, str | None],
    exact: Mapping[str, str | None],
    named: set[str],
    strict: bool,
) -> bool:
    if strict and len(entity) != len(exact) + len(named):
        return False
    if any(kind not in entity or entity[kind] != name for kind, name in exact.items()):
        return False
    return all(kind in entity for kind in named)


def _invalid(why: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_REQUEST, why)
