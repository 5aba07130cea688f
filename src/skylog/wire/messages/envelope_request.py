"""Generated from EnvelopeRequest.json; do not edit."""

from __future__ import annotations

from skylog.wire.schema import LAST, Field, Message, Versions


class EnvelopeRequest(Message):
    __slots__ = ("request_data", "request_principal", "client_host_address",)
    TYPE = "request"
    API_KEY = 58
    VERSIONS = Versions(0, 0)
    FLEXIBLE = Versions(0, LAST)
    LISTENERS = ('controller',)
    FIELDS = (
        Field("request_data", "bytes", Versions(0, LAST), b""),
        Field("request_principal", "bytes", Versions(0, LAST), b"", nullable=Versions(0, LAST)),
        Field("client_host_address", "bytes", Versions(0, LAST), b""),
    )

    def __init__(
        self,
        request_data: bytes = b"",
        request_principal: bytes | None = b"",
        client_host_address: bytes = b"",
    ) -> None:
        self.request_data = request_data
        self.request_principal = request_principal
        self.client_host_address = client_host_address

