"""Generated from Kafka's DescribeTransactionsRequest.json; do not edit."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from skylog.wire.schema import LAST, Field, Message, Versions


@dataclass(slots=True)
class DescribeTransactionsRequest(Message):
    transactional_ids: list[str] = field(default_factory=list)
    TYPE = "request"
    API_KEY = 65
    VERSIONS = Versions(0, 0)
    FLEXIBLE = Versions(0, LAST)
    LISTENERS = ('broker',)
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("transactional_ids", "string", Versions(0, LAST), (), array=True),
    )

