"""Generated from ProduceResponse.json; do not edit."""

from __future__ import annotations

from skylog.kernel.ids import ZERO_UUID, Uuid
from skylog.wire.schema import LAST, UNSET, Field, Message, Struct, Versions


class BatchIndexAndErrorMessage(Struct):
    __slots__ = ("batch_index", "batch_index_error_message",)
    FIELDS = (
        Field("batch_index", "int32", Versions(8, LAST), 0),
        Field("batch_index_error_message", "string", Versions(8, LAST), None, nullable=Versions(8, LAST)),
    )

    def __init__(
        self,
        batch_index: int = 0,
        batch_index_error_message: str | None = None,
    ) -> None:
        self.batch_index = batch_index
        self.batch_index_error_message = batch_index_error_message


class LeaderIdAndEpoch(Struct):
    __slots__ = ("leader_id", "leader_epoch",)
    FIELDS = (
        Field("leader_id", "int32", Versions(10, LAST), -1),
        Field("leader_epoch", "int32", Versions(10, LAST), -1),
    )

    def __init__(
        self,
        leader_id: int = -1,
        leader_epoch: int = -1,
    ) -> None:
        self.leader_id = leader_id
        self.leader_epoch = leader_epoch


class PartitionProduceResponse(Struct):
    __slots__ = ("index", "error_code", "base_offset", "log_append_time_ms", "log_start_offset", "record_errors", "error_message", "current_leader",)
    FIELDS = (
        Field("index", "int32", Versions(0, LAST), 0),
        Field("error_code", "int16", Versions(0, LAST), 0),
        Field("base_offset", "int64", Versions(0, LAST), 0),
        Field("log_append_time_ms", "int64", Versions(2, LAST), -1, ignorable=True),
        Field("log_start_offset", "int64", Versions(5, LAST), -1, ignorable=True),
        Field("record_errors", BatchIndexAndErrorMessage, Versions(8, LAST), (), array=True, ignorable=True),
        Field("error_message", "string", Versions(8, LAST), None, nullable=Versions(8, LAST), ignorable=True),
        Field("current_leader", LeaderIdAndEpoch, Versions(10, LAST), ..., tag=0, tagged=Versions(10, LAST)),
    )

    def __init__(
        self,
        index: int = 0,
        error_code: int = 0,
        base_offset: int = 0,
        log_append_time_ms: int = -1,
        log_start_offset: int = -1,
        record_errors: list[BatchIndexAndErrorMessage] = UNSET,
        error_message: str | None = None,
        current_leader: LeaderIdAndEpoch = UNSET,
    ) -> None:
        self.index = index
        self.error_code = error_code
        self.base_offset = base_offset
        self.log_append_time_ms = log_append_time_ms
        self.log_start_offset = log_start_offset
        self.record_errors = [] if record_errors is UNSET else record_errors
        self.error_message = error_message
        self.current_leader = LeaderIdAndEpoch() if current_leader is UNSET else current_leader


class TopicProduceResponse(Struct):
    __slots__ = ("name", "topic_id", "partition_responses",)
    FIELDS = (
        Field("name", "string", Versions(0, 12), "", ignorable=True),
        Field("topic_id", "uuid", Versions(13, LAST), ZERO_UUID, ignorable=True),
        Field("partition_responses", PartitionProduceResponse, Versions(0, LAST), (), array=True),
    )

    def __init__(
        self,
        name: str = "",
        topic_id: Uuid = ZERO_UUID,
        partition_responses: list[PartitionProduceResponse] = UNSET,
    ) -> None:
        self.name = name
        self.topic_id = topic_id
        self.partition_responses = [] if partition_responses is UNSET else partition_responses


class NodeEndpoint(Struct):
    __slots__ = ("node_id", "host", "port", "rack",)
    FIELDS = (
        Field("node_id", "int32", Versions(10, LAST), 0),
        Field("host", "string", Versions(10, LAST), ""),
        Field("port", "int32", Versions(10, LAST), 0),
        Field("rack", "string", Versions(10, LAST), None, nullable=Versions(10, LAST)),
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


class ProduceResponse(Message):
    __slots__ = ("responses", "throttle_time_ms", "node_endpoints",)
    TYPE = "response"
    API_KEY = 0
    VERSIONS = Versions(3, 13)
    FLEXIBLE = Versions(9, LAST)
    FIELDS = (
        Field("responses", TopicProduceResponse, Versions(0, LAST), (), array=True),
        Field("throttle_time_ms", "int32", Versions(1, LAST), 0, ignorable=True),
        Field("node_endpoints", NodeEndpoint, Versions(10, LAST), (), array=True, tag=0, tagged=Versions(10, LAST)),
    )

    def __init__(
        self,
        responses: list[TopicProduceResponse] = UNSET,
        throttle_time_ms: int = 0,
        node_endpoints: list[NodeEndpoint] = UNSET,
    ) -> None:
        self.responses = [] if responses is UNSET else responses
        self.throttle_time_ms = throttle_time_ms
        self.node_endpoints = [] if node_endpoints is UNSET else node_endpoints

