"""Generated from OffsetCommitValue.json; do not edit."""

from __future__ import annotations

from skylog.kernel.ids import ZERO_UUID, Uuid
from skylog.wire.schema import LAST, Field, Message, Versions


class OffsetCommitValue(Message):
    __slots__ = ("offset", "leader_epoch", "metadata", "commit_timestamp", "expire_timestamp", "topic_id",)
    TYPE = "coordinator-value"
    API_KEY = 1
    VERSIONS = Versions(0, 4)
    FLEXIBLE = Versions(4, LAST)
    FIELDS = (
        Field("offset", "int64", Versions(0, LAST), 0),
        Field("leader_epoch", "int32", Versions(3, LAST), -1, ignorable=True),
        Field("metadata", "string", Versions(0, LAST), ""),
        Field("commit_timestamp", "int64", Versions(0, LAST), 0),
        Field("expire_timestamp", "int64", Versions(1, 1), -1, ignorable=True),
        Field("topic_id", "uuid", Versions(4, LAST), ZERO_UUID, tag=0, tagged=Versions(4, LAST), ignorable=True),
    )

    def __init__(
        self,
        offset: int = 0,
        leader_epoch: int = -1,
        metadata: str = "",
        commit_timestamp: int = 0,
        expire_timestamp: int = -1,
        topic_id: Uuid = ZERO_UUID,
    ) -> None:
        self.offset = offset
        self.leader_epoch = leader_epoch
        self.metadata = metadata
        self.commit_timestamp = commit_timestamp
        self.expire_timestamp = expire_timestamp
        self.topic_id = topic_id

