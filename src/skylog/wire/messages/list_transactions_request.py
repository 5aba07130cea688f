"""Generated from ListTransactionsRequest.json; do not edit."""

from __future__ import annotations

from skylog.wire.schema import LAST, UNSET, Field, Message, Versions


class ListTransactionsRequest(Message):
    __slots__ = ("state_filters", "producer_id_filters", "duration_filter", "transactional_id_pattern",)
    TYPE = "request"
    API_KEY = 66
    VERSIONS = Versions(0, 2)
    FLEXIBLE = Versions(0, LAST)
    LISTENERS = ('broker',)
    FIELDS = (
        Field("state_filters", "string", Versions(0, LAST), (), array=True),
        Field("producer_id_filters", "int64", Versions(0, LAST), (), array=True),
        Field("duration_filter", "int64", Versions(1, LAST), -1),
        Field("transactional_id_pattern", "string", Versions(2, LAST), None, nullable=Versions(2, LAST)),
    )

    def __init__(
        self,
        state_filters: list[str] = UNSET,
        producer_id_filters: list[int] = UNSET,
        duration_filter: int = -1,
        transactional_id_pattern: str | None = None,
    ) -> None:
        self.state_filters = [] if state_filters is UNSET else state_filters
        self.producer_id_filters = [] if producer_id_filters is UNSET else producer_id_filters
        self.duration_filter = duration_filter
        self.transactional_id_pattern = transactional_id_pattern

