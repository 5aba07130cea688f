"""Generated from Kafka's DeleteGroupsResponse.json; do not edit."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from skylog.wire.schema import LAST, Field, Message, Struct, Versions


@dataclass(slots=True)
class DeletableGroupResult(Struct):
    group_id: str = ""
    error_code: int = 0
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("group_id", "string", Versions(0, LAST), ""),
        Field("error_code", "int16", Versions(0, LAST), 0),
    )


@dataclass(slots=True)
class DeleteGroupsResponse(Message):
    throttle_time_ms: int = 0
    results: list[DeletableGroupResult] = field(default_factory=list)
    TYPE = "response"
    API_KEY = 42
    VERSIONS = Versions(0, 2)
    FLEXIBLE = Versions(2, LAST)
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("throttle_time_ms", "int32", Versions(0, LAST), 0),
        Field("results", DeletableGroupResult, Versions(0, LAST), (), array=True),
    )

