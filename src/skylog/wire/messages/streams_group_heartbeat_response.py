"""Generated from StreamsGroupHeartbeatResponse.json; do not edit."""

from __future__ import annotations

from skylog.wire.schema import LAST, UNSET, Field, Message, Struct, Versions


class Status(Struct):
    __slots__ = ("status_code", "status_detail",)
    FIELDS = (
        Field("status_code", "int8", Versions(0, LAST), 0),
        Field("status_detail", "string", Versions(0, LAST), ""),
    )

    def __init__(
        self,
        status_code: int = 0,
        status_detail: str = "",
    ) -> None:
        self.status_code = status_code
        self.status_detail = status_detail


class TaskIds(Struct):
    __slots__ = ("subtopology_id", "partitions",)
    FIELDS = (
        Field("subtopology_id", "string", Versions(0, LAST), ""),
        Field("partitions", "int32", Versions(0, LAST), (), array=True),
    )

    def __init__(
        self,
        subtopology_id: str = "",
        partitions: list[int] = UNSET,
    ) -> None:
        self.subtopology_id = subtopology_id
        self.partitions = [] if partitions is UNSET else partitions


class Endpoint(Struct):
    __slots__ = ("host", "port",)
    FIELDS = (
        Field("host", "string", Versions(0, LAST), ""),
        Field("port", "uint16", Versions(0, LAST), 0),
    )

    def __init__(
        self,
        host: str = "",
        port: int = 0,
    ) -> None:
        self.host = host
        self.port = port


class TopicPartition(Struct):
    __slots__ = ("topic", "partitions",)
    FIELDS = (
        Field("topic", "string", Versions(0, LAST), ""),
        Field("partitions", "int32", Versions(0, LAST), (), array=True),
    )

    def __init__(
        self,
        topic: str = "",
        partitions: list[int] = UNSET,
    ) -> None:
        self.topic = topic
        self.partitions = [] if partitions is UNSET else partitions


class EndpointToPartitions(Struct):
    __slots__ = ("user_endpoint", "active_partitions", "standby_partitions",)
    FIELDS = (
        Field("user_endpoint", Endpoint, Versions(0, LAST), ...),
        Field("active_partitions", TopicPartition, Versions(0, LAST), (), array=True),
        Field("standby_partitions", TopicPartition, Versions(0, LAST), (), array=True),
    )

    def __init__(
        self,
        user_endpoint: Endpoint = UNSET,
        active_partitions: list[TopicPartition] = UNSET,
        standby_partitions: list[TopicPartition] = UNSET,
    ) -> None:
        self.user_endpoint = Endpoint() if user_endpoint is UNSET else user_endpoint
        self.active_partitions = [] if active_partitions is UNSET else active_partitions
        self.standby_partitions = [] if standby_partitions is UNSET else standby_partitions


class StreamsGroupHeartbeatResponse(Message):
    __slots__ = ("throttle_time_ms", "error_code", "error_message", "member_id", "member_epoch", "heartbeat_interval_ms", "acceptable_recovery_lag", "task_offset_interval_ms", "status", "active_tasks", "standby_tasks", "warmup_tasks", "endpoint_information_epoch", "partitions_by_user_endpoint",)
    TYPE = "response"
    API_KEY = 88
    VERSIONS = Versions(0, 0)
    FLEXIBLE = Versions(0, LAST)
    FIELDS = (
        Field("throttle_time_ms", "int32", Versions(0, LAST), 0),
        Field("error_code", "int16", Versions(0, LAST), 0),
        Field("error_message", "string", Versions(0, LAST), None, nullable=Versions(0, LAST)),
        Field("member_id", "string", Versions(0, LAST), ""),
        Field("member_epoch", "int32", Versions(0, LAST), 0),
        Field("heartbeat_interval_ms", "int32", Versions(0, LAST), 0),
        Field("acceptable_recovery_lag", "int32", Versions(0, LAST), 0),
        Field("task_offset_interval_ms", "int32", Versions(0, LAST), 0),
        Field("status", Status, Versions(0, LAST), (), array=True, nullable=Versions(0, LAST)),
        Field("active_tasks", TaskIds, Versions(0, LAST), None, array=True, nullable=Versions(0, LAST)),
        Field("standby_tasks", TaskIds, Versions(0, LAST), None, array=True, nullable=Versions(0, LAST)),
        Field("warmup_tasks", TaskIds, Versions(0, LAST), None, array=True, nullable=Versions(0, LAST)),
        Field("endpoint_information_epoch", "int32", Versions(0, LAST), 0),
        Field("partitions_by_user_endpoint", EndpointToPartitions, Versions(0, LAST), None, array=True, nullable=Versions(0, LAST)),
    )

    def __init__(
        self,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        error_message: str | None = None,
        member_id: str = "",
        member_epoch: int = 0,
        heartbeat_interval_ms: int = 0,
        acceptable_recovery_lag: int = 0,
        task_offset_interval_ms: int = 0,
        status: list[Status] | None = UNSET,
        active_tasks: list[TaskIds] | None = None,
        standby_tasks: list[TaskIds] | None = None,
        warmup_tasks: list[TaskIds] | None = None,
        endpoint_information_epoch: int = 0,
        partitions_by_user_endpoint: list[EndpointToPartitions] | None = None,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.error_message = error_message
        self.member_id = member_id
        self.member_epoch = member_epoch
        self.heartbeat_interval_ms = heartbeat_interval_ms
        self.acceptable_recovery_lag = acceptable_recovery_lag
        self.task_offset_interval_ms = task_offset_interval_ms
        self.status = [] if status is UNSET else status
        self.active_tasks = active_tasks
        self.standby_tasks = standby_tasks
        self.warmup_tasks = warmup_tasks
        self.endpoint_information_epoch = endpoint_information_epoch
        self.partitions_by_user_endpoint = partitions_by_user_endpoint

