"""Generated from DescribeUserScramCredentialsRequest.json; do not edit."""

from __future__ import annotations

from skylog.wire.schema import LAST, UNSET, Field, Message, Struct, Versions


class UserName(Struct):
    __slots__ = ("name",)
    FIELDS = (
        Field("name", "string", Versions(0, LAST), ""),
    )

    def __init__(
        self,
        name: str = "",
    ) -> None:
        self.name = name


class DescribeUserScramCredentialsRequest(Message):
    __slots__ = ("users",)
    TYPE = "request"
    API_KEY = 50
    VERSIONS = Versions(0, 0)
    FLEXIBLE = Versions(0, LAST)
    LISTENERS = ('broker', 'controller')
    FIELDS = (
        Field("users", UserName, Versions(0, LAST), (), array=True, nullable=Versions(0, LAST)),
    )

    def __init__(
        self,
        users: list[UserName] | None = UNSET,
    ) -> None:
        self.users = [] if users is UNSET else users

