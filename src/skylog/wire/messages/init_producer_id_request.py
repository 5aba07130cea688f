"""Generated from InitProducerIdRequest.json; do not edit."""

from __future__ import annotations

from skylog.wire.schema import LAST, Field, Message, Versions


class InitProducerIdRequest(Message):
    __slots__ = ("transactional_id", "transaction_timeout_ms", "producer_id", "producer_epoch", "enable2_pc", "keep_prepared_txn",)
    TYPE = "request"
    API_KEY = 22
    VERSIONS = Versions(0, 6)
    FLEXIBLE = Versions(2, LAST)
    LISTENERS = ('broker',)
    LATEST_UNSTABLE = True
    FIELDS = (
        Field("transactional_id", "string", Versions(0, LAST), "", nullable=Versions(0, LAST)),
        Field("transaction_timeout_ms", "int32", Versions(0, LAST), 0),
        Field("producer_id", "int64", Versions(3, LAST), -1),
        Field("producer_epoch", "int16", Versions(3, LAST), -1),
        Field("enable2_pc", "bool", Versions(6, LAST), False),
        Field("keep_prepared_txn", "bool", Versions(6, LAST), False),
    )

    def __init__(
        self,
        transactional_id: str | None = "",
        transaction_timeout_ms: int = 0,
        producer_id: int = -1,
        producer_epoch: int = -1,
        enable2_pc: bool = False,
        keep_prepared_txn: bool = False,
    ) -> None:
        self.transactional_id = transactional_id
        self.transaction_timeout_ms = transaction_timeout_ms
        self.producer_id = producer_id
        self.producer_epoch = producer_epoch
        self.enable2_pc = enable2_pc
        self.keep_prepared_txn = keep_prepared_txn

