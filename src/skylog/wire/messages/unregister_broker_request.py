"""Generated from Kafka's UnregisterBrokerRequest.json; do not edit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from skylog.wire.schema import LAST, Field, Message, Versions


@dataclass(slots=True)
class UnregisterBrokerRequest(Message):
    broker_id: int = 0
    TYPE = "request"
    API_KEY = 64
    VERSIONS = Versions(0, 0)
    FLEXIBLE = Versions(0, LAST)
    LISTENERS = ('broker', 'controller')
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("broker_id", "int32", Versions(0, LAST), 0),
    )

