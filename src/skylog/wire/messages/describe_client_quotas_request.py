"""Generated from DescribeClientQuotasRequest.json; do not edit."""

from __future__ import annotations

from skylog.wire.schema import LAST, UNSET, Field, Message, Struct, Versions


class ComponentData(Struct):
    __slots__ = ("entity_type", "match_type", "match",)
    FIELDS = (
        Field("entity_type", "string", Versions(0, LAST), ""),
        Field("match_type", "int8", Versions(0, LAST), 0),
        Field("match", "string", Versions(0, LAST), "", nullable=Versions(0, LAST)),
    )

    def __init__(
        self,
        entity_type: str = "",
        match_type: int = 0,
        match: str | None = "",
    ) -> None:
        self.entity_type = entity_type
        self.match_type = match_type
        self.match = match


class DescribeClientQuotasRequest(Message):
    __slots__ = ("components", "strict",)
    TYPE = "request"
    API_KEY = 48
    VERSIONS = Versions(0, 1)
    FLEXIBLE = Versions(1, LAST)
    LISTENERS = ('broker',)
    FIELDS = (
        Field("components", ComponentData, Versions(0, LAST), (), array=True),
        Field("strict", "bool", Versions(0, LAST), False),
    )

    def __init__(
        self,
        components: list[ComponentData] = UNSET,
        strict: bool = False,
    ) -> None:
        self.components = [] if components is UNSET else components
        self.strict = strict

