"""Generated from GroupMetadataValue.json; do not edit."""

from __future__ import annotations

from skylog.wire.schema import LAST, UNSET, Field, Message, Struct, Versions


class MemberMetadata(Struct):
    __slots__ = ("member_id", "group_instance_id", "client_id", "client_host", "rebalance_timeout", "session_timeout", "subscription", "assignment",)
    FIELDS = (
        Field("member_id", "string", Versions(0, LAST), ""),
        Field("group_instance_id", "string", Versions(3, LAST), None, nullable=Versions(3, LAST), ignorable=True),
        Field("client_id", "string", Versions(0, LAST), ""),
        Field("client_host", "string", Versions(0, LAST), ""),
        Field("rebalance_timeout", "int32", Versions(1, LAST), -1, ignorable=True),
        Field("session_timeout", "int32", Versions(0, LAST), 0),
        Field("subscription", "bytes", Versions(0, LAST), b""),
        Field("assignment", "bytes", Versions(0, LAST), b""),
    )

    def __init__(
        self,
        member_id: str = "",
        group_instance_id: str | None = None,
        client_id: str = "",
        client_host: str = "",
        rebalance_timeout: int = -1,
        session_timeout: int = 0,
        subscription: bytes = b"",
        assignment: bytes = b"",
    ) -> None:
        self.member_id = member_id
        self.group_instance_id = group_instance_id
        self.client_id = client_id
        self.client_host = client_host
        self.rebalance_timeout = rebalance_timeout
        self.session_timeout = session_timeout
        self.subscription = subscription
        self.assignment = assignment


class GroupMetadataValue(Message):
    __slots__ = ("protocol_type", "generation", "protocol", "leader", "current_state_timestamp", "members",)
    TYPE = "coordinator-value"
    API_KEY = 2
    VERSIONS = Versions(0, 4)
    FLEXIBLE = Versions(4, LAST)
    FIELDS = (
        Field("protocol_type", "string", Versions(0, LAST), ""),
        Field("generation", "int32", Versions(0, LAST), 0),
        Field("protocol", "string", Versions(0, LAST), "", nullable=Versions(0, LAST)),
        Field("leader", "string", Versions(0, LAST), "", nullable=Versions(0, LAST)),
        Field("current_state_timestamp", "int64", Versions(2, LAST), -1, ignorable=True),
        Field("members", MemberMetadata, Versions(0, LAST), (), array=True),
    )

    def __init__(
        self,
        protocol_type: str = "",
        generation: int = 0,
        protocol: str | None = "",
        leader: str | None = "",
        current_state_timestamp: int = -1,
        members: list[MemberMetadata] = UNSET,
    ) -> None:
        self.protocol_type = protocol_type
        self.generation = generation
        self.protocol = protocol
        self.leader = leader
        self.current_state_timestamp = current_state_timestamp
        self.members = [] if members is UNSET else members

