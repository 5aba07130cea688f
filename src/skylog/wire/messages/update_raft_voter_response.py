"""Generated from UpdateRaftVoterResponse.json; do not edit."""

from __future__ import annotations

from skylog.wire.schema import LAST, UNSET, Field, Message, Struct, Versions


class CurrentLeader(Struct):
    __slots__ = ("leader_id", "leader_epoch", "host", "port",)
    FIELDS = (
        Field("leader_id", "int32", Versions(0, LAST), -1),
        Field("leader_epoch", "int32", Versions(0, LAST), -1),
        Field("host", "string", Versions(0, LAST), ""),
        Field("port", "int32", Versions(0, LAST), 0),
    )

    def __init__(
        self,
        leader_id: int = -1,
        leader_epoch: int = -1,
        host: str = "",
        port: int = 0,
    ) -> None:
        self.leader_id = leader_id
        self.leader_epoch = leader_epoch
        self.host = host
        self.port = port


class UpdateRaftVoterResponse(Message):
    __slots__ = ("throttle_time_ms", "error_code", "current_leader",)
    TYPE = "response"
    API_KEY = 82
    VERSIONS = Versions(0, 0)
    FLEXIBLE = Versions(0, LAST)
    FIELDS = (
        Field("throttle_time_ms", "int32", Versions(0, LAST), 0),
        Field("error_code", "int16", Versions(0, LAST), 0),
        Field("current_leader", CurrentLeader, Versions(0, LAST), ..., tag=0, tagged=Versions(0, LAST)),
    )

    def __init__(
        self,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        current_leader: CurrentLeader = UNSET,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.current_leader = CurrentLeader() if current_leader is UNSET else current_leader

