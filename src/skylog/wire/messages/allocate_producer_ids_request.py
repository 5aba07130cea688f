"""Generated from Kafka's AllocateProducerIdsRequest.json; do not edit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from skylog.wire.schema import LAST, Field, Message, Versions


@dataclass(slots=True)
class AllocateProducerIdsRequest(Message):
    broker_id: int = 0
    broker_epoch: int = -1
    TYPE = "request"
    API_KEY = 67
    VERSIONS = Versions(0, 0)
    FLEXIBLE = Versions(0, LAST)
    LISTENERS = ('controller',)
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("broker_id", "int32", Versions(0, LAST), 0),
        Field("broker_epoch", "int64", Versions(0, LAST), -1),
    )

