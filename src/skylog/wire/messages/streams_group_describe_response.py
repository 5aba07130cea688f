"""Generated from StreamsGroupDescribeResponse.json; do not edit."""

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


class Subtopology(Struct):
    __slots__ = ("subtopology_id", "source_topics", "repartition_sink_topics", "state_changelog_topics", "repartition_source_topics",)
    FIELDS = (
        Field("subtopology_id", "string", Versions(0, LAST), ""),
        Field("source_topics", "string", Versions(0, LAST), (), array=True),
        Field("repartition_sink_topics", "string", Versions(0, LAST), (), array=True),
        Field("state_changelog_topics", TopicInfo, Versions(0, LAST), (), array=True),
        Field("repartition_source_topics", TopicInfo, Versions(0, LAST), (), array=True),
    )

    def __init__(
        self,
        subtopology_id: str = "",
        source_topics: list[str] = UNSET,
        repartition_sink_topics: list[str] = UNSET,
        state_changelog_topics: list[TopicInfo] = UNSET,
        repartition_source_topics: list[TopicInfo] = UNSET,
    ) -> None:
        self.subtopology_id = subtopology_id
        self.source_topics = [] if source_topics is UNSET else source_topics
        self.repartition_sink_topics = [] if repartition_sink_topics is UNSET else repartition_sink_topics
        self.state_changelog_topics = [] if state_changelog_topics is UNSET else state_changelog_topics
        self.repartition_source_topics = [] if repartition_source_topics is UNSET else repartition_source_topics


class Topology(Struct):
    __slots__ = ("epoch", "subtopologies",)
    FIELDS = (
        Field("epoch", "int32", Versions(0, LAST), 0),
        Field("subtopologies", Subtopology, Versions(0, LAST), None, array=True, nullable=Versions(0, LAST)),
    )

    def __init__(
        self,
        epoch: int = 0,
        subtopologies: list[Subtopology] | None = None,
    ) -> None:
        self.epoch = epoch
        self.subtopologies = subtopologies


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


class Assignment(Struct):
    __slots__ = ("active_tasks", "standby_tasks", "warmup_tasks",)
    FIELDS = (
        Field("active_tasks", TaskIds, Versions(0, LAST), (), array=True),
        Field("standby_tasks", TaskIds, Versions(0, LAST), (), array=True),
        Field("warmup_tasks", TaskIds, Versions(0, LAST), (), array=True),
    )

    def __init__(
        self,
        active_tasks: list[TaskIds] = UNSET,
        standby_tasks: list[TaskIds] = UNSET,
        warmup_tasks: list[TaskIds] = UNSET,
    ) -> None:
        self.active_tasks = [] if active_tasks is UNSET else active_tasks
        self.standby_tasks = [] if standby_tasks is UNSET else standby_tasks
        self.warmup_tasks = [] if warmup_tasks is UNSET else warmup_tasks


class Member(Struct):
    __slots__ = ("member_id", "member_epoch", "instance_id", "rack_id", "client_id", "client_host", "topology_epoch", "process_id", "user_endpoint", "client_tags", "task_offsets", "task_end_offsets", "assignment", "target_assignment", "is_classic",)
    FIELDS = (
        Field("member_id", "string", Versions(0, LAST), ""),
        Field("member_epoch", "int32", Versions(0, LAST), 0),
        Field("instance_id", "string", Versions(0, LAST), None, nullable=Versions(0, LAST)),
        Field("rack_id", "string", Versions(0, LAST), None, nullable=Versions(0, LAST)),
        Field("client_id", "string", Versions(0, LAST), ""),
        Field("client_host", "string", Versions(0, LAST), ""),
        Field("topology_epoch", "int32", Versions(0, LAST), 0),
        Field("process_id", "string", Versions(0, LAST), ""),
        Field("user_endpoint", Endpoint, Versions(0, LAST), None, nullable=Versions(0, LAST)),
        Field("client_tags", KeyValue, Versions(0, LAST), (), array=True),
        Field("task_offsets", TaskOffset, Versions(0, LAST), (), array=True),
        Field("task_end_offsets", TaskOffset, Versions(0, LAST), (), array=True),
        Field("assignment", Assignment, Versions(0, LAST), ...),
        Field("target_assignment", Assignment, Versions(0, LAST), ...),
        Field("is_classic", "bool", Versions(0, LAST), False),
    )

    def __init__(
        self,
        member_id: str = "",
        member_epoch: int = 0,
        instance_id: str | None = None,
        rack_id: str | None = None,
        client_id: str = "",
        client_host: str = "",
        topology_epoch: int = 0,
        process_id: str = "",
        user_endpoint: Endpoint | None = None,
        client_tags: list[KeyValue] = UNSET,
        task_offsets: list[TaskOffset] = UNSET,
        task_end_offsets: list[TaskOffset] = UNSET,
        assignment: Assignment = UNSET,
        target_assignment: Assignment = UNSET,
        is_classic: bool = False,
    ) -> None:
        self.member_id = member_id
        self.member_epoch = member_epoch
        self.instance_id = instance_id
        self.rack_id = rack_id
        self.client_id = client_id
        self.client_host = client_host
        self.topology_epoch = topology_epoch
        self.process_id = process_id
        self.user_endpoint = user_endpoint
        self.client_tags = [] if client_tags is UNSET else client_tags
        self.task_offsets = [] if task_offsets is UNSET else task_offsets
        self.task_end_offsets = [] if task_end_offsets is UNSET else task_end_offsets
        self.assignment = Assignment() if assignment is UNSET else assignment
        self.target_assignment = Assignment() if target_assignment is UNSET else target_assignment
        self.is_classic = is_classic


class DescribedGroup(Struct):
    __slots__ = ("error_code", "error_message", "group_id", "group_state", "group_epoch", "assignment_epoch", "topology", "members", "authorized_operations",)
    FIELDS = (
        Field("error_code", "int16", Versions(0, LAST), 0),
        Field("error_message", "string", Versions(0, LAST), None, nullable=Versions(0, LAST)),
        Field("group_id", "string", Versions(0, LAST), ""),
        Field("group_state", "string", Versions(0, LAST), ""),
        Field("group_epoch", "int32", Versions(0, LAST), 0),
        Field("assignment_epoch", "int32", Versions(0, LAST), 0),
        Field("topology", Topology, Versions(0, LAST), None, nullable=Versions(0, LAST)),
        Field("members", Member, Versions(0, LAST), (), array=True),
        Field("authorized_operations", "int32", Versions(0, LAST), -2147483648),
    )

    def __init__(
        self,
        error_code: int = 0,
        error_message: str | None = None,
        group_id: str = "",
        group_state: str = "",
        group_epoch: int = 0,
        assignment_epoch: int = 0,
        topology: Topology | None = None,
        members: list[Member] = UNSET,
        authorized_operations: int = -2147483648,
    ) -> None:
        self.error_code = error_code
        self.error_message = error_message
        self.group_id = group_id
        self.group_state = group_state
        self.group_epoch = group_epoch
        self.assignment_epoch = assignment_epoch
        self.topology = topology
        self.members = [] if members is UNSET else members
        self.authorized_operations = authorized_operations


class StreamsGroupDescribeResponse(Message):
    __slots__ = ("throttle_time_ms", "groups",)
    TYPE = "response"
    API_KEY = 89
    VERSIONS = Versions(0, 0)
    FLEXIBLE = Versions(0, LAST)
    FIELDS = (
        Field("throttle_time_ms", "int32", Versions(0, LAST), 0),
        Field("groups", DescribedGroup, Versions(0, LAST), (), array=True),
    )

    def __init__(
        self,
        throttle_time_ms: int = 0,
        groups: list[DescribedGroup] = UNSET,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.groups = [] if groups is UNSET else groups

