"""Generated from Kafka's DescribeUserScramCredentialsResponse.json; do not edit."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from skylog.wire.schema import LAST, Field, Message, Struct, Versions


@dataclass(slots=True)
class CredentialInfo(Struct):
    mechanism: int = 0
    iterations: int = 0
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("mechanism", "int8", Versions(0, LAST), 0),
        Field("iterations", "int32", Versions(0, LAST), 0),
    )


@dataclass(slots=True)
class DescribeUserScramCredentialsResult(Struct):
    user: str = ""
    error_code: int = 0
    error_message: str | None = ""
    credential_infos: list[CredentialInfo] = field(default_factory=list)
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("user", "string", Versions(0, LAST), ""),
        Field("error_code", "int16", Versions(0, LAST), 0),
        Field("error_message", "string", Versions(0, LAST), "", nullable=Versions(0, LAST)),
        Field("credential_infos", CredentialInfo, Versions(0, LAST), (), array=True),
    )


@dataclass(slots=True)
class DescribeUserScramCredentialsResponse(Message):
    throttle_time_ms: int = 0
    error_code: int = 0
    error_message: str | None = ""
    results: list[DescribeUserScramCredentialsResult] = field(default_factory=list)
    TYPE = "response"
    API_KEY = 50
    VERSIONS = Versions(0, 0)
    FLEXIBLE = Versions(0, LAST)
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("throttle_time_ms", "int32", Versions(0, LAST), 0),
        Field("error_code", "int16", Versions(0, LAST), 0),
        Field("error_message", "string", Versions(0, LAST), "", nullable=Versions(0, LAST)),
        Field("results", DescribeUserScramCredentialsResult, Versions(0, LAST), (), array=True),
    )

