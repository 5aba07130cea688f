"""Generated from UpdateFeaturesRequest.json; do not edit."""

from __future__ import annotations

from skylog.wire.schema import LAST, UNSET, Field, Message, Struct, Versions


class FeatureUpdateKey(Struct):
    __slots__ = ("feature", "max_version_level", "allow_downgrade", "upgrade_type",)
    FIELDS = (
        Field("feature", "string", Versions(0, LAST), ""),
        Field("max_version_level", "int16", Versions(0, LAST), 0),
        Field("allow_downgrade", "bool", Versions(0, 0), False),
        Field("upgrade_type", "int8", Versions(1, LAST), 1),
    )

    def __init__(
        self,
        feature: str = "",
        max_version_level: int = 0,
        allow_downgrade: bool = False,
        upgrade_type: int = 1,
    ) -> None:
        self.feature = feature
        self.max_version_level = max_version_level
        self.allow_downgrade = allow_downgrade
        self.upgrade_type = upgrade_type


class UpdateFeaturesRequest(Message):
    __slots__ = ("timeout_ms", "feature_updates", "validate_only",)
    TYPE = "request"
    API_KEY = 57
    VERSIONS = Versions(0, 2)
    FLEXIBLE = Versions(0, LAST)
    LISTENERS = ('broker', 'controller')
    FIELDS = (
        Field("timeout_ms", "int32", Versions(0, LAST), 60000),
        Field("feature_updates", FeatureUpdateKey, Versions(0, LAST), (), array=True),
        Field("validate_only", "bool", Versions(1, LAST), False),
    )

    def __init__(
        self,
        timeout_ms: int = 60000,
        feature_updates: list[FeatureUpdateKey] = UNSET,
        validate_only: bool = False,
    ) -> None:
        self.timeout_ms = timeout_ms
        self.feature_updates = [] if feature_updates is UNSET else feature_updates
        self.validate_only = validate_only

