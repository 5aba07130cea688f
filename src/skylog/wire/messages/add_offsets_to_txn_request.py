"""Generated from Kafka's AddOffsetsToTxnRequest.json; do not edit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from skylog.wire.schema import LAST, Field, Message, Versions


@dataclass(slots=True)
class AddOffsetsToTxnRequest(Message):
    transactional_id: str = ""
    producer_id: int = 0
    producer_epoch: int = 0
    group_id: str = ""
    TYPE = "request"
    API_KEY = 25
    VERSIONS = Versions(0, 4)
    FLEXIBLE = Versions(3, LAST)
    LISTENERS = ('broker',)
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("transactional_id", "string", Versions(0, LAST), ""),
        Field("producer_id", "int64", Versions(0, LAST), 0),
        Field("producer_epoch", "int16", Versions(0, LAST), 0),
        Field("group_id", "string", Versions(0, LAST), ""),
    )

