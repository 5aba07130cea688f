"""Generated from ConsumerGroupMemberMetadataValue.json; do not edit."""

from __future__ import annotations

from skylog.wire.schema import LAST, UNSET, Field, Message, Struct, Versions


class ClassicProtocol(Struct):
    __slots__ = ("name", "metadata",)
    FIELDS = (
        Field("name", "string", Versions(0, LAST), ""),
        Field("metadata", "bytes", Versions(0, LAST), b""),
    )

    def __init__(
        self,
        name: str = "",
        metadata: bytes = b"",
    ) -> None:
        self.name = name
        self.metadata = metadata


class ClassicMemberMetadata(Struct):
    __slots__ = ("session_timeout_ms", "supported_protocols",)
    FIELDS = (
        Field("session_timeout_ms", "int32", Versions(0, LAST), 0),
        Field("supported_protocols", ClassicProtocol, Versions(0, LAST), (), array=True),
    )

    def __init__(
        self,
        session_timeout_ms: int = 0,
        supported_protocols: list[ClassicProtocol] = UNSET,
    ) -> None:
        self.session_timeout_ms = session_timeout_ms
        self.supported_protocols = [] if supported_protocols is UNSET else supported_protocols


class ConsumerGroupMemberMetadataValue(Message):
    __slots__ = ("instance_id", "rack_id", "client_id", "client_host", "subscribed_topic_names", "subscribed_topic_regex", "rebalance_timeout_ms", "server_assignor", "classic_member_metadata",)
    TYPE = "coordinator-value"
    API_KEY = 5
    VERSIONS = Versions(0, 0)
    FLEXIBLE = Versions(0, LAST)
    FIELDS = (
        Field("instance_id", "string", Versions(0, LAST), "", nullable=Versions(0, LAST)),
        Field("rack_id", "string", Versions(0, LAST), "", nullable=Versions(0, LAST)),
        Field("client_id", "string", Versions(0, LAST), ""),
        Field("client_host", "string", Versions(0, LAST), ""),
        Field("subscribed_topic_names", "string", Versions(0, LAST), (), array=True),
        Field("subscribed_topic_regex", "string", Versions(0, LAST), "", nullable=Versions(0, LAST)),
        Field("rebalance_timeout_ms", "int32", Versions(0, LAST), -1),
        Field("server_assignor", "string", Versions(0, LAST), "", nullable=Versions(0, LAST)),
        Field("classic_member_metadata", ClassicMemberMetadata, Versions(0, LAST), ..., nullable=Versions(0, LAST), tag=0, tagged=Versions(0, LAST)),
    )

    def __init__(
        self,
        instance_id: str | None = "",
        rack_id: str | None = "",
        client_id: str = "",
        client_host: str = "",
        subscribed_topic_names: list[str] = UNSET,
        subscribed_topic_regex: str | None = "",
        rebalance_timeout_ms: int = -1,
        server_assignor: str | None = "",
        classic_member_metadata: ClassicMemberMetadata | None = UNSET,
    ) -> None:
        self.instance_id = instance_id
        self.rack_id = rack_id
        self.client_id = client_id
        self.client_host = client_host
        self.subscribed_topic_names = [] if subscribed_topic_names is UNSET else subscribed_topic_names
        self.subscribed_topic_regex = subscribed_topic_regex
        self.rebalance_timeout_ms = rebalance_timeout_ms
        self.server_assignor = server_assignor
        self.classic_member_metadata = ClassicMemberMetadata() if classic_member_metadata is UNSET else classic_member_metadata

