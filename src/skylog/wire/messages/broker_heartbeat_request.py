"""Generated from BrokerHeartbeatRequest.json; do not edit."""

from __future__ import annotations

from skylog.kernel.ids import Uuid
from skylog.wire.schema import LAST, UNSET, Field, Message, Versions


class BrokerHeartbeatRequest(Message):
    __slots__ = ("broker_id", "broker_epoch", "current_metadata_offset", "want_fence", "want_shut_down", "offline_log_dirs", "cordoned_log_dirs",)
    TYPE = "request"
    API_KEY = 63
    VERSIONS = Versions(0, 2)
    FLEXIBLE = Versions(0, LAST)
    LISTENERS = ('controller',)
    FIELDS = (
        Field("broker_id", "int32", Versions(0, LAST), 0),
        Field("broker_epoch", "int64", Versions(0, LAST), -1),
        Field("current_metadata_offset", "int64", Versions(0, LAST), 0),
        Field("want_fence", "bool", Versions(0, LAST), False),
        Field("want_shut_down", "bool", Versions(0, LAST), False),
        Field("offline_log_dirs", "uuid", Versions(1, LAST), (), array=True, tag=0, tagged=Versions(1, LAST)),
        Field("cordoned_log_dirs", "uuid", Versions(2, LAST), None, array=True, nullable=Versions(2, LAST), tag=1, tagged=Versions(2, LAST)),
    )

    def __init__(
        self,
        broker_id: int = 0,
        broker_epoch: int = -1,
        current_metadata_offset: int = 0,
        want_fence: bool = False,
        want_shut_down: bool = False,
        offline_log_dirs: list[Uuid] = UNSET,
        cordoned_log_dirs: list[Uuid] | None = None,
    ) -> None:
        self.broker_id = broker_id
        self.broker_epoch = broker_epoch
        self.current_metadata_offset = current_metadata_offset
        self.want_fence = want_fence
        self.want_shut_down = want_shut_down
        self.offline_log_dirs = [] if offline_log_dirs is UNSET else offline_log_dirs
        self.cordoned_log_dirs = cordoned_log_dirs

