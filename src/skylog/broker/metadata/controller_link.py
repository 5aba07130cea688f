"""The link to the active controller, wherever it runs: a call in this process, or a request.

The leader of the quorum is the active controller. If another node answers, or the connection
breaks, the request is sent to the current leader until it times out, as in Kafka. Each kind of
request has its own lane, so that a heartbeat does not wait for the creation of ten thousand
partitions.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, Final

from skylog.broker.net.forwarding import is_elsewhere, new_envelope, opened
from skylog.client.settings import Address
from skylog.kernel.errors import ErrorCode, KafkaError, ProtocolError
from skylog.kernel.logging import get_logger
from skylog.wire.apis import ApiKey, encode_request_header
from skylog.wire.codec import encode
from skylog.wire.messages.alter_partition_request import AlterPartitionRequest
from skylog.wire.messages.broker_heartbeat_request import BrokerHeartbeatRequest
from skylog.wire.messages.broker_registration_request import BrokerRegistrationRequest
from skylog.wire.messages.create_topics_request import CreateTopicsRequest

if TYPE_CHECKING:
    from skylog.broker.metadata.controller_channel import LocalController
    from skylog.broker.net.context import RequestContext
    from skylog.client.connection import ClientConnection
    from skylog.client.lines import Lines
    from skylog.controller.image import ClusterImage
    from skylog.kernel.settings.sections import NodeSettings
    from skylog.quorum.node import QuorumNode
    from skylog.quorum.voters import Endpoint
    from skylog.wire.messages.envelope_response import EnvelopeResponse
    from skylog.wire.schema import Message

log = get_logger("broker.controller")
RETRY_SECONDS: Final = 0.05
# How often to check, while waiting for a response, whether that node still leads.
LOOK_SECONDS: Final = 0.5
FORWARD_MS_MAX: Final = 60_000
# A change is answered once this broker shows it, or after this time.
SHOWN_SECONDS_MAX: Final = 5.0
_LANES: Final[dict[type[Message], str]] = {
    BrokerRegistrationRequest: "heartbeat",
    BrokerHeartbeatRequest: "heartbeat",
    AlterPartitionRequest: "alter-partition",
}
_FORWARDING: Final = "forwarding"


class _ElsewhereError(Exception):
    """The node is not the active controller."""


class ControllerLink:
    """This node's ``ControllerChannel``. All calls come from the event loop."""

    def __init__(
        self,
        local: LocalController | None,
        quorum: QuorumNode,
        lines: Lines,
        image: ClusterImage,
        settings: NodeSettings,
    ) -> None:
        """``local`` is the controller of this process, None if it is not one."""
        self._local = local
        self._quorum = quorum
        self._lines = lines
        self._image = image
        self._settings = settings

    @property
    def is_here(self) -> bool:
        """Whether this process has the active controller."""
        return self._local is not None and self._quorum.is_leader

    async def decide(self, request: Message, version: int) -> Any:
        """This node's own answer: NOT_CONTROLLER unless it is the active controller."""
        if self._local is None:
            raise KafkaError(ErrorCode.NOT_CONTROLLER)
        return await self._local.decide(request, version)

    async def submit(self, request: Message, version: int) -> Any:
        """The controller's answer to a request of this node itself."""
        key = ApiKey(request.API_KEY)

        async def ask(connection: ClientConnection) -> Any:
            response = await connection.request(request, version_min=version, version_max=version)
            if is_elsewhere(key, response):
                raise _ElsewhereError
            return response

        async def here() -> Any:
            return await self.decide(request, version)

        response = await self._find(ask, here, _lane(request), self._patience_ms(request))
        if isinstance(request, CreateTopicsRequest) and not self.is_here:
            await self.until_shown(lambda: self._knows(request))
        return response

    async def pass_on(self, context: RequestContext, request: Message, version: int) -> Any:
        """The controller's answer to a client's request of which this node has done its part."""
        key = ApiKey(request.API_KEY)
        header = encode_request_header(key, version, context.correlation_id, context.client_id)

        async def here() -> Any:
            return await self.decide(request, version)

        if self.is_here:
            with contextlib.suppress(_ElsewhereError):
                return await _elsewhere_raised(here)
        return await self._in_envelope(context, header + encode(request, version), version, here)

    async def forward(
        self, context: RequestContext, frame: bytes, here: Callable[[], Awaitable[Any]]
    ) -> Any:
        """The controller's response to a client's raw request; ``here`` answers it if this node
        becomes the active controller meanwhile."""
        return await self._in_envelope(context, frame, context.version, here)

    async def _in_envelope(
        self,
        context: RequestContext,
        frame: bytes,
        version: int,
        here: Callable[[], Awaitable[Any]],
    ) -> Any:
        envelope = new_envelope(frame, context.principal, context.host)

        async def ask(connection: ClientConnection) -> Any:
            return _unpacked(context.api_key, version, await connection.request(envelope))

        try:
            found = await self._find(ask, here, _FORWARDING, FORWARD_MS_MAX)
        except KafkaError as error:
            if error.retriable or error.code is ErrorCode.UNSUPPORTED_VERSION:
                raise
            # Errors between nodes are not the client's concern.
            log.error("request not forwarded", api=context.api_key.name, why=str(error))
            raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR) from error
        if not isinstance(found, tuple):
            return found
        response, offset = found
        await self.until_shown(lambda: self._quorum.high_watermark >= offset)
        return response

    # -- finding it ----------------------------------------------------------------------------

    async def _find(
        self,
        ask: Callable[[ClientConnection], Awaitable[Any]],
        here: Callable[[], Awaitable[Any]],
        lane: str,
        patience_ms: int,
    ) -> Any:
        loop = asyncio.get_running_loop()
        deadline = loop.time() + patience_ms / 1000
        why, ambiguous = "no active controller is known", False
        while True:
            try:
                if self.is_here:
                    return await _elsewhere_raised(here)
                endpoint = self._quorum.leader_endpoint
                if endpoint is not None:
                    return await self._asked(ask, endpoint, lane, deadline)
            except _ElsewhereError:
                why = "the contacted controller is not the leader"
            except KafkaError as error:
                if error.code is not ErrorCode.NETWORK_EXCEPTION:
                    raise
                why, ambiguous = error.message or str(error), ambiguous or error.ambiguous
            if loop.time() + RETRY_SECONDS > deadline:
                raise KafkaError(ErrorCode.REQUEST_TIMED_OUT, why, ambiguous=ambiguous)
            await asyncio.sleep(RETRY_SECONDS)

    async def _asked(
        self,
        ask: Callable[[ClientConnection], Awaitable[Any]],
        endpoint: Endpoint,
        lane: str,
        deadline: float,
    ) -> Any:
        """The answer; the wait ends early if another node takes the lead."""
        address, loop = Address(endpoint.host, endpoint.port), asyncio.get_running_loop()
        asking = asyncio.ensure_future(self._over(ask, address, lane))
        try:
            while not asking.done():
                await asyncio.wait({asking}, timeout=LOOK_SECONDS)
                moved = self._quorum.leader_endpoint not in (endpoint, None)
                if not asking.done() and (moved or loop.time() > deadline):
                    self._lines.drop(address)
                    why = f"the controller at {address} does not answer"
                    raise KafkaError(ErrorCode.NETWORK_EXCEPTION, why, ambiguous=True)
        finally:
            if not asking.done():
                asking.cancel()
                await asyncio.gather(asking, return_exceptions=True)
        try:
            return asking.result()
        except KafkaError as error:
            if error.code is ErrorCode.REQUEST_TIMED_OUT:
                message = error.message
                raise KafkaError(ErrorCode.NETWORK_EXCEPTION, message, ambiguous=True) from error
            raise

    async def _over(
        self, ask: Callable[[ClientConnection], Awaitable[Any]], address: Address, lane: str
    ) -> Any:
        return await ask(await self._lines.connection(address, lane))

    def _patience_ms(self, request: Message) -> int:
        if _lane(request) == "heartbeat":
            # The next heartbeat has newer information.
            return self._settings.heartbeat_interval_ms
        return self._settings.request_timeout_ms

    # -- showing changes -----------------------------------------------------------------------

    def _knows(self, request: CreateTopicsRequest) -> bool:
        return all(self._image.topic(topic.name) is not None for topic in request.topics)

    async def until_shown(self, shown: Callable[[], bool]) -> None:
        """Wait until this node's metadata is that far, but not for long."""
        if shown():
            return
        done = asyncio.get_running_loop().create_future()

        def look(_high_watermark: int) -> None:
            if shown() and not done.done():
                done.set_result(None)

        unsubscribe = self._quorum.on_high_watermark(look)
        try:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(SHOWN_SECONDS_MAX):
                    await done
        finally:
            unsubscribe()


def _lane(request: Message) -> str:
    return _LANES.get(type(request), _FORWARDING)


async def _elsewhere_raised(here: Callable[[], Awaitable[Any]]) -> Any:
    try:
        return await here()
    except KafkaError as error:
        if error.code is ErrorCode.NOT_CONTROLLER:
            raise _ElsewhereError from error
        raise


def _unpacked(key: ApiKey, version: int, answer: EnvelopeResponse) -> tuple[Any, int]:
    """The response in an envelope, and the metadata offset that shows its effect."""
    code = answer.error_code
    if code == ErrorCode.NOT_CONTROLLER:
        raise _ElsewhereError
    if code:
        known = ErrorCode(code) if code in ErrorCode._value2member_map_ else None
        named = known or ErrorCode.UNKNOWN_SERVER_ERROR
        raise KafkaError(named, f"the controller refuses the envelope: {named.name}")
    try:
        return opened(key, version, answer.response_data or b""), answer.metadata_offset
    except ProtocolError as error:
        raise KafkaError(
            ErrorCode.UNKNOWN_SERVER_ERROR, f"invalid response in an envelope: {error}"
        ) from error
