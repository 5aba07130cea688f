"""One connection to a broker: versions negotiated, authenticated, with many requests in flight.

Responses arrive in the order of the requests. A request that times out, or an invalid response,
closes the connection, and fails every pending request: whether those took effect is unknown, so
their errors are ambiguous.
"""

from __future__ import annotations

import asyncio
import ssl
from typing import Any, Final, cast

from skylog.client.errors import check
from skylog.client.settings import Address, ClientSettings
from skylog.kernel import limits
from skylog.kernel.errors import ErrorCode, KafkaError, ProtocolError
from skylog.kernel.system import System
from skylog.kernel.waiting import done_within
from skylog.security.sasl import SaslError
from skylog.security.tls import client_context
from skylog.wire.apis import (
    DISKLESS_APIS,
    OWN_APIS_FROM,
    ApiKey,
    encode_request_header,
    response_class,
    response_header_version,
)
from skylog.wire.codec import decode, decode_at, encode_parts
from skylog.wire.frames import FrameAssembler
from skylog.wire.messages.api_versions_request import ApiVersionsRequest
from skylog.wire.messages.api_versions_response import ApiVersionsResponse
from skylog.wire.messages.response_header import ResponseHeader
from skylog.wire.messages.sasl_authenticate_request import SaslAuthenticateRequest
from skylog.wire.messages.sasl_authenticate_response import SaslAuthenticateResponse
from skylog.wire.messages.sasl_handshake_request import SaslHandshakeRequest
from skylog.wire.messages.sasl_handshake_response import SaslHandshakeResponse
from skylog.wire.schema import Message, Versions

# A session is abandoned this long before its end, so that no request runs into it.
_SESSION_SHARE: Final = 0.85


class ClientConnection(asyncio.BufferedProtocol):
    """The protocol object of one connection; ``open_connection`` makes it usable."""

    def __init__(self, address: Address, settings: ClientSettings, system: System) -> None:
        self.address = address
        self.last_used = system.clock.monotonic()
        self._settings = settings
        self._system = system
        self._frames = FrameAssembler(limits.CLIENT_RESPONSE_BYTES_MAX)
        self._transport: asyncio.Transport | None = None
        self._waiting: dict[int, asyncio.Future[memoryview]] = {}
        self._slots = asyncio.Semaphore(limits.CLIENT_IN_FLIGHT_REQUESTS_MAX)
        self._writable = asyncio.Event()
        self._correlation_id = 0
        self._versions: dict[int, Versions] | None = None
        self._session_end: float | None = None
        self._lost = asyncio.get_running_loop().create_future()
        self._failure: KafkaError | None = None

    # asyncio calls these ------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._writable.set()

    def connection_lost(self, exc: Exception | None) -> None:
        why = f"the connection to {self.address} was lost" + (f": {exc}" if exc else "")
        self._fail(KafkaError(ErrorCode.NETWORK_EXCEPTION, why, ambiguous=True))
        if not self._lost.done():
            self._lost.set_result(None)

    def pause_writing(self) -> None:
        self._writable.clear()

    def resume_writing(self) -> None:
        self._writable.set()

    def get_buffer(self, sizehint: int) -> memoryview:
        return self._frames.get_buffer(sizehint)

    def buffer_updated(self, nbytes: int) -> None:
        try:
            for frame in self._frames.buffer_updated(nbytes):
                self._receive(frame)
            if self._frames.failure is not None:
                raise self._frames.failure
        except ProtocolError as error:
            why = f"{self.address} sent an invalid response: {error}"
            self._fail(KafkaError(ErrorCode.NETWORK_EXCEPTION, why, ambiguous=True))

    def eof_received(self) -> bool:
        return False

    # Requests -----------------------------------------------------------------------------

    async def request(
        self,
        message: Message,
        *,
        version_min: int = 0,
        version_max: int | None = None,
        timeout_ms: int = 0,
    ) -> Any:
        """Send a request in the newest common version; returns the response.

        ``timeout_ms`` is for requests that wait at the broker, in addition to the usual time-out.
        """
        version = self.version(type(message), version_min, version_max)
        key = ApiKey(message.API_KEY)
        frame = await self._roundtrip(key, version, message, timeout_ms)
        return self._decode(key, version, frame)

    async def send(self, message: Message, *, version_max: int | None = None) -> None:
        """Send a request that has no response (Produce without acknowledgement)."""
        version = self.version(type(message), 0, version_max)
        await self._write(ApiKey(message.API_KEY), version, message, None)

    def version(
        self, cls: type[Message], version_min: int = 0, version_max: int | None = None
    ) -> int:
        """The newest common version of a request; UNSUPPORTED_VERSION if there is none."""
        own_min = max(cls.VERSIONS.low, version_min)
        own_max = cls.VERSIONS.high - cls.LATEST_UNSTABLE
        if version_max is not None:
            own_max = min(own_max, version_max)
        theirs = (self._versions or {}).get(cls.API_KEY)
        if cls.API_KEY >= OWN_APIS_FROM or cls.API_KEY in DISKLESS_APIS:
            theirs = Versions(own_min, own_max)
        high = min(own_max, theirs.high) if theirs is not None else -1
        if theirs is None or high < max(own_min, theirs.low):
            spoken = "not at all" if theirs is None else f"from {theirs.low} to {theirs.high}"
            raise KafkaError(
                ErrorCode.UNSUPPORTED_VERSION,
                f"{self.address} supports {ApiKey(cls.API_KEY).name} {spoken}; this client "
                f"{own_min} to {own_max}",
            )
        return high

    @property
    def usable(self) -> bool:
        """Whether new requests may be sent: connected, and the session not near its end."""
        if self._failure is not None or self._transport is None or self._transport.is_closing():
            return False
        return self._session_end is None or self._system.clock.monotonic() < self._session_end

    @property
    def busy(self) -> bool:
        return bool(self._waiting)

    def abort(self) -> None:
        """Close the connection at once; pending requests fail."""
        why = f"the connection to {self.address} was closed"
        self._fail(KafkaError(ErrorCode.NETWORK_EXCEPTION, why, ambiguous=True))

    async def close(self) -> None:
        """Close the connection, and wait until it is closed."""
        self.abort()
        # A transport whose opening was cancelled is already closed, and may never report it.
        if self._transport is not None and not self._lost.done():
            await done_within(self._lost, limits.CLIENT_CLOSE_SECONDS_MAX)

    async def _roundtrip(
        self, key: ApiKey, version: int, message: Message, extra_ms: int
    ) -> memoryview:
        patience = (self._settings.request_timeout_ms + extra_ms) / 1000
        async with self._slots:
            # An abandoned request keeps its place in the order until its response arrives.
            answer = asyncio.get_running_loop().create_future()
            try:
                async with asyncio.timeout(patience):
                    await self._write(key, version, message, answer)
                    return cast(memoryview, await answer)
            except TimeoutError:
                why = f"{self.address} did not answer {key.name} within {patience:g} s"
                error = KafkaError(ErrorCode.REQUEST_TIMED_OUT, why, ambiguous=True)
                self._fail(error)
                raise error from None

    async def _write(
        self,
        key: ApiKey,
        version: int,
        message: Message,
        answer: asyncio.Future[memoryview] | None,
    ) -> None:
        parts = encode_parts(message, version)
        await self._writable.wait()
        if self._failure is not None or self._transport is None:
            raise KafkaError(
                ErrorCode.NETWORK_EXCEPTION, f"the connection to {self.address} is closed"
            )
        # No await from here on: requests are queued in the order in which they are written.
        self._correlation_id = (self._correlation_id + 1) & 0x7FFF_FFFF
        if answer is not None:
            self._waiting[self._correlation_id] = answer
        header = encode_request_header(key, version, self._correlation_id, self._settings.client_id)
        size = len(header) + sum(map(len, parts))
        self.last_used = self._system.clock.monotonic()
        self._transport.writelines([size.to_bytes(4, "big") + header, *parts])

    def _receive(self, frame: memoryview) -> None:
        if len(frame) < 4:
            raise ProtocolError(f"a response of {len(frame)} bytes")
        correlation_id = int.from_bytes(frame[:4], "big")
        expected = next(iter(self._waiting), None)
        if correlation_id != expected:
            raise ProtocolError(f"a response to {correlation_id}, expected {expected}")
        answer = self._waiting.pop(correlation_id)
        if not answer.done():
            answer.set_result(frame)

    def _decode(self, key: ApiKey, version: int, frame: memoryview) -> Any:
        try:
            header_version = response_header_version(key, version)
            _, position = decode_at(ResponseHeader, frame, header_version, 0)
            return decode(response_class(key), frame, version, position)
        except ProtocolError as error:
            why = f"{self.address} sent an invalid response to {key.name}: {error}"
            failure = KafkaError(ErrorCode.NETWORK_EXCEPTION, why, ambiguous=True)
            self._fail(failure)
            raise failure from error

    def _fail(self, error: KafkaError) -> None:
        """Close the connection; the first failure is reported to all pending requests."""
        if self._failure is None:
            self._failure = error
        waiting, self._waiting = self._waiting, {}
        for answer in waiting.values():
            if not answer.done():
                answer.set_exception(self._failure)
        self._writable.set()
        if self._transport is not None:
            self._transport.abort()

    # Getting ready ------------------------------------------------------------------------

    async def prepare(self) -> None:
        """Negotiate versions and authenticate."""
        await self._agree()
        if self._settings.sasl is not None:
            await self._login()

    async def _agree(self) -> None:
        version = ApiVersionsRequest.VERSIONS.high - ApiVersionsRequest.LATEST_UNSTABLE
        request = ApiVersionsRequest(client_software_name="skylog", client_software_version="0.1.0")
        while True:
            frame = await self._roundtrip(ApiKey.API_VERSIONS, version, request, 0)
            # A broker that does not know our version answers in version 0.
            refused = int.from_bytes(frame[4:6], "big") == ErrorCode.UNSUPPORTED_VERSION
            answer: ApiVersionsResponse = self._decode(
                ApiKey.API_VERSIONS, 0 if refused else version, frame
            )
            offered = {row.api_key: row for row in answer.api_keys}
            own = offered.get(ApiKey.API_VERSIONS)
            if not refused or version == 0:
                check(answer.error_code, f"{self.address} refuses ApiVersions")
                break
            version = min(version - 1, own.max_version) if own is not None else 0
        self._versions = {
            row.api_key: Versions(row.min_version, row.max_version) for row in answer.api_keys
        }

    async def _login(self) -> None:
        login = self._settings.sasl
        if login is None:
            return
        client = login.client(self._system.rng)
        shaken: SaslHandshakeResponse = await self.request(SaslHandshakeRequest(login.mechanism))
        if shaken.error_code == ErrorCode.UNSUPPORTED_SASL_MECHANISM:
            offered = ", ".join(shaken.mechanisms)
            raise KafkaError(
                ErrorCode.UNSUPPORTED_SASL_MECHANISM,
                f"{self.address} does not offer {login.mechanism}; it offers {offered}",
            )
        check(shaken.error_code, f"{self.address} refuses {login.mechanism}")
        token: bytes | None = client.first()
        try:
            for _ in range(limits.CLIENT_SASL_TURNS_MAX):
                answer: SaslAuthenticateResponse = await self.request(
                    SaslAuthenticateRequest(auth_bytes=token or b"")
                )
                check(answer.error_code, answer.error_message)
                challenge = bytes(answer.auth_bytes)
                token = await self._system.executor.run(lambda: client.evaluate(challenge))  # noqa: B023
                if client.complete:
                    self._begin_session(answer.session_lifetime_ms)
                    return
        except SaslError as error:
            raise KafkaError(ErrorCode.SASL_AUTHENTICATION_FAILED, str(error)) from error
        raise KafkaError(ErrorCode.SASL_AUTHENTICATION_FAILED, "the exchange takes too many rounds")

    def _begin_session(self, lifetime_ms: int) -> None:
        if lifetime_ms > 0:
            share = lifetime_ms / 1000 * _SESSION_SHARE
            self._session_end = self._system.clock.monotonic() + share


async def open_connection(
    address: Address, settings: ClientSettings, system: System, tls: ssl.SSLContext | None = None
) -> ClientConnection:
    """Connect, negotiate versions, authenticate; KafkaError says what failed.

    ``tls`` may be built from ``settings.tls`` once and used for many connections.
    """
    loop = asyncio.get_running_loop()
    if settings.tls is not None and tls is None:
        tls = client_context(settings.tls)
    connection = ClientConnection(address, settings, system)
    ready = False
    try:
        async with asyncio.timeout(settings.connect_timeout_ms / 1000):
            await loop.create_connection(
                lambda: connection,
                address.host,
                address.port,
                ssl=tls,
                server_hostname=address.host if tls is not None else None,
            )
            await connection.prepare()
            ready = True
            return connection
    except TimeoutError:
        raise KafkaError(
            ErrorCode.NETWORK_EXCEPTION,
            f"no connection to {address} within {settings.connect_timeout_ms} ms",
        ) from None
    except ssl.SSLError as error:
        raise KafkaError(
            ErrorCode.UNKNOWN_SERVER_ERROR, f"no TLS connection to {address}: {error}"
        ) from error
    except OSError as error:
        # A peer that disconnects during a TLS handshake leaves an error without a message.
        why = str(error) or f"it closed the connection ({type(error).__name__})"
        raise KafkaError(
            ErrorCode.NETWORK_EXCEPTION, f"no connection to {address}: {why}"
        ) from error
    finally:
        if not ready:
            await connection.close()
            # A socket whose TLS handshake never completed closes without notifying the connection.
            await asyncio.sleep(0)
