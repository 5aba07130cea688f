"""Generated from PushTelemetryRequest.json; do not edit."""

from __future__ import annotations

from skylog.kernel.ids import ZERO_UUID, Uuid
from skylog.wire.schema import LAST, Field, Message, Versions


class PushTelemetryRequest(Message):
    __slots__ = ("client_instance_id", "subscription_id", "terminating", "compression_type", "metrics",)
    TYPE = "request"
    API_KEY = 72
    VERSIONS = Versions(0, 0)
    FLEXIBLE = Versions(0, LAST)
    LISTENERS = ('broker',)
    FIELDS = (
        Field("client_instance_id", "uuid", Versions(0, LAST), ZERO_UUID),
        Field("subscription_id", "int32", Versions(0, LAST), 0),
        Field("terminating", "bool", Versions(0, LAST), False),
        Field("compression_type", "int8", Versions(0, LAST), 0),
        Field("metrics", "bytes", Versions(0, LAST), b""),
    )

    def __init__(
        self,
        client_instance_id: Uuid = ZERO_UUID,
        subscription_id: int = 0,
        terminating: bool = False,
        compression_type: int = 0,
        metrics: bytes = b"",
    ) -> None:
        self.client_instance_id = client_instance_id
        self.subscription_id = subscription_id
        self.terminating = terminating
        self.compression_type = compression_type
        self.metrics = metrics

