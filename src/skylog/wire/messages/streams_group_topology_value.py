"""Generated from Kafka's StreamsGroupTopologyValue.json; do not edit."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from skylog.wire.schema import LAST, Field, Message, Struct, Versions


@dataclass(slots=True)
class TopicConfig(Struct):
    key: str = ""
    value: str = ""
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("key", "string", Versions(0, LAST), ""),
        Field("value", "string", Versions(0, LAST), ""),
    )


@dataclass(slots=True)
class TopicInfo(Struct):
    name: str = ""
    partitions: int = 0
    replication_factor: int = 0
    topic_configs: list[TopicConfig] = field(default_factory=list)
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("name", "string", Versions(0, LAST), ""),
        Field("partitions", "int32", Versions(0, LAST), 0),
        Field("replication_factor", "int16", Versions(0, LAST), 0),
        Field("topic_configs", TopicConfig, Versions(0, LAST), (), array=True),
    )


@dataclass(slots=True)
class CopartitionGroup(Struct):
    source_topics: list[int] = field(default_factory=list)
    source_topic_regex: list[int] = field(default_factory=list)
    repartition_source_topics: list[int] = field(default_factory=list)
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("source_topics", "int16", Versions(0, LAST), (), array=True),
        Field("source_topic_regex", "int16", Versions(0, LAST), (), array=True),
        Field("repartition_source_topics", "int16", Versions(0, LAST), (), array=True),
    )


@dataclass(slots=True)
class Subtopology(Struct):
    subtopology_id: str = ""
    source_topics: list[str] = field(default_factory=list)
    source_topic_regex: list[str] = field(default_factory=list)
    state_changelog_topics: list[TopicInfo] = field(default_factory=list)
    repartition_sink_topics: list[str] = field(default_factory=list)
    repartition_source_topics: list[TopicInfo] = field(default_factory=list)
    copartition_groups: list[CopartitionGroup] = field(default_factory=list)
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("subtopology_id", "string", Versions(0, LAST), ""),
        Field("source_topics", "string", Versions(0, LAST), (), array=True),
        Field("source_topic_regex", "string", Versions(0, LAST), (), array=True),
        Field("state_changelog_topics", TopicInfo, Versions(0, LAST), (), array=True),
        Field("repartition_sink_topics", "string", Versions(0, LAST), (), array=True),
        Field("repartition_source_topics", TopicInfo, Versions(0, LAST), (), array=True),
        Field("copartition_groups", CopartitionGroup, Versions(0, LAST), (), array=True),
    )


@dataclass(slots=True)
class StreamsGroupTopologyValue(Message):
    epoch: int = 0
    subtopologies: list[Subtopology] = field(default_factory=list)
    TYPE = "coordinator-value"
    API_KEY = 23
    VERSIONS = Versions(0, 0)
    FLEXIBLE = Versions(0, LAST)
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("epoch", "int32", Versions(0, LAST), 0),
        Field("subtopologies", Subtopology, Versions(0, LAST), (), array=True),
    )

