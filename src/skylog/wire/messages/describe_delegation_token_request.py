"""Generated from Kafka's DescribeDelegationTokenRequest.json; do not edit."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from skylog.wire.schema import LAST, Field, Message, Struct, Versions


@dataclass(slots=True)
class DescribeDelegationTokenOwner(Struct):
    principal_type: str = ""
    principal_name: str = ""
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("principal_type", "string", Versions(0, LAST), ""),
        Field("principal_name", "string", Versions(0, LAST), ""),
    )


@dataclass(slots=True)
class DescribeDelegationTokenRequest(Message):
    owners: list[DescribeDelegationTokenOwner] | None = field(default_factory=list)
    TYPE = "request"
    API_KEY = 41
    VERSIONS = Versions(1, 3)
    FLEXIBLE = Versions(2, LAST)
    LISTENERS = ('broker', 'controller')
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("owners", DescribeDelegationTokenOwner, Versions(0, LAST), (), array=True, nullable=Versions(0, LAST)),
    )

