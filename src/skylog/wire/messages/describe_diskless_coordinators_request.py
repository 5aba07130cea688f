"""Generated from DescribeDisklessCoordinatorsRequest.json; do not edit."""

from __future__ import annotations

from skylog.wire.schema import LAST, Message, Versions


class DescribeDisklessCoordinatorsRequest(Message):
    __slots__ = ()
    TYPE = "request"
    API_KEY = 504
    VERSIONS = Versions(0, 0)
    FLEXIBLE = Versions(0, LAST)
    LISTENERS = ('broker',)

