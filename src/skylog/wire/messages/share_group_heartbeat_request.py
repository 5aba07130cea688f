"""Generated from ShareGroupHeartbeatRequest.json; do not edit."""

from __future__ import annotations

from skylog.wire.schema import LAST, Field, Message, Versions


class ShareGroupHeartbeatRequest(Message):
    __slots__ = ("group_id", "member_id", "member_epoch", "rack_id", "subscribed_topic_names",)
    TYPE = "request"
    API_KEY = 76
    VERSIONS = Versions(1, 1)
    FLEXIBLE = Versions(0, LAST)
    LISTENERS = ('broker',)
    FIELDS = (
        Field("group_id", "string", Versions(0, LAST), ""),
        Field("member_id", "string", Versions(0, LAST), ""),
        Field("member_epoch", "int32", Versions(0, LAST), 0),
        Field("rack_id", "string", Versions(0, LAST), None, nullable=Versions(0, LAST)),
        Field("subscribed_topic_names", "string", Versions(0, LAST), None, array=True, nullable=Versions(0, LAST)),
    )

    def __init__(
        self,
        group_id: str = "",
        member_id: str = "",
        member_epoch: int = 0,
        rack_id: str | None = None,
        subscribed_topic_names: list[str] | None = None,
    ) -> None:
        self.group_id = group_id
        self.member_id = member_id
        self.member_epoch = member_epoch
        self.rack_id = rack_id
        self.subscribed_topic_names = subscribed_topic_names

