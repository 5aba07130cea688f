"""Generated from ApiVersionsResponse.json; do not edit."""

from __future__ import annotations

from skylog.wire.schema import LAST, UNSET, Field, Message, Struct, Versions


class ApiVersion(Struct):
    __slots__ = ("api_key", "min_version", "max_version",)
    FIELDS = (
        Field("api_key", "int16", Versions(0, LAST), 0),
        Field("min_version", "int16", Versions(0, LAST), 0),
        Field("max_version", "int16", Versions(0, LAST), 0),
    )

    def __init__(
        self,
        api_key: int = 0,
        min_version: int = 0,
        max_version: int = 0,
    ) -> None:
        self.api_key = api_key
        self.min_version = min_version
        self.max_version = max_version


class SupportedFeatureKey(Struct):
    __slots__ = ("name", "min_version", "max_version",)
    FIELDS = (
        Field("name", "string", Versions(3, LAST), ""),
        Field("min_version", "int16", Versions(3, LAST), 0),
        Field("max_version", "int16", Versions(3, LAST), 0),
    )

    def __init__(
        self,
        name: str = "",
        min_version: int = 0,
        max_version: int = 0,
    ) -> None:
        self.name = name
        self.min_version = min_version
        self.max_version = max_version


class FinalizedFeatureKey(Struct):
    __slots__ = ("name", "max_version_level", "min_version_level",)
    FIELDS = (
        Field("name", "string", Versions(3, LAST), ""),
        Field("max_version_level", "int16", Versions(3, LAST), 0),
        Field("min_version_level", "int16", Versions(3, LAST), 0),
    )

    def __init__(
        self,
        name: str = "",
        max_version_level: int = 0,
        min_version_level: int = 0,
    ) -> None:
        self.name = name
        self.max_version_level = max_version_level
        self.min_version_level = min_version_level


class ApiVersionsResponse(Message):
    __slots__ = ("error_code", "api_keys", "throttle_time_ms", "supported_features", "finalized_features_epoch", "finalized_features", "zk_migration_ready",)
    TYPE = "response"
    API_KEY = 18
    VERSIONS = Versions(0, 4)
    FLEXIBLE = Versions(3, LAST)
    FIELDS = (
        Field("error_code", "int16", Versions(0, LAST), 0),
        Field("api_keys", ApiVersion, Versions(0, LAST), (), array=True),
        Field("throttle_time_ms", "int32", Versions(1, LAST), 0, ignorable=True),
        Field("supported_features", SupportedFeatureKey, Versions(3, LAST), (), array=True, tag=0, tagged=Versions(3, LAST), ignorable=True),
        Field("finalized_features_epoch", "int64", Versions(3, LAST), -1, tag=1, tagged=Versions(3, LAST), ignorable=True),
        Field("finalized_features", FinalizedFeatureKey, Versions(3, LAST), (), array=True, tag=2, tagged=Versions(3, LAST), ignorable=True),
        Field("zk_migration_ready", "bool", Versions(3, LAST), False, tag=3, tagged=Versions(3, LAST), ignorable=True),
    )

    def __init__(
        self,
        error_code: int = 0,
        api_keys: list[ApiVersion] = UNSET,
        throttle_time_ms: int = 0,
        supported_features: list[SupportedFeatureKey] = UNSET,
        finalized_features_epoch: int = -1,
        finalized_features: list[FinalizedFeatureKey] = UNSET,
        zk_migration_ready: bool = False,
    ) -> None:
        self.error_code = error_code
        self.api_keys = [] if api_keys is UNSET else api_keys
        self.throttle_time_ms = throttle_time_ms
        self.supported_features = [] if supported_features is UNSET else supported_features
        self.finalized_features_epoch = finalized_features_epoch
        self.finalized_features = [] if finalized_features is UNSET else finalized_features
        self.zk_migration_ready = zk_migration_ready

