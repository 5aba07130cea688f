"""Generated from UnregisterBrokerRequest.json; do not edit."""

from __future__ import annotations

from skylog.wire.schema import LAST, Field, Message, Versions


class UnregisterBrokerRequest(Message):
    __slots__ = ("broker_id",)
    TYPE = "request"
    API_KEY = 64
    VERSIONS = Versions(0, 0)
    FLEXIBLE = Versions(0, LAST)
    LISTENERS = ('broker', 'controller')
    FIELDS = (
        Field("broker_id", "int32", Versions(0, LAST), 0),
    )

    def __init__(
        self,
        broker_id: int = 0,
    ) -> None:
        self.broker_id = broker_id

