"""Generated from JoinGroupRequest.json; do not edit."""

from __future__ import annotations

from skylog.wire.schema import LAST, UNSET, Field, Message, Struct, Versions


class JoinGroupRequestProtocol(Struct):
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


class JoinGroupRequest(Message):
    __slots__ = ("group_id", "session_timeout_ms", "rebalance_timeout_ms", "member_id", "group_instance_id", "protocol_type", "protocols", "reason",)
    TYPE = "request"
    API_KEY = 11
    VERSIONS = Versions(0, 9)
    FLEXIBLE = Versions(6, LAST)
    LISTENERS = ('broker',)
    FIELDS = (
        Field("group_id", "string", Versions(0, LAST), ""),
        Field("session_timeout_ms", "int32", Versions(0, LAST), 0),
        Field("rebalance_timeout_ms", "int32", Versions(1, LAST), -1, ignorable=True),
        Field("member_id", "string", Versions(0, LAST), ""),
        Field("group_instance_id", "string", Versions(5, LAST), None, nullable=Versions(5, LAST)),
        Field("protocol_type", "string", Versions(0, LAST), ""),
        Field("protocols", JoinGroupRequestProtocol, Versions(0, LAST), (), array=True),
        Field("reason", "string", Versions(8, LAST), None, nullable=Versions(8, LAST), ignorable=True),
    )

    def __init__(
        self,
        group_id: str = "",
        session_timeout_ms: int = 0,
        rebalance_timeout_ms: int = -1,
        member_id: str = "",
        group_instance_id: str | None = None,
        protocol_type: str = "",
        protocols: list[JoinGroupRequestProtocol] = UNSET,
        reason: str | None = None,
    ) -> None:
        self.group_id = group_id
        self.session_timeout_ms = session_timeout_ms
        self.rebalance_timeout_ms = rebalance_timeout_ms
        self.member_id = member_id
        self.group_instance_id = group_instance_id
        self.protocol_type = protocol_type
        self.protocols = [] if protocols is UNSET else protocols
        self.reason = reason

