"""Generated from EndTxnRequest.json; do not edit."""

from __future__ import annotations

from skylog.wire.schema import LAST, Field, Message, Versions


class EndTxnRequest(Message):
    __slots__ = ("transactional_id", "producer_id", "producer_epoch", "committed",)
    TYPE = "request"
    API_KEY = 26
    VERSIONS = Versions(0, 5)
    FLEXIBLE = Versions(3, LAST)
    LISTENERS = ('broker',)
    FIELDS = (
        Field("transactional_id", "string", Versions(0, LAST), ""),
        Field("producer_id", "int64", Versions(0, LAST), 0),
        Field("producer_epoch", "int16", Versions(0, LAST), 0),
        Field("committed", "bool", Versions(0, LAST), False),
    )

    def __init__(
        self,
        transactional_id: str = "",
        producer_id: int = 0,
        producer_epoch: int = 0,
        committed: bool = False,
    ) -> None:
        self.transactional_id = transactional_id
        self.producer_id = producer_id
        self.producer_epoch = producer_epoch
        self.committed = committed

