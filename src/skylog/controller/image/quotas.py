"""Client quotas by entity."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Final

from skylog.controller.image.delta import Delta
from skylog.wire.messages.client_quota_record import ClientQuotaRecord, EntityData
from skylog.wire.schema import Message

USER: Final = "user"
CLIENT_ID: Final = "client-id"
IP: Final = "ip"

# Entity types with names, sorted by type; a name of None is the type's default.
QuotaEntity = tuple[tuple[str, str | None], ...]
_NONE: Final[Mapping[str, float]] = MappingProxyType({})


def quota_entity(parts: Iterable[tuple[str, str | None]]) -> QuotaEntity:
    return tuple(sorted(parts, key=lambda part: part[0]))


class Quotas:
    """Quota values by entity; an entity without any has no entry."""

    def __init__(self) -> None:
        self.by_entity: dict[QuotaEntity, dict[str, float]] = {}

    def of(self, entity: QuotaEntity) -> Mapping[str, float]:
        return self.by_entity.get(entity, _NONE)

    def apply(self, record: ClientQuotaRecord, delta: Delta) -> None:
        entity = quota_entity((part.entity_type, part.entity_name) for part in record.entity)
        quotas = self.by_entity.setdefault(entity, {})
        if record.remove:
            quotas.pop(record.key, None)
        else:
            quotas[record.key] = record.value
        if not quotas:
            del self.by_entity[entity]
        delta.quotas.add(entity)

    def records(self) -> Iterator[Message]:
        for entity, quotas in self.by_entity.items():
            for key, value in quotas.items():
                yield ClientQuotaRecord([EntityData(*part) for part in entity], key, value)
