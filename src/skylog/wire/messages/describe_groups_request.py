"""Generated from DescribeGroupsRequest.json; do not edit."""

from __future__ import annotations

from skylog.wire.schema import LAST, UNSET, Field, Message, Versions


class DescribeGroupsRequest(Message):
    __slots__ = ("groups", "include_authorized_operations",)
    TYPE = "request"
    API_KEY = 15
    VERSIONS = Versions(0, 6)
    FLEXIBLE = Versions(5, LAST)
    LISTENERS = ('broker',)
    FIELDS = (
        Field("groups", "string", Versions(0, LAST), (), array=True),
        Field("include_authorized_operations", "bool", Versions(3, LAST), False),
    )

    def __init__(
        self,
        groups: list[str] = UNSET,
        include_authorized_operations: bool = False,
    ) -> None:
        self.groups = [] if groups is UNSET else groups
        self.include_authorized_operations = include_authorized_operations

