"""Generated from Kafka's SaslHandshakeRequest.json; do not edit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from skylog.wire.schema import LAST, NEVER, Field, Message, Versions


@dataclass(slots=True)
class SaslHandshakeRequest(Message):
    mechanism: str = ""
    TYPE = "request"
    API_KEY = 17
    VERSIONS = Versions(0, 1)
    FLEXIBLE = NEVER
    LISTENERS = ('broker', 'controller')
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("mechanism", "string", Versions(0, LAST), ""),
    )

