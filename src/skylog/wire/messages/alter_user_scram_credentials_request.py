"""Generated from AlterUserScramCredentialsRequest.json; do not edit."""

from __future__ import annotations

from skylog.wire.schema import LAST, UNSET, Field, Message, Struct, Versions


class ScramCredentialDeletion(Struct):
    __slots__ = ("name", "mechanism",)
    FIELDS = (
        Field("name", "string", Versions(0, LAST), ""),
        Field("mechanism", "int8", Versions(0, LAST), 0),
    )

    def __init__(
        self,
        name: str = "",
        mechanism: int = 0,
    ) -> None:
        self.name = name
        self.mechanism = mechanism


class ScramCredentialUpsertion(Struct):
    __slots__ = ("name", "mechanism", "iterations", "salt", "salted_password",)
    FIELDS = (
        Field("name", "string", Versions(0, LAST), ""),
        Field("mechanism", "int8", Versions(0, LAST), 0),
        Field("iterations", "int32", Versions(0, LAST), 0),
        Field("salt", "bytes", Versions(0, LAST), b""),
        Field("salted_password", "bytes", Versions(0, LAST), b""),
    )

    def __init__(
        self,
        name: str = "",
        mechanism: int = 0,
        iterations: int = 0,
        salt: bytes = b"",
        salted_password: bytes = b"",
    ) -> None:
        self.name = name
        self.mechanism = mechanism
        self.iterations = iterations
        self.salt = salt
        self.salted_password = salted_password


class AlterUserScramCredentialsRequest(Message):
    __slots__ = ("deletions", "upsertions",)
    TYPE = "request"
    API_KEY = 51
    VERSIONS = Versions(0, 0)
    FLEXIBLE = Versions(0, LAST)
    LISTENERS = ('broker', 'controller')
    FIELDS = (
        Field("deletions", ScramCredentialDeletion, Versions(0, LAST), (), array=True),
        Field("upsertions", ScramCredentialUpsertion, Versions(0, LAST), (), array=True),
    )

    def __init__(
        self,
        deletions: list[ScramCredentialDeletion] = UNSET,
        upsertions: list[ScramCredentialUpsertion] = UNSET,
    ) -> None:
        self.deletions = [] if deletions is UNSET else deletions
        self.upsertions = [] if upsertions is UNSET else upsertions

