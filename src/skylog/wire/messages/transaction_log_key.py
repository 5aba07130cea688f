"""Generated from TransactionLogKey.json; do not edit."""

from __future__ import annotations

from skylog.wire.schema import NEVER, Field, Message, Versions


class TransactionLogKey(Message):
    __slots__ = ("transactional_id",)
    TYPE = "coordinator-key"
    API_KEY = 0
    VERSIONS = Versions(0, 0)
    FLEXIBLE = NEVER
    FIELDS = (
        Field("transactional_id", "string", Versions(0, 0), ""),
    )

    def __init__(
        self,
        transactional_id: str = "",
    ) -> None:
        self.transactional_id = transactional_id

