"""Generated from ListDisklessFilesRequest.json; do not edit."""

from __future__ import annotations

from skylog.wire.schema import LAST, Field, Message, Versions


class ListDisklessFilesRequest(Message):
    __slots__ = ("after", "limit", "only_here",)
    TYPE = "request"
    API_KEY = 505
    VERSIONS = Versions(0, 0)
    FLEXIBLE = Versions(0, LAST)
    LISTENERS = ('broker',)
    FIELDS = (
        Field("after", "string", Versions(0, LAST), ""),
        Field("limit", "int32", Versions(0, LAST), 1000),
        Field("only_here", "bool", Versions(0, LAST), False, tag=10000, tagged=Versions(0, LAST), ignorable=True),
    )

    def __init__(
        self,
        after: str = "",
        limit: int = 1000,
        only_here: bool = False,
    ) -> None:
        self.after = after
        self.limit = limit
        self.only_here = only_here

