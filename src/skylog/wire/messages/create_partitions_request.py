"""Generated from CreatePartitionsRequest.json; do not edit."""

from __future__ import annotations

from skylog.wire.schema import LAST, UNSET, Field, Message, Struct, Versions


class CreatePartitionsAssignment(Struct):
    __slots__ = ("broker_ids",)
    FIELDS = (
        Field("broker_ids", "int32", Versions(0, LAST), (), array=True),
    )

    def __init__(
        self,
        broker_ids: list[int] = UNSET,
    ) -> None:
        self.broker_ids = [] if broker_ids is UNSET else broker_ids


class CreatePartitionsTopic(Struct):
    __slots__ = ("name", "count", "assignments",)
    FIELDS = (
        Field("name", "string", Versions(0, LAST), ""),
        Field("count", "int32", Versions(0, LAST), 0),
        Field("assignments", CreatePartitionsAssignment, Versions(0, LAST), (), array=True, nullable=Versions(0, LAST)),
    )

    def __init__(
        self,
        name: str = "",
        count: int = 0,
        assignments: list[CreatePartitionsAssignment] | None = UNSET,
    ) -> None:
        self.name = name
        self.count = count
        self.assignments = [] if assignments is UNSET else assignments


class CreatePartitionsRequest(Message):
    __slots__ = ("topics", "timeout_ms", "validate_only",)
    TYPE = "request"
    API_KEY = 37
    VERSIONS = Versions(0, 3)
    FLEXIBLE = Versions(2, LAST)
    LISTENERS = ('broker', 'controller')
    FIELDS = (
        Field("topics", CreatePartitionsTopic, Versions(0, LAST), (), array=True),
        Field("timeout_ms", "int32", Versions(0, LAST), 0),
        Field("validate_only", "bool", Versions(0, LAST), False),
    )

    def __init__(
        self,
        topics: list[CreatePartitionsTopic] = UNSET,
        timeout_ms: int = 0,
        validate_only: bool = False,
    ) -> None:
        self.topics = [] if topics is UNSET else topics
        self.timeout_ms = timeout_ms
        self.validate_only = validate_only

