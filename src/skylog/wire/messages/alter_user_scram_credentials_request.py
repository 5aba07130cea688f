"""Generated from Kafka's AlterUserScramCredentialsRequest.json; do not edit."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from skylog.wire.schema import LAST, Field, Message, Struct, Versions


@dataclass(slots=True)
class ScramCredentialDeletion(Struct):
    name: str = ""
    mechanism: int = 0
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("name", "string", Versions(0, LAST), ""),
        Field("mechanism", "int8", Versions(0, LAST), 0),
    )


@dataclass(slots=True)
class ScramCredentialUpsertion(Struct):
    name: str = ""
    mechanism: int = 0
    iterations: int = 0
    salt: bytes = b""
    salted_password: bytes = b""
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("name", "string", Versions(0, LAST), ""),
        Field("mechanism", "int8", Versions(0, LAST), 0),
        Field("iterations", "int32", Versions(0, LAST), 0),
        Field("salt", "bytes", Versions(0, LAST), b""),
        Field("salted_password", "bytes", Versions(0, LAST), b""),
    )


@dataclass(slots=True)
class AlterUserScramCredentialsRequest(Message):
    deletions: list[ScramCredentialDeletion] = field(default_factory=list)
    upsertions: list[ScramCredentialUpsertion] = field(default_factory=list)
    TYPE = "request"
    API_KEY = 51
    VERSIONS = Versions(0, 0)
    FLEXIBLE = Versions(0, LAST)
    LISTENERS = ('broker', 'controller')
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("deletions", ScramCredentialDeletion, Versions(0, LAST), (), array=True),
        Field("upsertions", ScramCredentialUpsertion, Versions(0, LAST), (), array=True),
    )

