"""Generated from DeleteGroupsRequest.json; do not edit."""

from __future__ import annotations

from skylog.wire.schema import LAST, UNSET, Field, Message, Versions


class DeleteGroupsRequest(Message):
    __slots__ = ("groups_names",)
    TYPE = "request"
    API_KEY = 42
    VERSIONS = Versions(0, 2)
    FLEXIBLE = Versions(2, LAST)
    LISTENERS = ('broker',)
    FIELDS = (
        Field("groups_names", "string", Versions(0, LAST), (), array=True),
    )

    def __init__(
        self,
        groups_names: list[str] = UNSET,
    ) -> None:
        self.groups_names = [] if groups_names is UNSET else groups_names

