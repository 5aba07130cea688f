"""Generated from GetTelemetrySubscriptionsRequest.json; do not edit."""

from __future__ import annotations

from skylog.kernel.ids import ZERO_UUID, Uuid
from skylog.wire.schema import LAST, Field, Message, Versions


class GetTelemetrySubscriptionsRequest(Message):
    __slots__ = ("client_instance_id",)
    TYPE = "request"
    API_KEY = 71
    VERSIONS = Versions(0, 0)
    FLEXIBLE = Versions(0, LAST)
    LISTENERS = ('broker',)
    FIELDS = (
        Field("client_instance_id", "uuid", Versions(0, LAST), ZERO_UUID),
    )

    def __init__(
        self,
        client_instance_id: Uuid = ZERO_UUID,
    ) -> None:
        self.client_instance_id = client_instance_id

