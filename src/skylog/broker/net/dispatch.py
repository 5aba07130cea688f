"""From a frame to a response: header, table row, permission, handler, encoded response.

``table.py`` has a row for every API that we offer, and only there are permissions defined. Dispatch
enforces a permission on the cluster; the handler enforces one on topics, groups or other named
resources, with ``context.allowed(name)``.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from functools import cache, partial
from struct import Struct as Format
from typing import TYPE_CHECKING, Any, Final

from skylog.broker.net.answers import Answer, Close, Later
from skylog.broker.net.connection import Connection
from skylog.broker.net.context import ForwardedContext, RequestContext
from skylog.broker.net.forwarding import FORWARDABLE, is_elsewhere
from skylog.kernel.acl import AclOperation, ResourceType
from skylog.kernel.errors import ErrorCode, KafkaError, ProtocolError
from skylog.kernel.stages import Stage
from skylog.security.authentication import Admission
from skylog.wire.apis import (
    ApiKey,
    decode_request_header,
    request_class,
    response_class,
    response_header_version,
)
from skylog.wire.buffers import Buffer
from skylog.wire.codec import decode_at, encode_parts
from skylog.wire.messages.envelope_response import EnvelopeResponse
from skylog.wire.schema import Message, Versions

if TYPE_CHECKING:
    from skylog.broker.services import Services

Response = Message | None
Handler = Callable[[RequestContext, Any], "Response | Awaitable[Response]"]
_FRAME_HEADER: Final = Format(">ii")
_FLEXIBLE_FRAME_HEADER: Final = Format(">iib")
_LENGTH: Final = Format(">i")
_SASL: Final = (ApiKey.SASL_HANDSHAKE, ApiKey.SASL_AUTHENTICATE)


@dataclass(frozen=True, slots=True)
class Permission:
    """What a client must be allowed to do, and the error if it is not."""

    operation: AclOperation
    resource: ResourceType
    denied: ErrorCode


@dataclass(frozen=True, slots=True)
class Row:
    """One API: its handler, versions, listeners and permission."""

    handler: Handler
    permission: Permission | None
    versions: Versions
    broker: bool = True
    controller: bool = False
    # Between brokers: only on the inter-broker listener, and not listed by ApiVersions.
    private: bool = False
    # For our own tools: on every listener of a broker, but not listed by ApiVersions.
    unlisted: bool = False
    # Forwarded unchanged if the active controller is in another process.
    forwarded: bool = False
    # Builds the response to a request that failed as a whole, if it has no top-level
    # ``error_code``.
    fail: Callable[[Any, KafkaError], Message] | None = None


class Dispatcher:
    """Answers the requests of one kind of listener (broker or controller)."""

    def __init__(
        self, services: Services, table: Mapping[ApiKey, Row], *, of_controller: bool = False
    ) -> None:
        self._services = services
        self._table = table
        self.of_controller = of_controller
        self.requests: dict[ApiKey, int] = dict.fromkeys(table, 0)
        self.answered = {key: Stage(services.clock) for key in table}
        # By API and error code.
        self.failed: Counter[tuple[ApiKey, int]] = Counter()

    def dispatch(self, connection: Connection, frame: memoryview) -> Any:
        """The response to a frame: an Answer, an awaitable of one, or None if none is sent."""
        authentication = connection.authentication
        if authentication.expects_raw_token:
            return self._raw_token(connection, frame)
        key, version, correlation_id, client_id, position = decode_request_header(frame)
        admission = authentication.admit(key, self._services.clock.now_ms())
        if admission is Admission.CLOSE:
            raise Close("not authenticated")
        row = self._table.get(key)  # type: ignore[arg-type]
        if row is None or version not in row.versions:
            if key is not ApiKey.API_VERSIONS:
                raise Close(f"API {int(key)} version {version} is not served here")
            row, version = self._table[ApiKey.API_VERSIONS], -1
        header = (ApiKey(key), version, correlation_id, client_id)
        context = RequestContext(self._services, connection, row, header, len(frame))
        if version < 0 and admission is Admission.ILLEGAL_STATE:
            raise Close("not authenticated")
        if version < 0:  # an ApiVersions request from the future: only its header can be read
            return self._answer(context, row.handler(context, None))
        request, _ = decode_at(request_class(key), frame, version, position)
        if admission is Admission.ILLEGAL_STATE:
            return self._later(context, request, _illegal())
        if row.forwarded and not self.of_controller and not self._services.controller.is_here:
            self.requests[context.api_key] += 1
            return self._later(context, request, self._forward(context, request, bytes(frame)))
        return self._handle(context, request)

    def _handle(self, context: RequestContext, request: Any) -> Any:
        row = context.row
        self.requests[context.api_key] += 1
        quotas = self._services.quotas
        began = self._services.clock.monotonic() if quotas.counts_time else None
        try:
            self._enforce(context)
            response = row.handler(context, request)
        except KafkaError as error:
            return self._answer(context, self._failed(context, request, error))
        finally:
            if began is not None:
                quotas.worked(context, self._services.clock.monotonic() - began)
        if response is None or isinstance(response, Message):
            return self._answer(context, response)
        if isinstance(response, Later) and response.overlaps:
            response.finish = partial(self._finished, context, request, response.finish)
            return response
        return self._later(context, request, response)

    def _finished(
        self, context: RequestContext, request: Any, finish: Callable[[], Response]
    ) -> Answer | None:
        try:
            return self._answer(context, finish())
        except KafkaError as error:
            return self._answer(context, self._failed(context, request, error))

    async def _forward(self, context: RequestContext, request: Any, frame: bytes) -> Response:
        """Let the active controller, in another process, answer."""

        async def here() -> Response:
            return await self._respond(context, request)

        try:
            response: Any = await self._services.controller.forward(context, frame, here)
        except KafkaError as error:
            if error.code is ErrorCode.UNSUPPORTED_VERSION:
                # The controller is older than this node: a client that reconnects learns its
                # versions.
                raise Close(str(error)) from error
            raise
        await self._services.settled()
        throttle_ms = getattr(response, "throttle_time_ms", 0)
        context.throttle_ms = max(context.throttle_ms, throttle_ms)
        return response  # type: ignore[no-any-return]

    async def answer_envelope(
        self, envelope: RequestContext, frame: Buffer, client: tuple[str, str]
    ) -> EnvelopeResponse:
        """Answer a client's request that a broker has passed on to this controller."""
        try:
            key, version, correlation_id, client_id, position = decode_request_header(frame)
            if key not in FORWARDABLE:
                why = f"API {key!r} is not enabled or is not eligible for forwarding"
                raise KafkaError(ErrorCode.INVALID_REQUEST, why)
            row = self._table.get(ApiKey(key))
            if row is None or version not in row.versions:
                raise ProtocolError(f"API {int(key)} version {version} is not served here")
            request, _ = decode_at(request_class(key), frame, version, position)
        except ProtocolError as error:
            raise KafkaError(ErrorCode.UNSUPPORTED_VERSION, str(error)) from error
        header = (ApiKey(key), version, correlation_id, client_id)
        context = ForwardedContext(envelope, row, header, len(frame), client)
        self.requests[context.api_key] += 1
        response = await self._respond(context, request)
        if response is None or is_elsewhere(context.api_key, response):
            return EnvelopeResponse(error_code=ErrorCode.NOT_CONTROLLER)
        answer = self._answer(context, response)
        payload = b"" if answer is None else b"".join(answer.parts)[_LENGTH.size :]
        return EnvelopeResponse(payload, metadata_offset=self._services.quorum.high_watermark)

    async def _respond(self, context: RequestContext, request: Any) -> Response:
        try:
            self._enforce(context)
            response: Any = context.row.handler(context, request)
            if response is not None and not isinstance(response, Message):
                response = await response
        except KafkaError as error:
            return self._failed(context, request, error)
        return response  # type: ignore[no-any-return]

    async def _later(
        self, context: RequestContext, request: Any, response: Awaitable[Response]
    ) -> Answer | None:
        try:
            result = await response
        except KafkaError as error:
            result = self._failed(context, request, error)
        answer = self._answer(context, result)
        connection = context.connection
        if connection.authentication.failed:
            # Delayed, so that guessing passwords is slow.
            await asyncio.sleep(connection.authentication.close_delay_ms / 1000)
            if answer is not None:
                answer.close = True
        elif context.api_key in _SASL:
            connection.authenticated()
        return answer

    async def _raw_token(self, connection: Connection, frame: memoryview) -> Answer:
        """A bare SASL token, from a client of the oldest handshake."""
        authentication, services = connection.authentication, self._services
        now_ms = services.clock.now_ms()
        try:
            token = bytes(frame)
            if authentication.blocking:
                run = services.executor.run
                answer = await run(lambda: authentication.raw_token(token, now_ms))
            else:
                answer = authentication.raw_token(token, now_ms)
        except ProtocolError:
            await asyncio.sleep(authentication.close_delay_ms / 1000)
            raise
        if authentication.complete:
            connection.authenticated()
        return Answer([_LENGTH.pack(len(answer)), answer])

    def _enforce(self, context: RequestContext) -> None:
        permission = context.row.permission
        if (
            permission is not None
            and permission.resource is ResourceType.CLUSTER
            and not context.authorize_cluster(permission.operation)
        ):
            raise KafkaError(permission.denied)

    def _failed(self, context: RequestContext, request: Any, error: KafkaError) -> Message:
        key, row = context.api_key, context.row
        response: Any
        if row.fail is not None:
            response = row.fail(request, error)
        else:
            response = response_class(key)()
            if hasattr(response, "error_code"):
                response.error_code = error.code
            if hasattr(response, "error_message"):
                response.error_message = error.message or error.code.name
        if hasattr(response, "error_code") and not _has_error_code(key, context.version):
            response.error_code = ErrorCode.NONE
        if not getattr(response, "error_code", ErrorCode.NONE):
            self.failed[key, error.code] += 1  # the response has no code to count
        return response  # type: ignore[no-any-return]

    def _answer(self, context: RequestContext, response: Any) -> Answer | None:
        self.answered[context.api_key].succeeded(context.began)
        if response is None:
            return Answer([], context.throttle_ms) if context.throttle_ms else None
        error = getattr(response, "error_code", ErrorCode.NONE)
        if error:
            self.failed[context.api_key, error] += 1
        if context.throttle_ms and hasattr(response, "throttle_time_ms"):
            response.throttle_time_ms = context.throttle_ms
        version = max(context.version, 0)
        parts = encode_parts(response, version)
        frame = framed(context.api_key, version, context.correlation_id, parts)
        return Answer(frame, context.throttle_ms)


@cache
def _has_error_code(key: ApiKey, version: int) -> bool:
    """Whether a response of this version has a field for the error of the whole request."""
    fields = response_class(key).FIELDS
    return any(f.name == "error_code" and version in f.versions for f in fields)


async def _illegal() -> Response:
    raise KafkaError(ErrorCode.ILLEGAL_SASL_STATE)


def framed(key: ApiKey, version: int, correlation_id: int, parts: list[Buffer]) -> list[Buffer]:
    """Put length and response header before the parts of a body."""
    size = sum(map(len, parts))
    if response_header_version(key, version) == 0:
        return [_FRAME_HEADER.pack(size + 4, correlation_id), *parts]
    return [_FLEXIBLE_FRAME_HEADER.pack(size + 5, correlation_id, 0), *parts]
