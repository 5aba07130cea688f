"""Generated from ListTransactionsResponse.json; do not edit."""

from __future__ import annotations

from skylog.wire.schema import LAST, UNSET, Field, Message, Struct, Versions


class TransactionState(Struct):
    __slots__ = ("transactional_id", "producer_id", "transaction_state",)
    FIELDS = (
        Field("transactional_id", "string", Versions(0, LAST), ""),
        Field("producer_id", "int64", Versions(0, LAST), 0),
        Field("transaction_state", "string", Versions(0, LAST), ""),
    )

    def __init__(
        self,
        transactional_id: str = "",
        producer_id: int = 0,
        transaction_state: str = "",
    ) -> None:
        self.transactional_id = transactional_id
        self.producer_id = producer_id
        self.transaction_state = transaction_state


class ListTransactionsResponse(Message):
    __slots__ = ("throttle_time_ms", "error_code", "unknown_state_filters", "transaction_states",)
    TYPE = "response"
    API_KEY = 66
    VERSIONS = Versions(0, 2)
    FLEXIBLE = Versions(0, LAST)
    FIELDS = (
        Field("throttle_time_ms", "int32", Versions(0, LAST), 0),
        Field("error_code", "int16", Versions(0, LAST), 0),
        Field("unknown_state_filters", "string", Versions(0, LAST), (), array=True),
        Field("transaction_states", TransactionState, Versions(0, LAST), (), array=True),
    )

    def __init__(
        self,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        unknown_state_filters: list[str] = UNSET,
        transaction_states: list[TransactionState] = UNSET,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.unknown_state_filters = [] if unknown_state_filters is UNSET else unknown_state_filters
        self.transaction_states = [] if transaction_states is UNSET else transaction_states

