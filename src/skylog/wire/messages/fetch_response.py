"""Generated from Kafka's FetchResponse.json; do not edit."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from skylog.kernel.ids import ZERO_UUID, Uuid
from skylog.wire.buffers import Buffer
from skylog.wire.schema import LAST, Field, Message, Struct, Versions


@dataclass(slots=True)
class EpochEndOffset(Struct):
    epoch: int = -1
    end_offset: int = -1
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("epoch", "int32", Versions(12, LAST), -1),
        Field("end_offset", "int64", Versions(12, LAST), -1),
    )


@dataclass(slots=True)
class LeaderIdAndEpoch(Struct):
    leader_id: int = -1
    leader_epoch: int = -1
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("leader_id", "int32", Versions(12, LAST), -1),
        Field("leader_epoch", "int32", Versions(12, LAST), -1),
    )


@dataclass(slots=True)
class SnapshotId(Struct):
    end_offset: int = -1
    epoch: int = -1
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("end_offset", "int64", Versions(0, LAST), -1),
        Field("epoch", "int32", Versions(0, LAST), -1),
    )


@dataclass(slots=True)
class AbortedTransaction(Struct):
    producer_id: int = 0
    first_offset: int = 0
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("producer_id", "int64", Versions(4, LAST), 0),
        Field("first_offset", "int64", Versions(4, LAST), 0),
    )


@dataclass(slots=True)
class PartitionData(Struct):
    partition_index: int = 0
    error_code: int = 0
    high_watermark: int = 0
    last_stable_offset: int = -1
    log_start_offset: int = -1
    diverging_epoch: EpochEndOffset = field(default_factory=lambda: EpochEndOffset())
    current_leader: LeaderIdAndEpoch = field(default_factory=lambda: LeaderIdAndEpoch())
    snapshot_id: SnapshotId = field(default_factory=lambda: SnapshotId())
    aborted_transactions: list[AbortedTransaction] | None = field(default_factory=list)
    preferred_read_replica: int = -1
    records: Buffer | None = None
    FIELDS: ClassVar[tuple[Field, ...]] = (
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


@dataclass(slots=True)
class FetchableTopicResponse(Struct):
    topic: str = ""
    topic_id: Uuid = ZERO_UUID
    partitions: list[PartitionData] = field(default_factory=list)
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("topic", "string", Versions(0, 12), "", ignorable=True),
        Field("topic_id", "uuid", Versions(13, LAST), ZERO_UUID, ignorable=True),
        Field("partitions", PartitionData, Versions(0, LAST), (), array=True),
    )


@dataclass(slots=True)
class NodeEndpoint(Struct):
    node_id: int = 0
    host: str = ""
    port: int = 0
    rack: str | None = None
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("node_id", "int32", Versions(16, LAST), 0),
        Field("host", "string", Versions(16, LAST), ""),
        Field("port", "int32", Versions(16, LAST), 0),
        Field("rack", "string", Versions(16, LAST), None, nullable=Versions(16, LAST)),
    )


@dataclass(slots=True)
class FetchResponse(Message):
    throttle_time_ms: int = 0
    error_code: int = 0
    session_id: int = 0
    responses: list[FetchableTopicResponse] = field(default_factory=list)
    node_endpoints: list[NodeEndpoint] = field(default_factory=list)
    TYPE = "response"
    API_KEY = 1
    VERSIONS = Versions(4, 18)
    FLEXIBLE = Versions(12, LAST)
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("throttle_time_ms", "int32", Versions(1, LAST), 0, ignorable=True),
        Field("error_code", "int16", Versions(7, LAST), 0, ignorable=True),
        Field("session_id", "int32", Versions(7, LAST), 0),
        Field("responses", FetchableTopicResponse, Versions(0, LAST), (), array=True),
        Field("node_endpoints", NodeEndpoint, Versions(16, LAST), (), array=True, tag=0, tagged=Versions(16, LAST)),
    )

