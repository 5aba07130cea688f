"""Generated from DelegationTokenRecord.json; do not edit."""

from __future__ import annotations

from skylog.wire.schema import LAST, UNSET, Field, Message, Versions


class DelegationTokenRecord(Message):
    __slots__ = ("owner", "requester", "renewers", "issue_timestamp", "max_timestamp", "expiration_timestamp", "token_id",)
    TYPE = "metadata"
    API_KEY = 10
    VERSIONS = Versions(0, 0)
    FLEXIBLE = Versions(0, LAST)
    FIELDS = (
        Field("owner", "string", Versions(0, LAST), ""),
        Field("requester", "string", Versions(0, LAST), ""),
        Field("renewers", "string", Versions(0, LAST), (), array=True),
        Field("issue_timestamp", "int64", Versions(0, LAST), 0),
        Field("max_timestamp", "int64", Versions(0, LAST), 0),
        Field("expiration_timestamp", "int64", Versions(0, LAST), 0),
        Field("token_id", "string", Versions(0, LAST), ""),
    )

    def __init__(
        self,
        owner: str = "",
        requester: str = "",
        renewers: list[str] = UNSET,
        issue_timestamp: int = 0,
        max_timestamp: int = 0,
        expiration_timestamp: int = 0,
        token_id: str = "",
    ) -> None:
        self.owner = owner
        self.requester = requester
        self.renewers = [] if renewers is UNSET else renewers
        self.issue_timestamp = issue_timestamp
        self.max_timestamp = max_timestamp
        self.expiration_timestamp = expiration_timestamp
        self.token_id = token_id

