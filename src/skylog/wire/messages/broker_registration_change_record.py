"""Generated from BrokerRegistrationChangeRecord.json; do not edit."""

from __future__ import annotations

from skylog.kernel.ids import Uuid
from skylog.wire.schema import LAST, UNSET, Field, Message, Versions


class BrokerRegistrationChangeRecord(Message):
    __slots__ = ("broker_id", "broker_epoch", "fenced", "in_controlled_shutdown", "log_dirs", "cordoned_log_dirs",)
    TYPE = "metadata"
    API_KEY = 17
    VERSIONS = Versions(0, 3)
    FLEXIBLE = Versions(0, LAST)
    FIELDS = (
        Field("broker_id", "int32", Versions(0, LAST), 0),
        Field("broker_epoch", "int64", Versions(0, LAST), 0),
        Field("fenced", "int8", Versions(0, LAST), 0, tag=0, tagged=Versions(0, LAST)),
        Field("in_controlled_shutdown", "int8", Versions(1, LAST), 0, tag=1, tagged=Versions(1, LAST)),
        Field("log_dirs", "uuid", Versions(2, LAST), (), array=True, tag=2, tagged=Versions(2, LAST)),
        Field("cordoned_log_dirs", "uuid", Versions(3, LAST), None, array=True, nullable=Versions(3, LAST), tag=3, tagged=Versions(3, LAST)),
    )

    def __init__(
        self,
        broker_id: int = 0,
        broker_epoch: int = 0,
        fenced: int = 0,
        in_controlled_shutdown: int = 0,
        log_dirs: list[Uuid] = UNSET,
        cordoned_log_dirs: list[Uuid] | None = None,
    ) -> None:
        self.broker_id = broker_id
        self.broker_epoch = broker_epoch
        self.fenced = fenced
        self.in_controlled_shutdown = in_controlled_shutdown
        self.log_dirs = [] if log_dirs is UNSET else log_dirs
        self.cordoned_log_dirs = cordoned_log_dirs

