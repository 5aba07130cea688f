"""Generated from FindCoordinatorResponse.json; do not edit."""

from __future__ import annotations

from skylog.wire.schema import LAST, UNSET, Field, Message, Struct, Versions


class Coordinator(Struct):
    __slots__ = ("key", "node_id", "host", "port", "error_code", "error_message",)
    FIELDS = (
        Field("key", "string", Versions(4, LAST), ""),
        Field("node_id", "int32", Versions(4, LAST), 0),
        Field("host", "string", Versions(4, LAST), ""),
        Field("port", "int32", Versions(4, LAST), 0),
        Field("error_code", "int16", Versions(4, LAST), 0),
        Field("error_message", "string", Versions(4, LAST), "", nullable=Versions(4, LAST), ignorable=True),
    )

    def __init__(
        self,
        key: str = "",
        node_id: int = 0,
        host: str = "",
        port: int = 0,
        error_code: int = 0,
        error_message: str | None = "",
    ) -> None:
        self.key = key
        self.node_id = node_id
        self.host = host
        self.port = port
        self.error_code = error_code
        self.error_message = error_message


class FindCoordinatorResponse(Message):
    __slots__ = ("throttle_time_ms", "error_code", "error_message", "node_id", "host", "port", "coordinators",)
    TYPE = "response"
    API_KEY = 10
    VERSIONS = Versions(0, 6)
    FLEXIBLE = Versions(3, LAST)
    FIELDS = (
        Field("throttle_time_ms", "int32", Versions(1, LAST), 0, ignorable=True),
        Field("error_code", "int16", Versions(0, 3), 0),
        Field("error_message", "string", Versions(1, 3), "", nullable=Versions(1, 3), ignorable=True),
        Field("node_id", "int32", Versions(0, 3), 0),
        Field("host", "string", Versions(0, 3), ""),
        Field("port", "int32", Versions(0, 3), 0),
        Field("coordinators", Coordinator, Versions(4, LAST), (), array=True),
    )

    def __init__(
        self,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        error_message: str | None = "",
        node_id: int = 0,
        host: str = "",
        port: int = 0,
        coordinators: list[Coordinator] = UNSET,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.error_message = error_message
        self.node_id = node_id
        self.host = host
        self.port = port
        self.coordinators = [] if coordinators is UNSET else coordinators

