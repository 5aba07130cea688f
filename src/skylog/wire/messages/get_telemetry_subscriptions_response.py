"""Generated from Kafka's GetTelemetrySubscriptionsResponse.json; do not edit."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from skylog.kernel.ids import ZERO_UUID, Uuid
from skylog.wire.schema import LAST, Field, Message, Versions


@dataclass(slots=True)
class GetTelemetrySubscriptionsResponse(Message):
    throttle_time_ms: int = 0
    error_code: int = 0
    client_instance_id: Uuid = ZERO_UUID
    subscription_id: int = 0
    accepted_compression_types: list[int] = field(default_factory=list)
    push_interval_ms: int = 0
    telemetry_max_bytes: int = 0
    delta_temporality: bool = False
    requested_metrics: list[str] = field(default_factory=list)
    TYPE = "response"
    API_KEY = 71
    VERSIONS = Versions(0, 0)
    FLEXIBLE = Versions(0, LAST)
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("throttle_time_ms", "int32", Versions(0, LAST), 0),
        Field("error_code", "int16", Versions(0, LAST), 0),
        Field("client_instance_id", "uuid", Versions(0, LAST), ZERO_UUID),
        Field("subscription_id", "int32", Versions(0, LAST), 0),
        Field("accepted_compression_types", "int8", Versions(0, LAST), (), array=True),
        Field("push_interval_ms", "int32", Versions(0, LAST), 0),
        Field("telemetry_max_bytes", "int32", Versions(0, LAST), 0),
        Field("delta_temporality", "bool", Versions(0, LAST), False),
        Field("requested_metrics", "string", Versions(0, LAST), (), array=True),
    )

