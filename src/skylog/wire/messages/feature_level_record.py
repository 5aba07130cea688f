"""Generated from FeatureLevelRecord.json; do not edit."""

from __future__ import annotations

from skylog.wire.schema import LAST, Field, Message, Versions


class FeatureLevelRecord(Message):
    __slots__ = ("name", "feature_level",)
    TYPE = "metadata"
    API_KEY = 12
    VERSIONS = Versions(0, 0)
    FLEXIBLE = Versions(0, LAST)
    FIELDS = (
        Field("name", "string", Versions(0, LAST), ""),
        Field("feature_level", "int16", Versions(0, LAST), 0),
    )

    def __init__(
        self,
        name: str = "",
        feature_level: int = 0,
    ) -> None:
        self.name = name
        self.feature_level = feature_level

