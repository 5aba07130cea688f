"""Generated from Kafka's OffsetCommitValue.json; do not edit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from skylog.kernel.ids import ZERO_UUID, Uuid
from skylog.wire.schema import LAST, Field, Message, Versions


@dataclass(slots=True)
class OffsetCommitValue(Message):
    offset: int = 0
    leader_epoch: int = -1
    metadata: str = ""
    commit_timestamp: int = 0
    expire_timestamp: int = -1
    topic_id: Uuid = ZERO_UUID
    TYPE = "coordinator-value"
    API_KEY = 1
    VERSIONS = Versions(0, 4)
    FLEXIBLE = Versions(4, LAST)
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("offset", "int64", Versions(0, LAST), 0),
        Field("leader_epoch", "int32", Versions(3, LAST), -1, ignorable=True),
        Field("metadata", "string", Versions(0, LAST), ""),
        Field("commit_timestamp", "int64", Versions(0, LAST), 0),
        Field("expire_timestamp", "int64", Versions(1, 1), -1, ignorable=True),
        Field("topic_id", "uuid", Versions(4, LAST), ZERO_UUID, tag=0, tagged=Versions(4, LAST), ignorable=True),
    )

