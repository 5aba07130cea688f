"""Generated from DescribeDisklessCoordinatorsRequest.json; do not edit."""

from __future__ import annotations

from skylog.wire.schema import LAST, Field, Message, Versions


class DescribeDisklessCoordinatorsRequest(Message):
    __slots__ = ("only_here",)
    TYPE = "request"
    API_KEY = 504
    VERSIONS = Versions(0, 0)
    FLEXIBLE = Versions(0, LAST)
    LISTENERS = ('broker',)
    FIELDS = (
        Field("only_here", "bool", Versions(0, LAST), False, tag=10000, tagged=Versions(0, LAST), ignorable=True),
    )

    def __init__(
        self,
        only_here: bool = False,
    ) -> None:
        self.only_here = only_here

