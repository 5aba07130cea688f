"""Generated from ConsumerGroupHeartbeatRequest.json; do not edit."""

from __future__ import annotations

from skylog.kernel.ids import ZERO_UUID, Uuid
from skylog.wire.schema import LAST, UNSET, Field, Message, Struct, Versions


class TopicPartitions(Struct):
    __slots__ = ("topic_id", "partitions",)
    FIELDS = (
        Field("topic_id", "uuid", Versions(0, LAST), ZERO_UUID),
        Field("partitions", "int32", Versions(0, LAST), (), array=True),
    )

    def __init__(
        self,
        topic_id: Uuid = ZERO_UUID,
        partitions: list[int] = UNSET,
    ) -> None:
        self.topic_id = topic_id
        self.partitions = [] if partitions is UNSET else partitions


class ConsumerGroupHeartbeatRequest(Message):
    __slots__ = ("group_id", "member_id", "member_epoch", "instance_id", "rack_id", "rebalance_timeout_ms", "subscribed_topic_names", "subscribed_topic_regex", "server_assignor", "topic_partitions",)
    TYPE = "request"
    API_KEY = 68
    VERSIONS = Versions(0, 1)
    FLEXIBLE = Versions(0, LAST)
    LISTENERS = ('broker',)
    FIELDS = (
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

    def __init__(
        self,
        group_id: str = "",
        member_id: str = "",
        member_epoch: int = 0,
        instance_id: str | None = None,
        rack_id: str | None = None,
        rebalance_timeout_ms: int = -1,
        subscribed_topic_names: list[str] | None = None,
        subscribed_topic_regex: str | None = None,
        server_assignor: str | None = None,
        topic_partitions: list[TopicPartitions] | None = None,
    ) -> None:
        self.group_id = group_id
        self.member_id = member_id
        self.member_epoch = member_epoch
        self.instance_id = instance_id
        self.rack_id = rack_id
        self.rebalance_timeout_ms = rebalance_timeout_ms
        self.subscribed_topic_names = subscribed_topic_names
        self.subscribed_topic_regex = subscribed_topic_regex
        self.server_assignor = server_assignor
        self.topic_partitions = topic_partitions

