"""Generated from Kafka's BrokerHeartbeatRequest.json; do not edit."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from skylog.kernel.ids import Uuid
from skylog.wire.schema import LAST, Field, Message, Versions


@dataclass(slots=True)
class BrokerHeartbeatRequest(Message):
    broker_id: int = 0
    broker_epoch: int = -1
    current_metadata_offset: int = 0
    want_fence: bool = False
    want_shut_down: bool = False
    offline_log_dirs: list[Uuid] = field(default_factory=list)
    cordoned_log_dirs: list[Uuid] | None = None
    TYPE = "request"
    API_KEY = 63
    VERSIONS = Versions(0, 2)
    FLEXIBLE = Versions(0, LAST)
    LISTENERS = ('controller',)
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("broker_id", "int32", Versions(0, LAST), 0),
        Field("broker_epoch", "int64", Versions(0, LAST), -1),
        Field("current_metadata_offset", "int64", Versions(0, LAST), 0),
        Field("want_fence", "bool", Versions(0, LAST), False),
        Field("want_shut_down", "bool", Versions(0, LAST), False),
        Field("offline_log_dirs", "uuid", Versions(1, LAST), (), array=True, tag=0, tagged=Versions(1, LAST)),
        Field("cordoned_log_dirs", "uuid", Versions(2, LAST), None, array=True, nullable=Versions(2, LAST), tag=1, tagged=Versions(2, LAST)),
    )

