"""Generated from Kafka's InitProducerIdRequest.json; do not edit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from skylog.wire.schema import LAST, Field, Message, Versions


@dataclass(slots=True)
class InitProducerIdRequest(Message):
    transactional_id: str | None = ""
    transaction_timeout_ms: int = 0
    producer_id: int = -1
    producer_epoch: int = -1
    enable2_pc: bool = False
    keep_prepared_txn: bool = False
    TYPE = "request"
    API_KEY = 22
    VERSIONS = Versions(0, 6)
    FLEXIBLE = Versions(2, LAST)
    LISTENERS = ('broker',)
    LATEST_UNSTABLE = True
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("transactional_id", "string", Versions(0, LAST), "", nullable=Versions(0, LAST)),
        Field("transaction_timeout_ms", "int32", Versions(0, LAST), 0),
        Field("producer_id", "int64", Versions(3, LAST), -1),
        Field("producer_epoch", "int16", Versions(3, LAST), -1),
        Field("enable2_pc", "bool", Versions(6, LAST), False),
        Field("keep_prepared_txn", "bool", Versions(6, LAST), False),
    )

