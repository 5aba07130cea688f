"""Generated from MetadataRequest.json; do not edit."""

from __future__ import annotations

from skylog.kernel.ids import ZERO_UUID, Uuid
from skylog.wire.schema import LAST, UNSET, Field, Message, Struct, Versions


class MetadataRequestTopic(Struct):
    __slots__ = ("topic_id", "name",)
    FIELDS = (
        Field("topic_id", "uuid", Versions(10, LAST), ZERO_UUID, ignorable=True),
        Field("name", "string", Versions(0, LAST), "", nullable=Versions(10, LAST)),
    )

    def __init__(
        self,
        topic_id: Uuid = ZERO_UUID,
        name: str | None = "",
    ) -> None:
        self.topic_id = topic_id
        self.name = name


class MetadataRequest(Message):
    __slots__ = ("topics", "allow_auto_topic_creation", "include_cluster_authorized_operations", "include_topic_authorized_operations",)
    TYPE = "request"
    API_KEY = 3
    VERSIONS = Versions(0, 13)
    FLEXIBLE = Versions(9, LAST)
    LISTENERS = ('broker',)
    FIELDS = (
        Field("topics", MetadataRequestTopic, Versions(0, LAST), (), array=True, nullable=Versions(1, LAST)),
        Field("allow_auto_topic_creation", "bool", Versions(4, LAST), True),
        Field("include_cluster_authorized_operations", "bool", Versions(8, 10), False),
        Field("include_topic_authorized_operations", "bool", Versions(8, LAST), False),
    )

    def __init__(
        self,
        topics: list[MetadataRequestTopic] | None = UNSET,
        allow_auto_topic_creation: bool = True,
        include_cluster_authorized_operations: bool = False,
        include_topic_authorized_operations: bool = False,
    ) -> None:
        self.topics = [] if topics is UNSET else topics
        self.allow_auto_topic_creation = allow_auto_topic_creation
        self.include_cluster_authorized_operations = include_cluster_authorized_operations
        self.include_topic_authorized_operations = include_topic_authorized_operations

