"""Generated from FindCoordinatorRequest.json; do not edit."""

from __future__ import annotations

from skylog.wire.schema import LAST, UNSET, Field, Message, Versions


class FindCoordinatorRequest(Message):
    __slots__ = ("key", "key_type", "coordinator_keys",)
    TYPE = "request"
    API_KEY = 10
    VERSIONS = Versions(0, 6)
    FLEXIBLE = Versions(3, LAST)
    LISTENERS = ('broker',)
    FIELDS = (
        Field("key", "string", Versions(0, 3), ""),
        Field("key_type", "int8", Versions(1, LAST), 0),
        Field("coordinator_keys", "string", Versions(4, LAST), (), array=True),
    )

    def __init__(
        self,
        key: str = "",
        key_type: int = 0,
        coordinator_keys: list[str] = UNSET,
    ) -> None:
        self.key = key
        self.key_type = key_type
        self.coordinator_keys = [] if coordinator_keys is UNSET else coordinator_keys

