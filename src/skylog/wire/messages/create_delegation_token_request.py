"""Generated from Kafka's CreateDelegationTokenRequest.json; do not edit."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from skylog.wire.schema import LAST, Field, Message, Struct, Versions


@dataclass(slots=True)
class CreatableRenewers(Struct):
    principal_type: str = ""
    principal_name: str = ""
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("principal_type", "string", Versions(0, LAST), ""),
        Field("principal_name", "string", Versions(0, LAST), ""),
    )


@dataclass(slots=True)
class CreateDelegationTokenRequest(Message):
    owner_principal_type: str | None = ""
    owner_principal_name: str | None = ""
    renewers: list[CreatableRenewers] = field(default_factory=list)
    max_lifetime_ms: int = 0
    TYPE = "request"
    API_KEY = 38
    VERSIONS = Versions(1, 3)
    FLEXIBLE = Versions(2, LAST)
    LISTENERS = ('broker', 'controller')
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("owner_principal_type", "string", Versions(3, LAST), "", nullable=Versions(3, LAST)),
        Field("owner_principal_name", "string", Versions(3, LAST), "", nullable=Versions(3, LAST)),
        Field("renewers", CreatableRenewers, Versions(0, LAST), (), array=True),
        Field("max_lifetime_ms", "int64", Versions(0, LAST), 0),
    )

