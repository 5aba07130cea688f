"""Generated from DeleteTopicsResponse.json; do not edit."""

from __future__ import annotations

from skylog.kernel.ids import ZERO_UUID, Uuid
from skylog.wire.schema import LAST, UNSET, Field, Message, Struct, Versions


class DeletableTopicResult(Struct):
    __slots__ = ("name", "topic_id", "error_code", "error_message",)
    FIELDS = (
        Field("name", "string", Versions(0, LAST), "", nullable=Versions(6, LAST)),
        Field("topic_id", "uuid", Versions(6, LAST), ZERO_UUID, ignorable=True),
        Field("error_code", "int16", Versions(0, LAST), 0),
        Field("error_message", "string", Versions(5, LAST), None, nullable=Versions(5, LAST), ignorable=True),
    )

    def __init__(
        self,
        name: str | None = "",
        topic_id: Uuid = ZERO_UUID,
        error_code: int = 0,
        error_message: str | None = None,
    ) -> None:
        self.name = name
        self.topic_id = topic_id
        self.error_code = error_code
        self.error_message = error_message


class DeleteTopicsResponse(Message):
    __slots__ = ("throttle_time_ms", "responses",)
    TYPE = "response"
    API_KEY = 20
    VERSIONS = Versions(1, 6)
    FLEXIBLE = Versions(4, LAST)
    FIELDS = (
        Field("throttle_time_ms", "int32", Versions(1, LAST), 0, ignorable=True),
        Field("responses", DeletableTopicResult, Versions(0, LAST), (), array=True),
    )

    def __init__(
        self,
        throttle_time_ms: int = 0,
        responses: list[DeletableTopicResult] = UNSET,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.responses = [] if responses is UNSET else responses

