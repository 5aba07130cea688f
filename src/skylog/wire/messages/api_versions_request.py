"""Generated from Kafka's ApiVersionsRequest.json; do not edit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from skylog.wire.schema import LAST, Field, Message, Versions


@dataclass(slots=True)
class ApiVersionsRequest(Message):
    client_software_name: str = ""
    client_software_version: str = ""
    TYPE = "request"
    API_KEY = 18
    VERSIONS = Versions(0, 4)
    FLEXIBLE = Versions(3, LAST)
    LISTENERS = ('broker', 'controller')
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("client_software_name", "string", Versions(3, LAST), "", ignorable=True),
        Field("client_software_version", "string", Versions(3, LAST), "", ignorable=True),
    )

