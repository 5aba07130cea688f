"""A client that is only a socket, for requests that no well-behaved client would send."""

from __future__ import annotations

import contextlib
import socket
import ssl
import struct
from types import TracebackType
from typing import Any, Self

from skylog.wire.apis import (
    encode_request_header,
    response_class,
    response_header_version,
)
from skylog.wire.codec import decode, encode
from skylog.wire.messages.sasl_authenticate_request import SaslAuthenticateRequest
from skylog.wire.messages.sasl_handshake_request import SaslHandshakeRequest
from skylog.wire.schema import Message

SECONDS_MAX = 90.0


class Closed(Exception):  # noqa: N818 - an answer, not an error
    """The broker closed the connection."""


def frame(body: bytes) -> bytes:
    return struct.pack(">i", len(body)) + body


def request_bytes(
    request: Message, version: int, correlation_id: int = 1, client_id: str | None = "wire"
) -> bytes:
    """A whole request without its length."""
    header = encode_request_header(request.API_KEY, version, correlation_id, client_id)
    return header + encode(request, version)


def newest(request: type[Message]) -> int:
    """The latest version that is offered."""
    return request.VERSIONS.high - (1 if request.LATEST_UNSTABLE else 0)


class Wire:
    """One connection."""

    def __init__(
        self,
        address: str,
        *,
        tls: ssl.SSLContext | None = None,
        seconds_max: float = SECONDS_MAX,
        receive_buffer: int | None = None,
    ) -> None:
        host, _, port = address.rpartition(":")
        raw = socket.socket()
        raw.settimeout(seconds_max)
        if receive_buffer is not None:
            raw.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        try:
            raw.connect((host, int(port)))
            self.socket = raw if tls is None else tls.wrap_socket(raw, server_hostname=host)
        except BaseException:
            raw.close()
            raise
        self._correlation_id = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        self.socket.close()

    # Bytes

    def send(self, data: bytes) -> None:
        try:
            self.socket.sendall(data)
        except (ConnectionError, ssl.SSLError) as error:
            raise Closed(str(error)) from error

    def receive(self) -> bytes:
        """The next frame, without its length."""
        (length,) = struct.unpack(">i", self._exactly(4))
        return self._exactly(length)

    def _exactly(self, count: int) -> bytes:
        parts = []
        while count:
            try:
                part = self.socket.recv(min(count, 1 << 20))
            except (ConnectionError, ssl.SSLError) as error:
                raise Closed(str(error)) from error
            if not part:
                raise Closed("end of stream")
            parts.append(part)
            count -= len(part)
        return b"".join(parts)

    def is_closed(self) -> bool:
        """Wait until the broker closes the connection; False if it sends data instead."""
        with contextlib.suppress(Closed):
            self._exactly(1)
            return False
        return True

    # Messages

    def ask(self, request: Message, version: int | None = None) -> Any:
        """Send a request and return the response; raises Closed if there is none."""
        if version is None:
            version = newest(type(request))
        self._correlation_id += 1
        self.send(frame(request_bytes(request, version, self._correlation_id)))
        return self.answer(request.API_KEY, version, self._correlation_id)

    def answer(self, api_key: int, version: int, correlation_id: int) -> Any:
        answer = self.receive()
        assert struct.unpack_from(">i", answer) == (correlation_id,)
        position = 5 if response_header_version(api_key, version) else 4
        return decode(response_class(api_key), answer, version, position)

    def log_in(self, user: str, password: str) -> Self:
        """SASL/PLAIN."""
        shaken = self.ask(SaslHandshakeRequest("PLAIN"))
        assert shaken.error_code == 0, shaken
        token = f"\0{user}\0{password}".encode()
        known = self.ask(SaslAuthenticateRequest(token))
        assert known.error_code == 0, known
        return self
