"""Generated from ShareGroupDescribeRequest.json; do not edit."""

from __future__ import annotations

from skylog.wire.schema import LAST, UNSET, Field, Message, Versions


class ShareGroupDescribeRequest(Message):
    __slots__ = ("group_ids", "include_authorized_operations",)
    TYPE = "request"
    API_KEY = 77
    VERSIONS = Versions(1, 1)
    FLEXIBLE = Versions(0, LAST)
    LISTENERS = ('broker',)
    FIELDS = (
        Field("group_ids", "string", Versions(0, LAST), (), array=True),
        Field("include_authorized_operations", "bool", Versions(0, LAST), False),
    )

    def __init__(
        self,
        group_ids: list[str] = UNSET,
        include_authorized_operations: bool = False,
    ) -> None:
        self.group_ids = [] if group_ids is UNSET else group_ids
        self.include_authorized_operations = include_authorized_operations

