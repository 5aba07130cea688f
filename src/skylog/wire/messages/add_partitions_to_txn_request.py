"""Generated from Kafka's AddPartitionsToTxnRequest.json; do not edit."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from skylog.wire.schema import LAST, Field, Message, Struct, Versions


@dataclass(slots=True)
class AddPartitionsToTxnTopic(Struct):
    name: str = ""
    partitions: list[int] = field(default_factory=list)
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("name", "string", Versions(0, LAST), ""),
        Field("partitions", "int32", Versions(0, LAST), (), array=True),
    )


@dataclass(slots=True)
class AddPartitionsToTxnTransaction(Struct):
    transactional_id: str = ""
    producer_id: int = 0
    producer_epoch: int = 0
    verify_only: bool = False
    topics: list[AddPartitionsToTxnTopic] = field(default_factory=list)
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("transactional_id", "string", Versions(4, LAST), ""),
        Field("producer_id", "int64", Versions(4, LAST), 0),
        Field("producer_epoch", "int16", Versions(4, LAST), 0),
        Field("verify_only", "bool", Versions(4, LAST), False),
        Field("topics", AddPartitionsToTxnTopic, Versions(4, LAST), (), array=True),
    )


@dataclass(slots=True)
class AddPartitionsToTxnRequest(Message):
    transactions: list[AddPartitionsToTxnTransaction] = field(default_factory=list)
    v3_and_below_transactional_id: str = ""
    v3_and_below_producer_id: int = 0
    v3_and_below_producer_epoch: int = 0
    v3_and_below_topics: list[AddPartitionsToTxnTopic] = field(default_factory=list)
    TYPE = "request"
    API_KEY = 24
    VERSIONS = Versions(0, 5)
    FLEXIBLE = Versions(3, LAST)
    LISTENERS = ('broker',)
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("transactions", AddPartitionsToTxnTransaction, Versions(4, LAST), (), array=True),
        Field("v3_and_below_transactional_id", "string", Versions(0, 3), ""),
        Field("v3_and_below_producer_id", "int64", Versions(0, 3), 0),
        Field("v3_and_below_producer_epoch", "int16", Versions(0, 3), 0),
        Field("v3_and_below_topics", AddPartitionsToTxnTopic, Versions(0, 3), (), array=True),
    )

