"""Generated from DescribeTransactionsRequest.json; do not edit."""

from __future__ import annotations

from skylog.wire.schema import LAST, UNSET, Field, Message, Versions


class DescribeTransactionsRequest(Message):
    __slots__ = ("transactional_ids",)
    TYPE = "request"
    API_KEY = 65
    VERSIONS = Versions(0, 0)
    FLEXIBLE = Versions(0, LAST)
    LISTENERS = ('broker',)
    FIELDS = (
        Field("transactional_ids", "string", Versions(0, LAST), (), array=True),
    )

    def __init__(
        self,
        transactional_ids: list[str] = UNSET,
    ) -> None:
        self.transactional_ids = [] if transactional_ids is UNSET else transactional_ids

