"""Generated from FetchResponse.json; do not edit."""

from __future__ import annotations

from skylog.kernel.ids import ZERO_UUID, Uuid
from skylog.wire.buffers import Buffer
from skylog.wire.schema import LAST, UNSET, Field, Message, Struct, Versions


class EpochEndOffset(Struct):
    __slots__ = ("epoch", "end_offset",)
    FIELDS = (
        Field("epoch", "int32", Versions(12, LAST), -1),
        Field("end_offset", "int64", Versions(12, LAST), -1),
    )

    def __init__(
        self,
        epoch: int = -1,
        end_offset: int = -1,
    ) -> None:
        self.epoch = epoch
        self.end_offset = end_offset


class LeaderIdAndEpoch(Struct):
    __slots__ = ("leader_id", "leader_epoch",)
    FIELDS = (
        Field("leader_id", "int32", Versions(12, LAST), -1),
        Field("leader_epoch", "int32", Versions(12, LAST), -1),
    )

    def __init__(
        self,
        leader_id: int = -1,
        leader_epoch: int = -1,
    ) -> None:
        self.leader_id = leader_id
        self.leader_epoch = leader_epoch


class SnapshotId(Struct):
    __slots__ = ("end_offset", "epoch",)
    FIELDS = (
        Field("end_offset", "int64", Versions(0, LAST), -1),
        Field("epoch", "int32", Versions(0, LAST), -1),
    )

    def __init__(
        self,
        end_offset: int = -1,
        epoch: int = -1,
    ) -> None:
        self.end_offset = end_offset
        self.epoch = epoch


class AbortedTransaction(Struct):
    __slots__ = ("producer_id", "first_offset",)
    FIELDS = (
        Field("producer_id", "int64", Versions(4, LAST), 0),
        Field("first_offset", "int64", Versions(4, LAST), 0),
    )

    def __init__(
        self,
        producer_id: int = 0,
        first_offset: int = 0,
    ) -> None:
        self.producer_id = producer_id
        self.first_offset = first_offset


class PartitionData(Struct):
    __slots__ = ("partition_index", "error_code", "high_watermark", "last_stable_offset", "log_start_offset", "diverging_epoch", "current_leader", "snapshot_id", "aborted_transactions", "preferred_read_replica", "records",)
    FIELDS = (
        Field("partition_index", "int32", Versions(0, LAST), 0),
        Field("error_code", "int16", Versions(0, LAST), 0),
        Field("high_watermark", "int64", Versions(0, LAST), 0),
        Field("last_stable_offset", "int64", Versions(4, LAST), -1, ignorable=True),
        Field("log_start_offset", "int64", Versions(5, LAST), -1, ignorable=True),
        Field("diverging_epoch", EpochEndOffset, Versions(12, LAST), ..., tag=0, tagged=Versions(12, LAST)),
        Field("current_leader", LeaderIdAndEpoch, Versions(12, LAST), ..., tag=1, tagged=Versions(12, LAST)),
        Field("snapshot_id", SnapshotId, Versions(12, LAST), ..., tag=2, tagged=Versions(12, LAST)),
        Field("aborted_transactions", AbortedTransaction, Versions(4, LAST), (), array=True, nullable=Versions(4, LAST), ignorable=True),
        Field("preferred_read_replica", "int32", Versions(11, LAST), -1),
        Field("records", "records", Versions(0, LAST), None, nullable=Versions(0, LAST)),
    )

    def __init__(
        self,
        partition_index: int = 0,
        error_code: int = 0,
        high_watermark: int = 0,
        last_stable_offset: int = -1,
        log_start_offset: int = -1,
        diverging_epoch: EpochEndOffset = UNSET,
        current_leader: LeaderIdAndEpoch = UNSET,
        snapshot_id: SnapshotId = UNSET,
        aborted_transactions: list[AbortedTransaction] | None = UNSET,
        preferred_read_replica: int = -1,
        records: Buffer | None = None,
    ) -> None:
        self.partition_index = partition_index
        self.error_code = error_code
        self.high_watermark = high_watermark
        self.last_stable_offset = last_stable_offset
        self.log_start_offset = log_start_offset
        self.diverging_epoch = EpochEndOffset() if diverging_epoch is UNSET else diverging_epoch
        self.current_leader = LeaderIdAndEpoch() if current_leader is UNSET else current_leader
        self.snapshot_id = SnapshotId() if snapshot_id is UNSET else snapshot_id
        self.aborted_transactions = [] if aborted_transactions is UNSET else aborted_transactions
        self.preferred_read_replica = preferred_read_replica
        self.records = records


class FetchableTopicResponse(Struct):
    __slots__ = ("topic", "topic_id", "partitions",)
    FIELDS = (
        Field("topic", "string", Versions(0, 12), "", ignorable=True),
        Field("topic_id", "uuid", Versions(13, LAST), ZERO_UUID, ignorable=True),
        Field("partitions", PartitionData, Versions(0, LAST), (), array=True),
    )

    def __init__(
        self,
        topic: str = "",
        topic_id: Uuid = ZERO_UUID,
        partitions: list[PartitionData] = UNSET,
    ) -> None:
        self.topic = topic
        self.topic_id = topic_id
        self.partitions = [] if partitions is UNSET else partitions


class NodeEndpoint(Struct):
    __slots__ = ("node_id", "host", "port", "rack",)
    FIELDS = (
        Field("node_id", "int32", Versions(16, LAST), 0),
        Field("host", "string", Versions(16, LAST), ""),
        Field("port", "int32", Versions(16, LAST), 0),
        Field("rack", "string", Versions(16, LAST), None, nullable=Versions(16, LAST)),
    )

    def __init__(
        self,
        node_id: int = 0,
        host: str = "",
        port: int = 0,
        rack: str | None = None,
    ) -> None:
        self.node_id = node_id
        self.host = host
        self.port = port
        self.rack = rack


class FetchResponse(Message):
    __slots__ = ("throttle_time_ms", "error_code", "session_id", "responses", "node_endpoints",)
    TYPE = "response"
    API_KEY = 1
    VERSIONS = Versions(4, 18)
    FLEXIBLE = Versions(12, LAST)
    FIELDS = (
        Field("throttle_time_ms", "int32", Versions(1, LAST), 0, ignorable=True),
        Field("error_code", "int16", Versions(7, LAST), 0, ignorable=True),
        Field("session_id", "int32", Versions(7, LAST), 0),
        Field("responses", FetchableTopicResponse, Versions(0, LAST), (), array=True),
        Field("node_endpoints", NodeEndpoint, Versions(16, LAST), (), array=True, tag=0, tagged=Versions(16, LAST)),
    )

    def __init__(
        self,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        session_id: int = 0,
        responses: list[FetchableTopicResponse] = UNSET,
        node_endpoints: list[NodeEndpoint] = UNSET,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.session_id = session_id
        self.responses = [] if responses is UNSET else responses
        self.node_endpoints = [] if node_endpoints is UNSET else node_endpoints

