"""Generated from Kafka's EnvelopeRequest.json; do not edit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from skylog.wire.schema import LAST, Field, Message, Versions


@dataclass(slots=True)
class EnvelopeRequest(Message):
    request_data: bytes = b""
    request_principal: bytes | None = b""
    client_host_address: bytes = b""
    TYPE = "request"
    API_KEY = 58
    VERSIONS = Versions(0, 0)
    FLEXIBLE = Versions(0, LAST)
    LISTENERS = ('controller',)
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("request_data", "bytes", Versions(0, LAST), b""),
        Field("request_principal", "bytes", Versions(0, LAST), b"", nullable=Versions(0, LAST)),
        Field("client_host_address", "bytes", Versions(0, LAST), b""),
    )

