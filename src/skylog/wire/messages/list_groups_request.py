"""Generated from ListGroupsRequest.json; do not edit."""

from __future__ import annotations

from skylog.wire.schema import LAST, UNSET, Field, Message, Versions


class ListGroupsRequest(Message):
    __slots__ = ("states_filter", "types_filter",)
    TYPE = "request"
    API_KEY = 16
    VERSIONS = Versions(0, 5)
    FLEXIBLE = Versions(3, LAST)
    LISTENERS = ('broker',)
    FIELDS = (
        Field("states_filter", "string", Versions(4, LAST), (), array=True),
        Field("types_filter", "string", Versions(5, LAST), (), array=True),
    )

    def __init__(
        self,
        states_filter: list[str] = UNSET,
        types_filter: list[str] = UNSET,
    ) -> None:
        self.states_filter = [] if states_filter is UNSET else states_filter
        self.types_filter = [] if types_filter is UNSET else types_filter

