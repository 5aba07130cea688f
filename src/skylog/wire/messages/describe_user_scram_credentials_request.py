"""Generated from Kafka's DescribeUserScramCredentialsRequest.json; do not edit."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from skylog.wire.schema import LAST, Field, Message, Struct, Versions


@dataclass(slots=True)
class UserName(Struct):
    name: str = ""
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("name", "string", Versions(0, LAST), ""),
    )


@dataclass(slots=True)
class DescribeUserScramCredentialsRequest(Message):
    users: list[UserName] | None = field(default_factory=list)
    TYPE = "request"
    API_KEY = 50
    VERSIONS = Versions(0, 0)
    FLEXIBLE = Versions(0, LAST)
    LISTENERS = ('broker', 'controller')
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("users", UserName, Versions(0, LAST), (), array=True, nullable=Versions(0, LAST)),
    )

