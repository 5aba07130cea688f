"""Generated from AlterClientQuotasResponse.json; do not edit."""

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


class EntryData(Struct):
    __slots__ = ("error_code", "error_message", "entity",)
    FIELDS = (
        Field("error_code", "int16", Versions(0, LAST), 0),
        Field("error_message", "string", Versions(0, LAST), "", nullable=Versions(0, LAST)),
        Field("entity", EntityData, Versions(0, LAST), (), array=True),
    )

    def __init__(
        self,
        error_code: int = 0,
        error_message: str | None = "",
        entity: list[EntityData] = UNSET,
    ) -> None:
        self.error_code = error_code
        self.error_message = error_message
        self.entity = [] if entity is UNSET else entity


class AlterClientQuotasResponse(Message):
    __slots__ = ("throttle_time_ms", "entries",)
    TYPE = "response"
    API_KEY = 49
    VERSIONS = Versions(0, 1)
    FLEXIBLE = Versions(1, LAST)
    FIELDS = (
        Field("throttle_time_ms", "int32", Versions(0, LAST), 0),
        Field("entries", EntryData, Versions(0, LAST), (), array=True),
    )

    def __init__(
        self,
        throttle_time_ms: int = 0,
        entries: list[EntryData] = UNSET,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.entries = [] if entries is UNSET else entries

