"""Generated from Kafka's SaslAuthenticateRequest.json; do not edit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from skylog.wire.schema import LAST, Field, Message, Versions


@dataclass(slots=True)
class SaslAuthenticateRequest(Message):
    auth_bytes: bytes = b""
    TYPE = "request"
    API_KEY = 36
    VERSIONS = Versions(0, 2)
    FLEXIBLE = Versions(2, LAST)
    LISTENERS = ('broker', 'controller')
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("auth_bytes", "bytes", Versions(0, LAST), b""),
    )

