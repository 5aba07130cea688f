"""Generated from ApiVersionsRequest.json; do not edit."""

from __future__ import annotations

from skylog.wire.schema import LAST, Field, Message, Versions


class ApiVersionsRequest(Message):
    __slots__ = ("client_software_name", "client_software_version",)
    TYPE = "request"
    API_KEY = 18
    VERSIONS = Versions(0, 4)
    FLEXIBLE = Versions(3, LAST)
    LISTENERS = ('broker', 'controller')
    FIELDS = (
        Field("client_software_name", "string", Versions(3, LAST), "", ignorable=True),
        Field("client_software_version", "string", Versions(3, LAST), "", ignorable=True),
    )

    def __init__(
        self,
        client_software_name: str = "",
        client_software_version: str = "",
    ) -> None:
        self.client_software_name = client_software_name
        self.client_software_version = client_software_version

