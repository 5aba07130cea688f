"""APIs by number, and the headers before their messages."""

from __future__ import annotations

import subprocess
import sys

import pytest

from skylog.kernel.errors import ProtocolError
from skylog.wire.apis import (
    ApiKey,
    decode_request_header,
    encode_request_header,
    request_class,
    request_header_version,
    response_class,
    response_header_version,
)
from skylog.wire.codec import decode_at, encode
from skylog.wire.messages import index
from skylog.wire.messages.fetch_request import FetchRequest
from skylog.wire.messages.fetch_response import FetchResponse
from skylog.wire.messages.request_header import RequestHeader


def test_every_api_has_a_request_and_a_response_of_the_same_versions() -> None:
    assert set(ApiKey) == set(index.REQUESTS) == set(index.RESPONSES)
    for key in ApiKey:
        request, response = request_class(key), response_class(key)
        assert request.API_KEY == response.API_KEY == key
        assert request.VERSIONS == response.VERSIONS
        assert request.__name__.removesuffix("Request") == response.__name__.removesuffix(
            "Response"
        )


def test_classes_by_number() -> None:
    assert request_class(ApiKey.FETCH) is FetchRequest
    assert response_class(1) is FetchResponse
    with pytest.raises(ProtocolError):
        request_class(4)
    with pytest.raises(ProtocolError):
        response_class(-1)


@pytest.mark.parametrize(
    ("key", "version", "request_header", "response_header"),
    [
        (ApiKey.FETCH, 11, 1, 0),
        (ApiKey.FETCH, 12, 2, 1),
        (ApiKey.API_VERSIONS, 2, 1, 0),
        (ApiKey.API_VERSIONS, 4, 2, 0),
        (ApiKey.API_VERSIONS, 99, 2, 0),
        (ApiKey.SASL_HANDSHAKE, 1, 1, 0),
        (ApiKey.METADATA, 9, 2, 1),
    ],
)
def test_header_versions(
    key: ApiKey, version: int, request_header: int, response_header: int
) -> None:
    assert request_header_version(key, version) == request_header
    assert response_header_version(key, version) == response_header


@pytest.mark.parametrize("client_id", [None, "", "consumer-1", "клиент"])
@pytest.mark.parametrize("version", [11, 12])
def test_a_request_header_is_what_the_schema_says(version: int, client_id: str | None) -> None:
    header = encode_request_header(ApiKey.FETCH, version, 77, client_id)
    schema = RequestHeader(1, version, 77, client_id)
    assert header == encode(schema, request_header_version(1, version))
    frame = memoryview(header + b"body")
    key, found, correlation_id, name, position = decode_request_header(frame)
    assert (key, found, correlation_id, name) == (ApiKey.FETCH, version, 77, client_id)
    assert key is ApiKey.FETCH
    assert bytes(frame[position:]) == b"body"


def test_tagged_fields_of_a_header_are_skipped() -> None:
    plain = encode_request_header(ApiKey.FETCH, 12, 1, "a")
    tagged = plain[:-1] + b"\x02" + b"\x05\x03abc" + b"\x80\x01\x01z"
    assert decode_request_header(tagged + b"!")[-1] == len(tagged)
    header, position = decode_at(RequestHeader, tagged + b"!", 2, 0)
    assert (header.client_id, position) == ("a", len(tagged))


def test_an_unknown_api_is_a_number() -> None:
    header = b"\x03\xe7\x00\x00\x00\x00\x00\x05\xff\xff"
    assert decode_request_header(header) == (999, 0, 5, None, 10)


@pytest.mark.parametrize(
    "frame",
    [
        b"",
        b"\x00\x01\x00\x0c\x00\x00\x00\x01\x00",
        b"\x00\x01\x00\x0c\x00\x00\x00\x01\x00\x05ab",
        b"\x00\x01\x00\x0c\x00\x00\x00\x01\x00\x02ab",
        b"\x00\x01\x00\x0c\x00\x00\x00\x01\x00\x02\xff\xfe\x00",
        b"\x00\x01\x00\x0c\x00\x00\x00\x01\xff\xff\x01\x00\x09a",
    ],
)
def test_broken_headers(frame: bytes) -> None:
    with pytest.raises(ProtocolError):
        decode_request_header(frame)


def test_the_table_of_apis_imports_no_messages() -> None:
    """There are hundreds of modules; a tool that needs one must not pay for all."""
    code = (
        "import sys, skylog.wire.apis, skylog.wire.metadata_records\n"
        "found = {m for m in sys.modules if m.startswith('skylog.wire.messages.')}\n"
        "expected = {'skylog.wire.messages.api_key', 'skylog.wire.messages.index'}\n"
        "assert found == expected, found"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
