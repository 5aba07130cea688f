"""Generated from DescribeLogDirsResponse.json; do not edit."""

from __future__ import annotations

from skylog.wire.schema import LAST, UNSET, Field, Message, Struct, Versions


class DescribeLogDirsPartition(Struct):
    __slots__ = ("partition_index", "partition_size", "offset_lag", "is_future_key",)
    FIELDS = (
        Field("partition_index", "int32", Versions(0, LAST), 0),
        Field("partition_size", "int64", Versions(0, LAST), 0),
        Field("offset_lag", "int64", Versions(0, LAST), 0),
        Field("is_future_key", "bool", Versions(0, LAST), False),
    )

    def __init__(
        self,
        partition_index: int = 0,
        partition_size: int = 0,
        offset_lag: int = 0,
        is_future_key: bool = False,
    ) -> None:
        self.partition_index = partition_index
        self.partition_size = partition_size
        self.offset_lag = offset_lag
        self.is_future_key = is_future_key


class DescribeLogDirsTopic(Struct):
    __slots__ = ("name", "partitions",)
    FIELDS = (
        Field("name", "string", Versions(0, LAST), ""),
        Field("partitions", DescribeLogDirsPartition, Versions(0, LAST), (), array=True),
    )

    def __init__(
        self,
        name: str = "",
        partitions: list[DescribeLogDirsPartition] = UNSET,
    ) -> None:
        self.name = name
        self.partitions = [] if partitions is UNSET else partitions


class DescribeLogDirsResult(Struct):
    __slots__ = ("error_code", "log_dir", "topics", "total_bytes", "usable_bytes", "is_cordoned",)
    FIELDS = (
        Field("error_code", "int16", Versions(0, LAST), 0),
        Field("log_dir", "string", Versions(0, LAST), ""),
        Field("topics", DescribeLogDirsTopic, Versions(0, LAST), (), array=True),
        Field("total_bytes", "int64", Versions(4, LAST), -1, ignorable=True),
        Field("usable_bytes", "int64", Versions(4, LAST), -1, ignorable=True),
        Field("is_cordoned", "bool", Versions(5, LAST), False, ignorable=True),
    )

    def __init__(
        self,
        error_code: int = 0,
        log_dir: str = "",
        topics: list[DescribeLogDirsTopic] = UNSET,
        total_bytes: int = -1,
        usable_bytes: int = -1,
        is_cordoned: bool = False,
    ) -> None:
        self.error_code = error_code
        self.log_dir = log_dir
        self.topics = [] if topics is UNSET else topics
        self.total_bytes = total_bytes
        self.usable_bytes = usable_bytes
        self.is_cordoned = is_cordoned


class DescribeLogDirsResponse(Message):
    __slots__ = ("throttle_time_ms", "error_code", "results",)
    TYPE = "response"
    API_KEY = 35
    VERSIONS = Versions(1, 5)
    FLEXIBLE = Versions(2, LAST)
    FIELDS = (
        Field("throttle_time_ms", "int32", Versions(0, LAST), 0),
        Field("error_code", "int16", Versions(3, LAST), 0, ignorable=True),
        Field("results", DescribeLogDirsResult, Versions(0, LAST), (), array=True),
    )

    def __init__(
        self,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        results: list[DescribeLogDirsResult] = UNSET,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.results = [] if results is UNSET else results

