"""Generated from UserScramCredentialRecord.json; do not edit."""

from __future__ import annotations

from skylog.wire.schema import LAST, Field, Message, Versions


class UserScramCredentialRecord(Message):
    __slots__ = ("name", "mechanism", "salt", "stored_key", "server_key", "iterations",)
    TYPE = "metadata"
    API_KEY = 11
    VERSIONS = Versions(0, 0)
    FLEXIBLE = Versions(0, LAST)
    FIELDS = (
        Field("name", "string", Versions(0, LAST), ""),
        Field("mechanism", "int8", Versions(0, LAST), 0),
        Field("salt", "bytes", Versions(0, LAST), b""),
        Field("stored_key", "bytes", Versions(0, LAST), b""),
        Field("server_key", "bytes", Versions(0, LAST), b""),
        Field("iterations", "int32", Versions(0, LAST), 0),
    )

    def __init__(
        self,
        name: str = "",
        mechanism: int = 0,
        salt: bytes = b"",
        stored_key: bytes = b"",
        server_key: bytes = b"",
        iterations: int = 0,
    ) -> None:
        self.name = name
        self.mechanism = mechanism
        self.salt = salt
        self.stored_key = stored_key
        self.server_key = server_key
        self.iterations = iterations

