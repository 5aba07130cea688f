"""Generated from ClientQuotaRecord.json; do not edit."""

from __future__ import annotations

from skylog.wire.schema import LAST, UNSET, Field, Message, Struct, Versions


class EntityData(Struct):
    __slots__ = ("entity_type", "entity_name",)
    FIELDS = (
        Field("entity_type", "string", Versions(0, LAST), ""),
        Field("entity_name", "string", Versions(0, LAST), "", nullable=Versions(0, LAST)),
    )

    def __init__(
        self,
        entity_type: str = "",
        entity_name: str | None = "",
    ) -> None:
        self.entity_type = entity_type
        self.entity_name = entity_name


class ClientQuotaRecord(Message):
    __slots__ = ("entity", "key", "value", "remove",)
    TYPE = "metadata"
    API_KEY = 14
    VERSIONS = Versions(0, 0)
    FLEXIBLE = Versions(0, LAST)
    FIELDS = (
        Field("entity", EntityData, Versions(0, LAST), (), array=True),
        Field("key", "string", Versions(0, LAST), ""),
        Field("value", "float64", Versions(0, LAST), 0.0),
        Field("remove", "bool", Versions(0, LAST), False),
    )

    def __init__(
        self,
        entity: list[EntityData] = UNSET,
        key: str = "",
        value: float = 0.0,
        remove: bool = False,
    ) -> None:
        self.entity = [] if entity is UNSET else entity
        self.key = key
        self.value = value
        self.remove = remove

