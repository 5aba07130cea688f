"""From a frame to an answer: header, table row, permission, handler, encoded response.

``table.py`` has a row for every API that we offer. This is the only place where a request meets
its permission: a row on the cluster is enforced here, a row on topics, groups or other named
things is what the handler's ``context.allowed(name)`` asks for.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from struct import Struct as Format
from typing import TYPE_CHECKING, Any, Final

from skylog.broker.connection import Answer, Close, Connection
from skylog.broker.context import RequestContext
from skylog.kernel.errors import ErrorCode, KafkaError
from skylog.kernel.logging import get_logger
from skylog.security.acls import AclOperation, ResourceType
from skylog.wire.apis import (
    ApiKey,
    decode_request_header,
    request_class,
    response_header_version,
)
from skylog.wire.buffers import Buffer
from skylog.wire.codec import decode_at, encode_parts
from skylog.wire.schema import Message, Versions

if TYPE_CHECKING:
    from skylog.broker.services import Services

log = get_logger("broker.dispatch")
Response = Message | None
Handler = Callable[[RequestContext, Any], "Response | Awaitable[Response]"]
_FRAME_HEADER: Final = Format(">ii")
_FLEXIBLE_FRAME_HEADER: Final = Format(">iib")


@dataclass(frozen=True, slots=True)
class Permission:
    """What a client must be allowed to do, and the error if it is not."""

    operation: AclOperation
    resource: ResourceType
    denied: ErrorCode


@dataclass(frozen=True, slots=True)
class Row:
    """One API: who handles it, in which versions, on which listeners, with which permission."""

    handler: Handler
    permission: Permission | None
    versions: Versions
    broker: bool = True
    controller: bool = False
    # Shapes the answer to a request that failed as a whole, where ``error_code`` at the top of
    # the response does not exist.
    fail: Callable[[Any, KafkaError], Message] | None = None


class Dispatcher:
    """Answers the requests of one kind of listener (broker or controller)."""

    def __init__(self, services: Services, table: Mapping[ApiKey, Row]) -> None:
        self._services = services
        self._table = table
        self.requests: dict[ApiKey, int] = dict.fromkeys(table, 0)

    def dispatch(self, connection: Connection, frame: memoryview) -> Any:
        """The answer to a frame: an Answer, an awaitable of one, or None where none is due."""
        key, version, correlation_id, client_id, position = decode_request_header(frame)
        authentication = connection.authentication
        if not authentication.complete or authentication.owns(key):
            return authentication.handle(connection, frame)
        row = self._table.get(key)
        if row is None or version not in row.versions:
            if key is not ApiKey.API_VERSIONS:
                raise Close(f"API {key} version {version} is not served here")
            row, version = self._table[ApiKey.API_VERSIONS], -1
        header = (key, version, correlation_id, client_id)
        context = RequestContext(self._services, connection, row, header, len(frame))
        if version < 0:  # an ApiVersions request from the future: only its header can be read
            return self._answer(context, row.handler(context, None))
        request, _ = decode_at(request_class(key), frame, version, position)
        self.requests[key] += 1
        try:
            self._enforce(context)
            response = row.handler(context, request)
        except KafkaError as error:
            return self._answer(context, self._failed(row, key, request, error))
        if inspect.isawaitable(response):
            return self._later(context, request, response)
        return self._answer(context, response)

    async def _later(
        self, context: RequestContext, request: Any, response: Awaitable[Response]
    ) -> Answer | None:
        try:
            return self._answer(context, await response)
        except KafkaError as error:
            failed = self._failed(context.row, context.api_key, request, error)
            return self._answer(context, failed)

    def _enforce(self, context: RequestContext) -> None:
        permission = context.row.permission
        if permission is not None and permission.resource is ResourceType.CLUSTER:
            if not context.authorize_cluster(permission.operation):
                raise KafkaError(permission.denied)

    def _failed(self, row: Row, key: ApiKey, request: Any, error: KafkaError) -> Message:
        if row.fail is not None:
            return row.fail(request, error)
        response = response_of(key)
        response.error_code = error.code
        if hasattr(response, "error_message"):
            response.error_message = error.message or error.code.name
        return response  # type: ignore[no-any-return]

    def _answer(self, context: RequestContext, response: Any) -> Answer | None:
        if response is None:
            return Answer([], context.throttle_ms) if context.throttle_ms else None
        if context.throttle_ms and hasattr(response, "throttle_time_ms"):
            response.throttle_time_ms = context.throttle_ms
        version = max(context.version, 0)
        parts = encode_parts(response, version)
        return Answer(framed(context.api_key, version, context.correlation_id, parts),
                      context.throttle_ms)


def response_of(key: ApiKey) -> Any:
    """An empty response of an API."""
    from skylog.wire.apis import response_class  # noqa: PLC0415

    return response_class(key)()


def framed(key: ApiKey, version: int, correlation_id: int, parts: list[Buffer]) -> list[Buffer]:
    """Put length and response header before the parts of a body."""
    size = sum(map(len, parts))
    if response_header_version(key, version) == 0:
        return [_FRAME_HEADER.pack(size + 4, correlation_id), *parts]
    return [_FLEXIBLE_FRAME_HEADER.pack(size + 5, correlation_id, 0), *parts]
