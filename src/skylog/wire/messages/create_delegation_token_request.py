"""Generated from CreateDelegationTokenRequest.json; do not edit."""

from __future__ import annotations

from skylog.wire.schema import LAST, UNSET, Field, Message, Struct, Versions


class CreatableRenewers(Struct):
    __slots__ = ("principal_type", "principal_name",)
    FIELDS = (
        Field("principal_type", "string", Versions(0, LAST), ""),
        Field("principal_name", "string", Versions(0, LAST), ""),
    )

    def __init__(
        self,
        principal_type: str = "",
        principal_name: str = "",
    ) -> None:
        self.principal_type = principal_type
        self.principal_name = principal_name


class CreateDelegationTokenRequest(Message):
    __slots__ = ("owner_principal_type", "owner_principal_name", "renewers", "max_lifetime_ms",)
    TYPE = "request"
    API_KEY = 38
    VERSIONS = Versions(1, 3)
    FLEXIBLE = Versions(2, LAST)
    LISTENERS = ('broker', 'controller')
    FIELDS = (
        Field("owner_principal_type", "string", Versions(3, LAST), "", nullable=Versions(3, LAST)),
        Field("owner_principal_name", "string", Versions(3, LAST), "", nullable=Versions(3, LAST)),
        Field("renewers", CreatableRenewers, Versions(0, LAST), (), array=True),
        Field("max_lifetime_ms", "int64", Versions(0, LAST), 0),
    )

    def __init__(
        self,
        owner_principal_type: str | None = "",
        owner_principal_name: str | None = "",
        renewers: list[CreatableRenewers] = UNSET,
        max_lifetime_ms: int = 0,
    ) -> None:
        self.owner_principal_type = owner_principal_type
        self.owner_principal_name = owner_principal_name
        self.renewers = [] if renewers is UNSET else renewers
        self.max_lifetime_ms = max_lifetime_ms

