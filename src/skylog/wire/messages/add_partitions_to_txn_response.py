"""Generated from Kafka's AddPartitionsToTxnResponse.json; do not edit."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from skylog.wire.schema import LAST, Field, Message, Struct, Versions


@dataclass(slots=True)
class AddPartitionsToTxnPartitionResult(Struct):
    partition_index: int = 0
    partition_error_code: int = 0
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("partition_index", "int32", Versions(0, LAST), 0),
        Field("partition_error_code", "int16", Versions(0, LAST), 0),
    )


@dataclass(slots=True)
class AddPartitionsToTxnTopicResult(Struct):
    name: str = ""
    results_by_partition: list[AddPartitionsToTxnPartitionResult] = field(default_factory=list)
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("name", "string", Versions(0, LAST), ""),
        Field("results_by_partition", AddPartitionsToTxnPartitionResult, Versions(0, LAST), (), array=True),
    )


@dataclass(slots=True)
class AddPartitionsToTxnResult(Struct):
    transactional_id: str = ""
    topic_results: list[AddPartitionsToTxnTopicResult] = field(default_factory=list)
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("transactional_id", "string", Versions(4, LAST), ""),
        Field("topic_results", AddPartitionsToTxnTopicResult, Versions(4, LAST), (), array=True),
    )


@dataclass(slots=True)
class AddPartitionsToTxnResponse(Message):
    throttle_time_ms: int = 0
    error_code: int = 0
    results_by_transaction: list[AddPartitionsToTxnResult] = field(default_factory=list)
    results_by_topic_v3_and_below: list[AddPartitionsToTxnTopicResult] = field(default_factory=list)
    TYPE = "response"
    API_KEY = 24
    VERSIONS = Versions(0, 5)
    FLEXIBLE = Versions(3, LAST)
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("throttle_time_ms", "int32", Versions(0, LAST), 0),
        Field("error_code", "int16", Versions(4, LAST), 0, ignorable=True),
        Field("results_by_transaction", AddPartitionsToTxnResult, Versions(4, LAST), (), array=True),
        Field("results_by_topic_v3_and_below", AddPartitionsToTxnTopicResult, Versions(0, 3), (), array=True),
    )

