"""Kafka's APIs by number: their message classes and their headers."""

from __future__ import annotations

import struct
from functools import cache
from typing import Final

from skylog.kernel.errors import ProtocolError
from skylog.wire.buffers import Buffer
from skylog.wire.messages import index
from skylog.wire.messages.api_key import ApiKey
from skylog.wire.reader_source import skip_tags
from skylog.wire.registry import message_class
from skylog.wire.schema import Message

__all__ = [
    "DISKLESS_APIS",
    "OWN_APIS_FROM",
    "ApiKey",
    "decode_request_header",
    "encode_request_header",
    "request_class",
    "request_header_version",
    "response_class",
    "response_header_version",
]

# The API's key and version, the correlation id, the length of the client id.
_HEADER: Final = struct.Struct(">hhih")
# Our own APIs, for our own tools. ApiVersions does not list them: callers know them.
OWN_APIS_FROM: Final = 500
# The same holds for inter-broker APIs (KIP-1164).
DISKLESS_APIS: Final = range(ApiKey.DISKLESS_CREATE_PARTITIONS, ApiKey.DISKLESS_DESCRIBE_FILES + 1)
_KEYS: Final[dict[int, ApiKey]] = {int(key): key for key in ApiKey}


@cache
def request_class(key: int) -> type[Message]:
    """The request of an API; ProtocolError if there is no such API."""
    return _message(index.REQUESTS, key)


@cache
def response_class(key: int) -> type[Message]:
    """The response of an API; ProtocolError if there is no such API."""
    return _message(index.RESPONSES, key)


def _message(table: dict[int, tuple[str, ...]], key: int) -> type[Message]:
    if key not in table:
        raise ProtocolError(f"there is no API {key}")
    return message_class(table[key][0])


@cache
def _flexible_from(key: int) -> tuple[int, int]:
    """The first versions of request and response whose headers carry tagged fields."""
    request, response = request_class(key).FLEXIBLE, response_class(key).FLEXIBLE
    never = 1 << 15
    # A client reads the ApiVersions response before it knows the broker's versions, so that
    # response keeps the oldest header for ever.
    first = never if key == ApiKey.API_VERSIONS or response.high < 0 else response.low
    return (never if request.high < 0 else request.low), first


def request_header_version(key: int, version: int) -> int:
    return 2 if version >= _flexible_from(key)[0] else 1


def response_header_version(key: int, version: int) -> int:
    return 1 if version >= _flexible_from(key)[1] else 0


def decode_request_header(frame: Buffer) -> tuple[ApiKey | int, int, int, str | None, int]:
    """(API, version, correlation id, client id, position of the body).

    An unknown API is returned as a plain number, and its header is parsed without tagged fields,
    because its header version is unknown.
    """
    try:
        number, version, correlation_id, size = _HEADER.unpack_from(frame)
        position = _HEADER.size
        client_id = None
        if size >= 0:
            position += size
            if position > len(frame):
                raise ProtocolError(f"a client id of {size} bytes in a shorter frame")
            client_id = str(frame[_HEADER.size : position], "utf-8")
        key = _KEYS.get(number)
        if key is None:
            return number, version, correlation_id, client_id, position
        if version >= _flexible_from(key)[0]:
            tags = frame[position]
            position += 1
            if tags:
                position = skip_tags(frame, position, tags)
    except (struct.error, IndexError, ValueError) as error:
        raise ProtocolError(f"request header: {error}") from error
    return key, version, correlation_id, client_id, position


def encode_request_header(
    key: int, version: int, correlation_id: int, client_id: str | None
) -> bytes:
    """The header before a request's body, without the frame's length."""
    name = b"" if client_id is None else client_id.encode()
    try:
        head = _HEADER.pack(key, version, correlation_id, -1 if client_id is None else len(name))
    except struct.error as error:
        raise ProtocolError(f"request header: {error}") from error
    return head + name + (b"\0" if request_header_version(key, version) > 1 else b"")
