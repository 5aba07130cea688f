"""Generated from Kafka's ListTransactionsRequest.json; do not edit."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from skylog.wire.schema import LAST, Field, Message, Versions


@dataclass(slots=True)
class ListTransactionsRequest(Message):
    state_filters: list[str] = field(default_factory=list)
    producer_id_filters: list[int] = field(default_factory=list)
    duration_filter: int = -1
    transactional_id_pattern: str | None = None
    TYPE = "request"
    API_KEY = 66
    VERSIONS = Versions(0, 2)
    FLEXIBLE = Versions(0, LAST)
    LISTENERS = ('broker',)
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("state_filters", "string", Versions(0, LAST), (), array=True),
        Field("producer_id_filters", "int64", Versions(0, LAST), (), array=True),
        Field("duration_filter", "int64", Versions(1, LAST), -1),
        Field("transactional_id_pattern", "string", Versions(2, LAST), None, nullable=Versions(2, LAST)),
    )

