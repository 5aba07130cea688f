"""Generated from WriteTxnMarkersResponse.json; do not edit."""

from __future__ import annotations

from skylog.wire.schema import LAST, UNSET, Field, Message, Struct, Versions


class WritableTxnMarkerPartitionResult(Struct):
    __slots__ = ("partition_index", "error_code",)
    FIELDS = (
        Field("partition_index", "int32", Versions(0, LAST), 0),
        Field("error_code", "int16", Versions(0, LAST), 0),
    )

    def __init__(
        self,
        partition_index: int = 0,
        error_code: int = 0,
    ) -> None:
        self.partition_index = partition_index
        self.error_code = error_code


class WritableTxnMarkerTopicResult(Struct):
    __slots__ = ("name", "partitions",)
    FIELDS = (
        Field("name", "string", Versions(0, LAST), ""),
        Field("partitions", WritableTxnMarkerPartitionResult, Versions(0, LAST), (), array=True),
    )

    def __init__(
        self,
        name: str = "",
        partitions: list[WritableTxnMarkerPartitionResult] = UNSET,
    ) -> None:
        self.name = name
        self.partitions = [] if partitions is UNSET else partitions


class WritableTxnMarkerResult(Struct):
    __slots__ = ("producer_id", "topics",)
    FIELDS = (
        Field("producer_id", "int64", Versions(0, LAST), 0),
        Field("topics", WritableTxnMarkerTopicResult, Versions(0, LAST), (), array=True),
    )

    def __init__(
        self,
        producer_id: int = 0,
        topics: list[WritableTxnMarkerTopicResult] = UNSET,
    ) -> None:
        self.producer_id = producer_id
        self.topics = [] if topics is UNSET else topics


class WriteTxnMarkersResponse(Message):
    __slots__ = ("markers",)
    TYPE = "response"
    API_KEY = 27
    VERSIONS = Versions(1, 2)
    FLEXIBLE = Versions(1, LAST)
    FIELDS = (
        Field("markers", WritableTxnMarkerResult, Versions(0, LAST), (), array=True),
    )

    def __init__(
        self,
        markers: list[WritableTxnMarkerResult] = UNSET,
    ) -> None:
        self.markers = [] if markers is UNSET else markers

