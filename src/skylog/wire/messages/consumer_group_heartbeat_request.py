"""Generated from Kafka's ConsumerGroupHeartbeatRequest.json; do not edit."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from skylog.kernel.ids import ZERO_UUID, Uuid
from skylog.wire.schema import LAST, Field, Message, Struct, Versions


@dataclass(slots=True)
class TopicPartitions(Struct):
    topic_id: Uuid = ZERO_UUID
    partitions: list[int] = field(default_factory=list)
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("topic_id", "uuid", Versions(0, LAST), ZERO_UUID),
        Field("partitions", "int32", Versions(0, LAST), (), array=True),
    )


@dataclass(slots=True)
class ConsumerGroupHeartbeatRequest(Message):
    group_id: str = ""
    member_id: str = ""
    member_epoch: int = 0
    instance_id: str | None = None
    rack_id: str | None = None
    rebalance_timeout_ms: int = -1
    subscribed_topic_names: list[str] | None = None
    subscribed_topic_regex: str | None = None
    server_assignor: str | None = None
    topic_partitions: list[TopicPartitions] | None = None
    TYPE = "request"
    API_KEY = 68
    VERSIONS = Versions(0, 1)
    FLEXIBLE = Versions(0, LAST)
    LISTENERS = ('broker',)
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("group_id", "string", Versions(0, LAST), ""),
        Field("member_id", "string", Versions(0, LAST), ""),
        Field("member_epoch", "int32", Versions(0, LAST), 0),
        Field("instance_id", "string", Versions(0, LAST), None, nullable=Versions(0, LAST)),
        Field("rack_id", "string", Versions(0, LAST), None, nullable=Versions(0, LAST)),
        Field("rebalance_timeout_ms", "int32", Versions(0, LAST), -1),
        Field("subscribed_topic_names", "string", Versions(0, LAST), None, array=True, nullable=Versions(0, LAST)),
        Field("subscribed_topic_regex", "string", Versions(1, LAST), None, nullable=Versions(1, LAST)),
        Field("server_assignor", "string", Versions(0, LAST), None, nullable=Versions(0, LAST)),
        Field("topic_partitions", TopicPartitions, Versions(0, LAST), None, array=True, nullable=Versions(0, LAST)),
    )

