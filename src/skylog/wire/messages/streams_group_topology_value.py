"""Generated from StreamsGroupTopologyValue.json; do not edit."""

from __future__ import annotations

from skylog.wire.schema import LAST, UNSET, Field, Message, Struct, Versions


class TopicConfig(Struct):
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
        Field("topic_configs", TopicConfig, Versions(0, LAST), (), array=True),
    )

    def __init__(
        self,
        name: str = "",
        partitions: int = 0,
        replication_factor: int = 0,
        topic_configs: list[TopicConfig] = UNSET,
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


class StreamsGroupTopologyValue(Message):
    __slots__ = ("epoch", "subtopologies",)
    TYPE = "coordinator-value"
    API_KEY = 23
    VERSIONS = Versions(0, 0)
    FLEXIBLE = Versions(0, LAST)
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

