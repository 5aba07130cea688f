"""Generated from HeartbeatRequest.json; do not edit."""

from __future__ import annotations

from skylog.wire.schema import LAST, Field, Message, Versions


class HeartbeatRequest(Message):
    __slots__ = ("group_id", "generation_id", "member_id", "group_instance_id",)
    TYPE = "request"
    API_KEY = 12
    VERSIONS = Versions(0, 4)
    FLEXIBLE = Versions(4, LAST)
    LISTENERS = ('broker',)
    FIELDS = (
        Field("group_id", "string", Versions(0, LAST), ""),
        Field("generation_id", "int32", Versions(0, LAST), 0),
        Field("member_id", "string", Versions(0, LAST), ""),
        Field("group_instance_id", "string", Versions(3, LAST), None, nullable=Versions(3, LAST)),
    )

    def __init__(
        self,
        group_id: str = "",
        generation_id: int = 0,
        member_id: str = "",
        group_instance_id: str | None = None,
    ) -> None:
        self.group_id = group_id
        self.generation_id = generation_id
        self.member_id = member_id
        self.group_instance_id = group_instance_id

