"""Generated from Kafka's DelegationTokenRecord.json; do not edit."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from skylog.wire.schema import LAST, Field, Message, Versions


@dataclass(slots=True)
class DelegationTokenRecord(Message):
    owner: str = ""
    requester: str = ""
    renewers: list[str] = field(default_factory=list)
    issue_timestamp: int = 0
    max_timestamp: int = 0
    expiration_timestamp: int = 0
    token_id: str = ""
    TYPE = "metadata"
    API_KEY = 10
    VERSIONS = Versions(0, 0)
    FLEXIBLE = Versions(0, LAST)
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("owner", "string", Versions(0, LAST), ""),
        Field("requester", "string", Versions(0, LAST), ""),
        Field("renewers", "string", Versions(0, LAST), (), array=True),
        Field("issue_timestamp", "int64", Versions(0, LAST), 0),
        Field("max_timestamp", "int64", Versions(0, LAST), 0),
        Field("expiration_timestamp", "int64", Versions(0, LAST), 0),
        Field("token_id", "string", Versions(0, LAST), ""),
    )

