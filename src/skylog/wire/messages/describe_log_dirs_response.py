"""Generated from Kafka's DescribeLogDirsResponse.json; do not edit."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from skylog.wire.schema import LAST, Field, Message, Struct, Versions


@dataclass(slots=True)
class DescribeLogDirsPartition(Struct):
    partition_index: int = 0
    partition_size: int = 0
    offset_lag: int = 0
    is_future_key: bool = False
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("partition_index", "int32", Versions(0, LAST), 0),
        Field("partition_size", "int64", Versions(0, LAST), 0),
        Field("offset_lag", "int64", Versions(0, LAST), 0),
        Field("is_future_key", "bool", Versions(0, LAST), False),
    )


@dataclass(slots=True)
class DescribeLogDirsTopic(Struct):
    name: str = ""
    partitions: list[DescribeLogDirsPartition] = field(default_factory=list)
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("name", "string", Versions(0, LAST), ""),
        Field("partitions", DescribeLogDirsPartition, Versions(0, LAST), (), array=True),
    )


@dataclass(slots=True)
class DescribeLogDirsResult(Struct):
    error_code: int = 0
    log_dir: str = ""
    topics: list[DescribeLogDirsTopic] = field(default_factory=list)
    total_bytes: int = -1
    usable_bytes: int = -1
    is_cordoned: bool = False
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("error_code", "int16", Versions(0, LAST), 0),
        Field("log_dir", "string", Versions(0, LAST), ""),
        Field("topics", DescribeLogDirsTopic, Versions(0, LAST), (), array=True),
        Field("total_bytes", "int64", Versions(4, LAST), -1, ignorable=True),
        Field("usable_bytes", "int64", Versions(4, LAST), -1, ignorable=True),
        Field("is_cordoned", "bool", Versions(5, LAST), False, ignorable=True),
    )


@dataclass(slots=True)
class DescribeLogDirsResponse(Message):
    throttle_time_ms: int = 0
    error_code: int = 0
    results: list[DescribeLogDirsResult] = field(default_factory=list)
    TYPE = "response"
    API_KEY = 35
    VERSIONS = Versions(1, 5)
    FLEXIBLE = Versions(2, LAST)
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("throttle_time_ms", "int32", Versions(0, LAST), 0),
        Field("error_code", "int16", Versions(3, LAST), 0, ignorable=True),
        Field("results", DescribeLogDirsResult, Versions(0, LAST), (), array=True),
    )

