"""Generated from StreamsGroupMemberMetadataValue.json; do not edit."""

from __future__ import annotations

from skylog.wire.schema import LAST, UNSET, Field, Message, Struct, Versions


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


class StreamsGroupMemberMetadataValue(Message):
    __slots__ = ("instance_id", "rack_id", "client_id", "client_host", "rebalance_timeout_ms", "topology_epoch", "process_id", "user_endpoint", "client_tags",)
    TYPE = "coordinator-value"
    API_KEY = 19
    VERSIONS = Versions(0, 0)
    FLEXIBLE = Versions(0, LAST)
    FIELDS = (
        Field("instance_id", "string", Versions(0, LAST), "", nullable=Versions(0, LAST)),
        Field("rack_id", "string", Versions(0, LAST), "", nullable=Versions(0, LAST)),
        Field("client_id", "string", Versions(0, LAST), ""),
        Field("client_host", "string", Versions(0, LAST), ""),
        Field("rebalance_timeout_ms", "int32", Versions(0, LAST), -1),
        Field("topology_epoch", "int32", Versions(0, LAST), 0),
        Field("process_id", "string", Versions(0, LAST), ""),
        Field("user_endpoint", Endpoint, Versions(0, LAST), None, nullable=Versions(0, LAST)),
        Field("client_tags", KeyValue, Versions(0, LAST), (), array=True),
    )

    def __init__(
        self,
        instance_id: str | None = "",
        rack_id: str | None = "",
        client_id: str = "",
        client_host: str = "",
        rebalance_timeout_ms: int = -1,
        topology_epoch: int = 0,
        process_id: str = "",
        user_endpoint: Endpoint | None = None,
        client_tags: list[KeyValue] = UNSET,
    ) -> None:
        self.instance_id = instance_id
        self.rack_id = rack_id
        self.client_id = client_id
        self.client_host = client_host
        self.rebalance_timeout_ms = rebalance_timeout_ms
        self.topology_epoch = topology_epoch
        self.process_id = process_id
        self.user_endpoint = user_endpoint
        self.client_tags = [] if client_tags is UNSET else client_tags

