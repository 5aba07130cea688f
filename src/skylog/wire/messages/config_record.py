"""Generated from ConfigRecord.json; do not edit."""

from __future__ import annotations

from skylog.wire.schema import LAST, Field, Message, Versions


class ConfigRecord(Message):
    __slots__ = ("resource_type", "resource_name", "name", "value",)
    TYPE = "metadata"
    API_KEY = 4
    VERSIONS = Versions(0, 0)
    FLEXIBLE = Versions(0, LAST)
    FIELDS = (
        Field("resource_type", "int8", Versions(0, LAST), 0),
        Field("resource_name", "string", Versions(0, LAST), ""),
        Field("name", "string", Versions(0, LAST), ""),
        Field("value", "string", Versions(0, LAST), "", nullable=Versions(0, LAST)),
    )

    def __init__(
        self,
        resource_type: int = 0,
        resource_name: str = "",
        name: str = "",
        value: str | None = "",
    ) -> None:
        self.resource_type = resource_type
        self.resource_name = resource_name
        self.name = name
        self.value = value

