"""Generated from ConsumerGroupRegularExpressionKey.json; do not edit."""

from __future__ import annotations

from skylog.wire.schema import NEVER, Field, Message, Versions


class ConsumerGroupRegularExpressionKey(Message):
    __slots__ = ("group_id", "regular_expression",)
    TYPE = "coordinator-key"
    API_KEY = 16
    VERSIONS = Versions(0, 0)
    FLEXIBLE = NEVER
    FIELDS = (
        Field("group_id", "string", Versions(0, 0), ""),
        Field("regular_expression", "string", Versions(0, 0), ""),
    )

    def __init__(
        self,
        group_id: str = "",
        regular_expression: str = "",
    ) -> None:
        self.group_id = group_id
        self.regular_expression = regular_expression

