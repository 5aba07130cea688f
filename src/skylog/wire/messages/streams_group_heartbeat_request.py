"""Generated from StreamsGroupHeartbeatRequest.json; do not edit."""

from __future__ import annotations

from skylog.wire.schema import LAST, UNSET, Field, Message, Struct, Versions


class KeyValue(Struct):
    __slots__ = ("key", "value",)
    FIELDS = (
        Field("key", "string", Versions(0, LAST), ""),
        Field("value", "string", Versions(0, LAST), ""),
    )

    def __init__(
        self,
        key: str = "",
        value: str = "",
    ) -> None:
        self.key = key
        self.value = value


class TopicInfo(Struct):
    __slots__ = ("name", "partitions", "replication_factor", "topic_configs",)
    FIELDS = (
        Field("name", "string", Versions(0, LAST), ""),
        Field("partitions", "int32", Versions(0, LAST), 0),
        Field("replication_factor", "int16", Versions(0, LAST), 0),
        Field("topic_configs", KeyValue, Versions(0, LAST), (), array=True),
    )

    def __init__(
        self,
        name: str = "",
        partitions: int = 0,
        replication_factor: int = 0,
        topic_configs: list[KeyValue] = UNSET,
    ) -> None:
        self.name = name
        self.partitions = partitions
        self.replication_factor = replication_factor
        self.topic_configs = [] if topic_configs is UNSET else topic_configs


class CopartitionGroup(Struct):
    __slots__ = ("source_topics", "source_topic_regex", "repartition_source_topics",)
    FIELDS = (
        Field("source_topics", "int16", Versions(0, LAST), (), array=True),
        Field("source_topic_regex", "int16", Versions(0, LAST), (), array=True),
        Field("repartition_source_topics", "int16", Versions(0, LAST), (), array=True),
    )

    def __init__(
        self,
        source_topics: list[int] = UNSET,
        source_topic_regex: list[int] = UNSET,
        repartition_source_topics: list[int] = UNSET,
    ) -> None:
        self.source_topics = [] if source_topics is UNSET else source_topics
        self.source_topic_regex = [] if source_topic_regex is UNSET else source_topic_regex
        self.repartition_source_topics = [] if repartition_source_topics is UNSET else repartition_source_topics


class Subtopology(Struct):
    __slots__ = ("subtopology_id", "source_topics", "source_topic_regex", "state_changelog_topics", "repartition_sink_topics", "repartition_source_topics", "copartition_groups",)
    FIELDS = (
        Field("subtopology_id", "string", Versions(0, LAST), ""),
        Field("source_topics", "string", Versions(0, LAST), (), array=True),
        Field("source_topic_regex", "string", Versions(0, LAST), (), array=True),
        Field("state_changelog_topics", TopicInfo, Versions(0, LAST), (), array=True),
        Field("repartition_sink_topics", "string", Versions(0, LAST), (), array=True),
        Field("repartition_source_topics", TopicInfo, Versions(0, LAST), (), array=True),
        Field("copartition_groups", CopartitionGroup, Versions(0, LAST), (), array=True),
    )

    def __init__(
        self,
        subtopology_id: str = "",
        source_topics: list[str] = UNSET,
        source_topic_regex: list[str] = UNSET,
        state_changelog_topics: list[TopicInfo] = UNSET,
        repartition_sink_topics: list[str] = UNSET,
        repartition_source_topics: list[TopicInfo] = UNSET,
        copartition_groups: list[CopartitionGroup] = UNSET,
    ) -> None:
        self.subtopology_id = subtopology_id
        self.source_topics = [] if source_topics is UNSET else source_topics
        self.source_topic_regex = [] if source_topic_regex is UNSET else source_topic_regex
        self.state_changelog_topics = [] if state_changelog_topics is UNSET else state_changelog_topics
        self.repartition_sink_topics = [] if repartition_sink_topics is UNSET else repartition_sink_topics
        self.repartition_source_topics = [] if repartition_source_topics is UNSET else repartition_source_topics
        self.copartition_groups = [] if copartition_groups is UNSET else copartition_groups


class Topology(Struct):
    __slots__ = ("epoch", "subtopologies",)
    FIELDS = (
        Field("epoch", "int32", Versions(0, LAST), 0),
        Field("subtopologies", Subtopology, Versions(0, LAST), (), array=True),
    )

    def __init__(
        self,
        epoch: int = 0,
        subtopologies: list[Subtopology] = UNSET,
    ) -> None:
        self.epoch = epoch
        self.subtopologies = [] if subtopologies is UNSET else subtopologies


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


class TaskOffset(Struct):
    __slots__ = ("subtopology_id", "partition", "offset",)
    FIELDS = (
        Field("subtopology_id", "string", Versions(0, LAST), ""),
        Field("partition", "int32", Versions(0, LAST), 0),
        Field("offset", "int64", Versions(0, LAST), 0),
    )

    def __init__(
        self,
        subtopology_id: str = "",
        partition: int = 0,
        offset: int = 0,
    ) -> None:
        self.subtopology_id = subtopology_id
        self.partition = partition
        self.offset = offset


class StreamsGroupHeartbeatRequest(Message):
    __slots__ = ("group_id", "member_id", "member_epoch", "endpoint_information_epoch", "instance_id", "rack_id", "rebalance_timeout_ms", "topology", "active_tasks", "standby_tasks", "warmup_tasks", "process_id", "user_endpoint", "client_tags", "task_offsets", "task_end_offsets", "shutdown_application",)
    TYPE = "request"
    API_KEY = 88
    VERSIONS = Versions(0, 0)
    FLEXIBLE = Versions(0, LAST)
    LISTENERS = ('broker',)
    FIELDS = (
        Field("group_id", "string", Versions(0, LAST), ""),
        Field("member_id", "string", Versions(0, LAST), ""),
        Field("member_epoch", "int32", Versions(0, LAST), 0),
        Field("endpoint_information_epoch", "int32", Versions(0, LAST), 0),
        Field("instance_id", "string", Versions(0, LAST), None, nullable=Versions(0, LAST)),
        Field("rack_id", "string", Versions(0, LAST), None, nullable=Versions(0, LAST)),
        Field("rebalance_timeout_ms", "int32", Versions(0, LAST), -1),
        Field("topology", Topology, Versions(0, LAST), None, nullable=Versions(0, LAST)),
        Field("active_tasks", TaskIds, Versions(0, LAST), None, array=True, nullable=Versions(0, LAST)),
        Field("standby_tasks", TaskIds, Versions(0, LAST), None, array=True, nullable=Versions(0, LAST)),
        Field("warmup_tasks", TaskIds, Versions(0, LAST), None, array=True, nullable=Versions(0, LAST)),
        Field("process_id", "string", Versions(0, LAST), None, nullable=Versions(0, LAST)),
        Field("user_endpoint", Endpoint, Versions(0, LAST), None, nullable=Versions(0, LAST)),
        Field("client_tags", KeyValue, Versions(0, LAST), None, array=True, nullable=Versions(0, LAST)),
        Field("task_offsets", TaskOffset, Versions(0, LAST), None, array=True, nullable=Versions(0, LAST)),
        Field("task_end_offsets", TaskOffset, Versions(0, LAST), None, array=True, nullable=Versions(0, LAST)),
        Field("shutdown_application", "bool", Versions(0, LAST), False),
    )

    def __init__(
        self,
        group_id: str = "",
        member_id: str = "",
        member_epoch: int = 0,
        endpoint_information_epoch: int = 0,
        instance_id: str | None = None,
        rack_id: str | None = None,
        rebalance_timeout_ms: int = -1,
        topology: Topology | None = None,
        active_tasks: list[TaskIds] | None = None,
        standby_tasks: list[TaskIds] | None = None,
        warmup_tasks: list[TaskIds] | None = None,
        process_id: str | None = None,
        user_endpoint: Endpoint | None = None,
        client_tags: list[KeyValue] | None = None,
        task_offsets: list[TaskOffset] | None = None,
        task_end_offsets: list[TaskOffset] | None = None,
        shutdown_application: bool = False,
    ) -> None:
        self.group_id = group_id
        self.member_id = member_id
        self.member_epoch = member_epoch
        self.endpoint_information_epoch = endpoint_information_epoch
        self.instance_id = instance_id
        self.rack_id = rack_id
        self.rebalance_timeout_ms = rebalance_timeout_ms
        self.topology = topology
        self.active_tasks = active_tasks
        self.standby_tasks = standby_tasks
        self.warmup_tasks = warmup_tasks
        self.process_id = process_id
        self.user_endpoint = user_endpoint
        self.client_tags = client_tags
        self.task_offsets = task_offsets
        self.task_end_offsets = task_end_offsets
        self.shutdown_application = shutdown_application

