"""Generated from Kafka's ListTransactionsResponse.json; do not edit."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from skylog.wire.schema import LAST, Field, Message, Struct, Versions


@dataclass(slots=True)
class TransactionState(Struct):
    transactional_id: str = ""
    producer_id: int = 0
    transaction_state: str = ""
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("transactional_id", "string", Versions(0, LAST), ""),
        Field("producer_id", "int64", Versions(0, LAST), 0),
        Field("transaction_state", "string", Versions(0, LAST), ""),
    )


@dataclass(slots=True)
class ListTransactionsResponse(Message):
    throttle_time_ms: int = 0
    error_code: int = 0
    unknown_state_filters: list[str] = field(default_factory=list)
    transaction_states: list[TransactionState] = field(default_factory=list)
    TYPE = "response"
    API_KEY = 66
    VERSIONS = Versions(0, 2)
    FLEXIBLE = Versions(0, LAST)
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("throttle_time_ms", "int32", Versions(0, LAST), 0),
        Field("error_code", "int16", Versions(0, LAST), 0),
        Field("unknown_state_filters", "string", Versions(0, LAST), (), array=True),
        Field("transaction_states", TransactionState, Versions(0, LAST), (), array=True),
    )

