"""Generated from PinStagedResponse.json; do not edit."""

from __future__ import annotations

from skylog.wire.schema import LAST, UNSET, Field, Message, Struct, Versions


class PinnedObject(Struct):
    __slots__ = ("error_code", "error_message", "expires_ms",)
    FIELDS = (
        Field("error_code", "int16", Versions(0, LAST), 0),
        Field("error_message", "string", Versions(0, LAST), None, nullable=Versions(0, LAST)),
        Field("expires_ms", "int64", Versions(0, LAST), -1),
    )

    def __init__(
        self,
        error_code: int = 0,
        error_message: str | None = None,
        expires_ms: int = -1,
    ) -> None:
        self.error_code = error_code
        self.error_message = error_message
        self.expires_ms = expires_ms


class PinStagedResponse(Message):
    __slots__ = ("throttle_time_ms", "error_code", "error_message", "storage_url", "staging_prefix", "objects",)
    TYPE = "response"
    API_KEY = 503
    VERSIONS = Versions(0, 0)
    FLEXIBLE = Versions(0, LAST)
    LISTENERS = ('broker',)
    FIELDS = (
        Field("throttle_time_ms", "int32", Versions(0, LAST), 0),
        Field("error_code", "int16", Versions(0, LAST), 0),
        Field("error_message", "string", Versions(0, LAST), None, nullable=Versions(0, LAST)),
        Field("storage_url", "string", Versions(0, LAST), None, nullable=Versions(0, LAST)),
        Field("staging_prefix", "string", Versions(0, LAST), ""),
        Field("objects", PinnedObject, Versions(0, LAST), (), array=True),
    )

    def __init__(
        self,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        error_message: str | None = None,
        storage_url: str | None = None,
        staging_prefix: str = "",
        objects: list[PinnedObject] = UNSET,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.error_message = error_message
        self.storage_url = storage_url
        self.staging_prefix = staging_prefix
        self.objects = [] if objects is UNSET else objects

