"""Generated from ShareGroupTargetAssignmentMetadataValue.json; do not edit."""

from __future__ import annotations

from skylog.wire.schema import LAST, Field, Message, Versions


class ShareGroupTargetAssignmentMetadataValue(Message):
    __slots__ = ("assignment_epoch", "assignment_timestamp",)
    TYPE = "coordinator-value"
    API_KEY = 12
    VERSIONS = Versions(0, 0)
    FLEXIBLE = Versions(0, LAST)
    FIELDS = (
        Field("assignment_epoch", "int32", Versions(0, LAST), 0),
        Field("assignment_timestamp", "int64", Versions(0, LAST), 0, tag=0, tagged=Versions(0, LAST), ignorable=True),
    )

    def __init__(
        self,
        assignment_epoch: int = 0,
        assignment_timestamp: int = 0,
    ) -> None:
        self.assignment_epoch = assignment_epoch
        self.assignment_timestamp = assignment_timestamp

