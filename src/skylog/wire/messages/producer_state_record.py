"""Generated from ProducerStateRecord.json; do not edit."""

from __future__ import annotations

from skylog.kernel.ids import ZERO_UUID, Uuid
from skylog.wire.schema import LAST, UNSET, Field, Message, Struct, Versions


class ProducerBatch(Struct):
    __slots__ = ("base_sequence", "last_sequence", "base_offset", "log_append_time",)
    FIELDS = (
        Field("base_sequence", "int32", Versions(0, LAST), 0),
        Field("last_sequence", "int32", Versions(0, LAST), 0),
        Field("base_offset", "int64", Versions(0, LAST), 0),
        Field("log_append_time", "int64", Versions(0, LAST), 0),
    )

    def __init__(
        self,
        base_sequence: int = 0,
        last_sequence: int = 0,
        base_offset: int = 0,
        log_append_time: int = 0,
    ) -> None:
        self.base_sequence = base_sequence
        self.last_sequence = last_sequence
        self.base_offset = base_offset
        self.log_append_time = log_append_time


class ProducerStateRecord(Message):
    __slots__ = ("topic_id", "partition_index", "producer_id", "producer_epoch", "batches",)
    TYPE = "diskless-record"
    API_KEY = 502
    VERSIONS = Versions(0, 0)
    FLEXIBLE = Versions(0, LAST)
    FIELDS = (
        Field("topic_id", "uuid", Versions(0, LAST), ZERO_UUID),
        Field("partition_index", "int32", Versions(0, LAST), 0),
        Field("producer_id", "int64", Versions(0, LAST), 0),
        Field("producer_epoch", "int16", Versions(0, LAST), 0),
        Field("batches", ProducerBatch, Versions(0, LAST), (), array=True),
    )

    def __init__(
        self,
        topic_id: Uuid = ZERO_UUID,
        partition_index: int = 0,
        producer_id: int = 0,
        producer_epoch: int = 0,
        batches: list[ProducerBatch] = UNSET,
    ) -> None:
        self.topic_id = topic_id
        self.partition_index = partition_index
        self.producer_id = producer_id
        self.producer_epoch = producer_epoch
        self.batches = [] if batches is UNSET else batches

