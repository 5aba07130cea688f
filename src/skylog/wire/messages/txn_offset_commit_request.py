"""Generated from TxnOffsetCommitRequest.json; do not edit."""

from __future__ import annotations

from skylog.wire.schema import LAST, UNSET, Field, Message, Struct, Versions


class TxnOffsetCommitRequestPartition(Struct):
    __slots__ = ("partition_index", "committed_offset", "committed_leader_epoch", "committed_metadata",)
    FIELDS = (
        Field("partition_index", "int32", Versions(0, LAST), 0),
        Field("committed_offset", "int64", Versions(0, LAST), 0),
        Field("committed_leader_epoch", "int32", Versions(2, LAST), -1, ignorable=True),
        Field("committed_metadata", "string", Versions(0, LAST), "", nullable=Versions(0, LAST)),
    )

    def __init__(
        self,
        partition_index: int = 0,
        committed_offset: int = 0,
        committed_leader_epoch: int = -1,
        committed_metadata: str | None = "",
    ) -> None:
        self.partition_index = partition_index
        self.committed_offset = committed_offset
        self.committed_leader_epoch = committed_leader_epoch
        self.committed_metadata = committed_metadata


class TxnOffsetCommitRequestTopic(Struct):
    __slots__ = ("name", "partitions",)
    FIELDS = (
        Field("name", "string", Versions(0, LAST), ""),
        Field("partitions", TxnOffsetCommitRequestPartition, Versions(0, LAST), (), array=True),
    )

    def __init__(
        self,
        name: str = "",
        partitions: list[TxnOffsetCommitRequestPartition] = UNSET,
    ) -> None:
        self.name = name
        self.partitions = [] if partitions is UNSET else partitions


class TxnOffsetCommitRequest(Message):
    __slots__ = ("transactional_id", "group_id", "producer_id", "producer_epoch", "generation_id", "member_id", "group_instance_id", "topics",)
    TYPE = "request"
    API_KEY = 28
    VERSIONS = Versions(0, 5)
    FLEXIBLE = Versions(3, LAST)
    LISTENERS = ('broker',)
    FIELDS = (
        Field("transactional_id", "string", Versions(0, LAST), ""),
        Field("group_id", "string", Versions(0, LAST), ""),
        Field("producer_id", "int64", Versions(0, LAST), 0),
        Field("producer_epoch", "int16", Versions(0, LAST), 0),
        Field("generation_id", "int32", Versions(3, LAST), -1),
        Field("member_id", "string", Versions(3, LAST), ""),
        Field("group_instance_id", "string", Versions(3, LAST), None, nullable=Versions(3, LAST)),
        Field("topics", TxnOffsetCommitRequestTopic, Versions(0, LAST), (), array=True),
    )

    def __init__(
        self,
        transactional_id: str = "",
        group_id: str = "",
        producer_id: int = 0,
        producer_epoch: int = 0,
        generation_id: int = -1,
        member_id: str = "",
        group_instance_id: str | None = None,
        topics: list[TxnOffsetCommitRequestTopic] = UNSET,
    ) -> None:
        self.transactional_id = transactional_id
        self.group_id = group_id
        self.producer_id = producer_id
        self.producer_epoch = producer_epoch
        self.generation_id = generation_id
        self.member_id = member_id
        self.group_instance_id = group_instance_id
        self.topics = [] if topics is UNSET else topics

