"""Generated from RemoveRaftVoterRequest.json; do not edit."""

from __future__ import annotations

from skylog.kernel.ids import ZERO_UUID, Uuid
from skylog.wire.schema import LAST, Field, Message, Versions


class RemoveRaftVoterRequest(Message):
    __slots__ = ("cluster_id", "voter_id", "voter_directory_id",)
    TYPE = "request"
    API_KEY = 81
    VERSIONS = Versions(0, 0)
    FLEXIBLE = Versions(0, LAST)
    LISTENERS = ('controller', 'broker')
    FIELDS = (
        Field("cluster_id", "string", Versions(0, LAST), "", nullable=Versions(0, LAST)),
        Field("voter_id", "int32", Versions(0, LAST), 0),
        Field("voter_directory_id", "uuid", Versions(0, LAST), ZERO_UUID),
    )

    def __init__(
        self,
        cluster_id: str | None = "",
        voter_id: int = 0,
        voter_directory_id: Uuid = ZERO_UUID,
    ) -> None:
        self.cluster_id = cluster_id
        self.voter_id = voter_id
        self.voter_directory_id = voter_directory_id

