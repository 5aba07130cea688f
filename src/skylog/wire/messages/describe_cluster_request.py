"""Generated from Kafka's DescribeClusterRequest.json; do not edit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from skylog.wire.schema import LAST, Field, Message, Versions


@dataclass(slots=True)
class DescribeClusterRequest(Message):
    include_cluster_authorized_operations: bool = False
    endpoint_type: int = 1
    include_fenced_brokers: bool = False
    TYPE = "request"
    API_KEY = 60
    VERSIONS = Versions(0, 2)
    FLEXIBLE = Versions(0, LAST)
    LISTENERS = ('broker', 'controller')
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("include_cluster_authorized_operations", "bool", Versions(0, LAST), False),
        Field("endpoint_type", "int8", Versions(1, LAST), 1),
        Field("include_fenced_brokers", "bool", Versions(2, LAST), False),
    )

