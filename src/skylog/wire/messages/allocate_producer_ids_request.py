"""Generated from AllocateProducerIdsRequest.json; do not edit."""

from __future__ import annotations

from skylog.wire.schema import LAST, Field, Message, Versions


class AllocateProducerIdsRequest(Message):
    __slots__ = ("broker_id", "broker_epoch",)
    TYPE = "request"
    API_KEY = 67
    VERSIONS = Versions(0, 0)
    FLEXIBLE = Versions(0, LAST)
    LISTENERS = ('controller',)
    FIELDS = (
        Field("broker_id", "int32", Versions(0, LAST), 0),
        Field("broker_epoch", "int64", Versions(0, LAST), -1),
    )

    def __init__(
        self,
        broker_id: int = 0,
        broker_epoch: int = -1,
    ) -> None:
        self.broker_id = broker_id
        self.broker_epoch = broker_epoch

