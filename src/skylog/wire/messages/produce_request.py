"""Generated from ProduceRequest.json; do not edit."""

from __future__ import annotations

from skylog.kernel.ids import ZERO_UUID, Uuid
from skylog.wire.buffers import Buffer
from skylog.wire.schema import LAST, UNSET, Field, Message, Struct, Versions


class PartitionProduceData(Struct):
    __slots__ = ("index", "records",)
    FIELDS = (
        Field("index", "int32", Versions(0, LAST), 0),
        Field("records", "records", Versions(0, LAST), None, nullable=Versions(0, LAST)),
    )

    def __init__(
        self,
        index: int = 0,
        records: Buffer | None = None,
    ) -> None:
        self.index = index
        self.records = records


class TopicProduceData(Struct):
    __slots__ = ("name", "topic_id", "partition_data",)
    FIELDS = (
        Field("name", "string", Versions(0, 12), "", ignorable=True),
        Field("topic_id", "uuid", Versions(13, LAST), ZERO_UUID, ignorable=True),
        Field("partition_data", PartitionProduceData, Versions(0, LAST), (), array=True),
    )

    def __init__(
        self,
        name: str = "",
        topic_id: Uuid = ZERO_UUID,
        partition_data: list[PartitionProduceData] = UNSET,
    ) -> None:
        self.name = name
        self.topic_id = topic_id
        self.partition_data = [] if partition_data is UNSET else partition_data


class ProduceRequest(Message):
    __slots__ = ("transactional_id", "acks", "timeout_ms", "topic_data",)
    TYPE = "request"
    API_KEY = 0
    VERSIONS = Versions(3, 13)
    FLEXIBLE = Versions(9, LAST)
    LISTENERS = ('broker',)
    FIELDS = (
        Field("transactional_id", "string", Versions(3, LAST), None, nullable=Versions(3, LAST)),
        Field("acks", "int16", Versions(0, LAST), 0),
        Field("timeout_ms", "int32", Versions(0, LAST), 0),
        Field("topic_data", TopicProduceData, Versions(0, LAST), (), array=True),
    )

    def __init__(
        self,
        transactional_id: str | None = None,
        acks: int = 0,
        timeout_ms: int = 0,
        topic_data: list[TopicProduceData] = UNSET,
    ) -> None:
        self.transactional_id = transactional_id
        self.acks = acks
        self.timeout_ms = timeout_ms
        self.topic_data = [] if topic_data is UNSET else topic_data

