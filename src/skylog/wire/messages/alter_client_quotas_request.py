"""Generated from AlterClientQuotasRequest.json; do not edit."""

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


class OpData(Struct):
    __slots__ = ("key", "value", "remove",)
    FIELDS = (
        Field("key", "string", Versions(0, LAST), ""),
        Field("value", "float64", Versions(0, LAST), 0.0),
        Field("remove", "bool", Versions(0, LAST), False),
    )

    def __init__(
        self,
        key: str = "",
        value: float = 0.0,
        remove: bool = False,
    ) -> None:
        self.key = key
        self.value = value
        self.remove = remove


class EntryData(Struct):
    __slots__ = ("entity", "ops",)
    FIELDS = (
        Field("entity", EntityData, Versions(0, LAST), (), array=True),
        Field("ops", OpData, Versions(0, LAST), (), array=True),
    )

    def __init__(
        self,
        entity: list[EntityData] = UNSET,
        ops: list[OpData] = UNSET,
    ) -> None:
        self.entity = [] if entity is UNSET else entity
        self.ops = [] if ops is UNSET else ops


class AlterClientQuotasRequest(Message):
    __slots__ = ("entries", "validate_only",)
    TYPE = "request"
    API_KEY = 49
    VERSIONS = Versions(0, 1)
    FLEXIBLE = Versions(1, LAST)
    LISTENERS = ('broker', 'controller')
    FIELDS = (
        Field("entries", EntryData, Versions(0, LAST), (), array=True),
        Field("validate_only", "bool", Versions(0, LAST), False),
    )

    def __init__(
        self,
        entries: list[EntryData] = UNSET,
        validate_only: bool = False,
    ) -> None:
        self.entries = [] if entries is UNSET else entries
        self.validate_only = validate_only

