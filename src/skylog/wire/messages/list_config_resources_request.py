"""Generated from ListConfigResourcesRequest.json; do not edit."""

from __future__ import annotations

from skylog.wire.schema import LAST, UNSET, Field, Message, Versions


class ListConfigResourcesRequest(Message):
    __slots__ = ("resource_types",)
    TYPE = "request"
    API_KEY = 74
    VERSIONS = Versions(0, 1)
    FLEXIBLE = Versions(0, LAST)
    LISTENERS = ('broker',)
    FIELDS = (
        Field("resource_types", "int8", Versions(1, LAST), (), array=True),
    )

    def __init__(
        self,
        resource_types: list[int] = UNSET,
    ) -> None:
        self.resource_types = [] if resource_types is UNSET else resource_types

