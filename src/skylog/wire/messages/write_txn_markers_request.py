"""Generated from WriteTxnMarkersRequest.json; do not edit."""

from __future__ import annotations

from skylog.wire.schema import LAST, UNSET, Field, Message, Struct, Versions


class WritableTxnMarkerTopic(Struct):
    __slots__ = ("name", "partition_indexes",)
    FIELDS = (
        Field("name", "string", Versions(0, LAST), ""),
        Field("partition_indexes", "int32", Versions(0, LAST), (), array=True),
    )

    def __init__(
        self,
        name: str = "",
        partition_indexes: list[int] = UNSET,
    ) -> None:
        self.name = name
        self.partition_indexes = [] if partition_indexes is UNSET else partition_indexes


class WritableTxnMarker(Struct):
    __slots__ = ("producer_id", "producer_epoch", "transaction_result", "topics", "coordinator_epoch", "transaction_version",)
    FIELDS = (
        Field("producer_id", "int64", Versions(0, LAST), 0),
        Field("producer_epoch", "int16", Versions(0, LAST), 0),
        Field("transaction_result", "bool", Versions(0, LAST), False),
        Field("topics", WritableTxnMarkerTopic, Versions(0, LAST), (), array=True),
        Field("coordinator_epoch", "int32", Versions(0, LAST), 0),
        Field("transaction_version", "int8", Versions(2, LAST), 0, ignorable=True),
    )

    def __init__(
        self,
        producer_id: int = 0,
        producer_epoch: int = 0,
        transaction_result: bool = False,
        topics: list[WritableTxnMarkerTopic] = UNSET,
        coordinator_epoch: int = 0,
        transaction_version: int = 0,
    ) -> None:
        self.producer_id = producer_id
        self.producer_epoch = producer_epoch
        self.transaction_result = transaction_result
        self.topics = [] if topics is UNSET else topics
        self.coordinator_epoch = coordinator_epoch
        self.transaction_version = transaction_version


class WriteTxnMarkersRequest(Message):
    __slots__ = ("markers",)
    TYPE = "request"
    API_KEY = 27
    VERSIONS = Versions(1, 2)
    FLEXIBLE = Versions(1, LAST)
    LISTENERS = ('broker',)
    FIELDS = (
        Field("markers", WritableTxnMarker, Versions(0, LAST), (), array=True),
    )

    def __init__(
        self,
        markers: list[WritableTxnMarker] = UNSET,
    ) -> None:
        self.markers = [] if markers is UNSET else markers

