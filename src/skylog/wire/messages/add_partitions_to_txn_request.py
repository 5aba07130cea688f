"""Generated from AddPartitionsToTxnRequest.json; do not edit."""

from __future__ import annotations

from skylog.wire.schema import LAST, UNSET, Field, Message, Struct, Versions


class AddPartitionsToTxnTopic(Struct):
    __slots__ = ("name", "partitions",)
    FIELDS = (
        Field("name", "string", Versions(0, LAST), ""),
        Field("partitions", "int32", Versions(0, LAST), (), array=True),
    )

    def __init__(
        self,
        name: str = "",
        partitions: list[int] = UNSET,
    ) -> None:
        self.name = name
        self.partitions = [] if partitions is UNSET else partitions


class AddPartitionsToTxnTransaction(Struct):
    __slots__ = ("transactional_id", "producer_id", "producer_epoch", "verify_only", "topics",)
    FIELDS = (
        Field("transactional_id", "string", Versions(4, LAST), ""),
        Field("producer_id", "int64", Versions(4, LAST), 0),
        Field("producer_epoch", "int16", Versions(4, LAST), 0),
        Field("verify_only", "bool", Versions(4, LAST), False),
        Field("topics", AddPartitionsToTxnTopic, Versions(4, LAST), (), array=True),
    )

    def __init__(
        self,
        transactional_id: str = "",
        producer_id: int = 0,
        producer_epoch: int = 0,
        verify_only: bool = False,
        topics: list[AddPartitionsToTxnTopic] = UNSET,
    ) -> None:
        self.transactional_id = transactional_id
        self.producer_id = producer_id
        self.producer_epoch = producer_epoch
        self.verify_only = verify_only
        self.topics = [] if topics is UNSET else topics


class AddPartitionsToTxnRequest(Message):
    __slots__ = ("transactions", "v3_and_below_transactional_id", "v3_and_below_producer_id", "v3_and_below_producer_epoch", "v3_and_below_topics",)
    TYPE = "request"
    API_KEY = 24
    VERSIONS = Versions(0, 5)
    FLEXIBLE = Versions(3, LAST)
    LISTENERS = ('broker',)
    FIELDS = (
        Field("transactions", AddPartitionsToTxnTransaction, Versions(4, LAST), (), array=True),
        Field("v3_and_below_transactional_id", "string", Versions(0, 3), ""),
        Field("v3_and_below_producer_id", "int64", Versions(0, 3), 0),
        Field("v3_and_below_producer_epoch", "int16", Versions(0, 3), 0),
        Field("v3_and_below_topics", AddPartitionsToTxnTopic, Versions(0, 3), (), array=True),
    )

    def __init__(
        self,
        transactions: list[AddPartitionsToTxnTransaction] = UNSET,
        v3_and_below_transactional_id: str = "",
        v3_and_below_producer_id: int = 0,
        v3_and_below_producer_epoch: int = 0,
        v3_and_below_topics: list[AddPartitionsToTxnTopic] = UNSET,
    ) -> None:
        self.transactions = [] if transactions is UNSET else transactions
        self.v3_and_below_transactional_id = v3_and_below_transactional_id
        self.v3_and_below_producer_id = v3_and_below_producer_id
        self.v3_and_below_producer_epoch = v3_and_below_producer_epoch
        self.v3_and_below_topics = [] if v3_and_below_topics is UNSET else v3_and_below_topics

