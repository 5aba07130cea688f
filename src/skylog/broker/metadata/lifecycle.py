"""A broker's life cycle: register, send heartbeats, serve, and shut down.

==============  ==================================================================================
state           goes to
==============  ==================================================================================
starting        registered: the controller has given this incarnation an epoch
registered      caught up: this broker has read the metadata up to its own registration
caught up       running: it is ready, and a heartbeat says that it is unfenced
running         fenced: its session was lost · leaving: ``leave``
fenced          running: heartbeats reach the controller again
leaving         gone: the controller lets it go, or the wait times out
==============  ==================================================================================
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from skylog.kernel import limits
from skylog.kernel.errors import ErrorCode, KafkaError, StorageError
from skylog.kernel.logging import get_logger
from skylog.kernel.rng import Random, random_uuid
from skylog.kernel.waiting import end_tasks
from skylog.wire.messages.broker_heartbeat_request import BrokerHeartbeatRequest
from skylog.wire.messages.broker_registration_request import (
    BrokerRegistrationRequest,
    Feature,
    Listener,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from skylog.broker.metadata.controller_channel import ControllerChannel
    from skylog.kernel.ids import Uuid
    from skylog.kernel.settings import BrokerSettings
    from skylog.wire.messages.broker_heartbeat_response import BrokerHeartbeatResponse

log = get_logger("broker.lifecycle")
REGISTRATION_VERSION: Final = 4
HEARTBEAT_VERSION: Final = 1
RETRY_SECONDS: Final = 0.05
_WRONG: Final = {
    ErrorCode.STALE_BROKER_EPOCH: "another process has since registered this node.id, or the "
    "broker was unregistered; stop this broker, and restart it if it is the right one",
    ErrorCode.BROKER_ID_NOT_REGISTERED: "the broker was unregistered; restart it to register again",
    ErrorCode.DUPLICATE_BROKER_REGISTRATION: "another broker with this node.id is running, or one "
    "was killed and its session has not expired yet",
    ErrorCode.CLUSTER_AUTHORIZATION_FAILED: "this node's principal needs CLUSTER_ACTION on the "
    "cluster; super.users of the controllers have it",
}


class Lifecycle:
    """This broker's side of its session with the controller."""

    def __init__(
        self,
        settings: BrokerSettings,
        cluster_id: str,
        rng: Random,
        controller: ControllerChannel,
        metadata_offset: Callable[[], int],
        hopeless: Callable[[], str | None] = lambda: None,
    ) -> None:
        """``hopeless`` says why this broker can never register, if that is known."""
        self.node_id = settings.node.node_id
        self.broker_epoch = -1
        self._settings = settings
        self._cluster_id = cluster_id
        self._incarnation = random_uuid(rng)
        self._metadata_offset = metadata_offset
        self._hopeless = hopeless
        self._controller = controller
        self._heartbeats: asyncio.Task[None] | None = None
        self._ready = False
        self._fenced = True
        self._caught_up = False
        self._changed = asyncio.Event()
        self._soon = asyncio.Event()
        self._last_error = ErrorCode.NONE

    @property
    def serving(self) -> bool:
        """Whether the controller considers this broker active."""
        running = self._heartbeats is not None and not self._heartbeats.done()
        return running and not self._fenced

    async def register(
        self,
        listeners: Sequence[Listener],
        features: Mapping[str, tuple[int, int]],
        directories: Sequence[Uuid],
        previous_epoch: int,
    ) -> None:
        """Get an epoch, then wait until this broker's metadata shows its own registration.

        ``previous_epoch`` is that of a clean shutdown, else -1: it tells the controller that
        nothing was lost. StorageError says why this broker cannot register.
        """
        node = self._settings.node
        request = BrokerRegistrationRequest(
            self.node_id,
            self._cluster_id,
            self._incarnation,
            list(listeners),
            [Feature(name, low, high) for name, (low, high) in features.items()],
            node.rack,
            log_dirs=list(directories),
            previous_broker_epoch=previous_epoch,
        )
        try:
            async with asyncio.timeout(node.registration_timeout_ms / 1000):
                await self._register(request)
        except TimeoutError as error:
            last = self._last_error
            why = _WRONG.get(last, "are the controllers running, and can they be reached?")
            raise StorageError(
                f"broker {self.node_id} was not registered within "
                f"initial.broker.registration.timeout.ms={node.registration_timeout_ms} "
                f"({last.name}): {why}"
            ) from error
        log.info("broker registered", epoch=self.broker_epoch)
        self._heartbeats = asyncio.ensure_future(self._beat())
        await self._until(lambda: self._caught_up)

    async def unfence(self) -> None:
        """Tell the controller that this broker is ready, and wait until it is unfenced."""
        self._ready = True
        await self._until(lambda: not self._fenced)

    async def _until(self, reached: Callable[[], bool]) -> None:
        self._soon.set()
        while not reached():
            self._changed.clear()
            await self._changed.wait()

    async def _register(self, request: BrokerRegistrationRequest) -> None:
        pause = RETRY_SECONDS
        while True:
            code, why = await self._try_register(request)
            if code is ErrorCode.NONE:
                return
            if code is ErrorCode.INCONSISTENT_CLUSTER_ID:
                raise StorageError(
                    f"broker {self.node_id} cannot register: {code.name}: its directories belong "
                    f"to cluster {self._cluster_id}, the controllers to another; correct "
                    "controller.quorum.bootstrap.servers, or format new directories"
                )
            hopeless = self._hopeless()
            if hopeless is not None:
                raise StorageError(f"broker {self.node_id} cannot register: {hopeless}")
            if code is not self._last_error:
                hint = _WRONG.get(code) or why
                log.warning("broker not registered yet", error=code.name, why=hint)
            self._last_error = code
            await asyncio.sleep(pause)
            pause = min(pause * 2, self._settings.node.heartbeat_interval_ms / 1000)

    async def _try_register(self, request: BrokerRegistrationRequest) -> tuple[ErrorCode, str]:
        try:
            response = await self._controller.submit(request, REGISTRATION_VERSION)
        except KafkaError as error:
            return error.code, error.message or ""
        self.broker_epoch = response.broker_epoch
        return ErrorCode(response.error_code), ""

    async def _beat(self) -> None:
        """A broker without heartbeats soon loses its partitions: continue whatever happens."""
        interval = self._settings.node.heartbeat_interval_ms / 1000
        while True:
            self._soon.clear()
            code, why, wait = ErrorCode.NONE, "", interval
            try:
                response = await self._heartbeat()
                self._heard(response)
                starting = not self._caught_up or (self._ready and self._fenced)
                wait = RETRY_SECONDS if starting else interval
            except KafkaError as error:
                code, why = error.code, _WRONG.get(error.code) or error.message or ""
            except Exception:
                code = ErrorCode.UNKNOWN_SERVER_ERROR
                log.exception("heartbeat failed")
            if code is not self._last_error and code is not ErrorCode.NONE:
                log.warning("heartbeat failed", error=code.name, why=why)
            self._last_error = code
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(wait):
                    await self._soon.wait()

    def _heard(self, response: BrokerHeartbeatResponse) -> None:
        if self._ready and response.is_fenced != self._fenced:
            log.info("broker fenced" if response.is_fenced else "broker unfenced")
        self._fenced = response.is_fenced
        self._caught_up = self._caught_up or response.is_caught_up
        self._changed.set()

    async def _heartbeat(self, *, leave: bool = False) -> BrokerHeartbeatResponse:
        request = BrokerHeartbeatRequest(
            self.node_id, self.broker_epoch, self._metadata_offset() - 1, not self._ready, leave
        )
        response: BrokerHeartbeatResponse = await self._controller.submit(
            request, HEARTBEAT_VERSION
        )
        if response.error_code:
            raise KafkaError(ErrorCode(response.error_code))
        return response

    async def leave(self) -> None:
        """Hand over leadership before stopping; without a controller, for at most one session."""
        heartbeats, self._heartbeats = self._heartbeats, None
        if heartbeats is None:
            return
        await end_tasks([heartbeats])
        if not self._settings.node.controlled_shutdown_enable:
            return  # its session will expire
        loop, session = asyncio.get_running_loop(), self._settings.node.session_timeout_ms / 1000
        heard = began = loop.time()
        why = "it still leads partitions"
        while loop.time() < min(heard + session, began + limits.LEAVE_SECONDS_MAX):
            try:
                async with asyncio.timeout(session):
                    response = await self._heartbeat(leave=True)
            except (KafkaError, TimeoutError) as error:
                why = str(error) or "the controller does not answer"
                if isinstance(error, KafkaError) and error.code in _WRONG:
                    break  # nothing is left to hand over
            else:
                heard = loop.time()
                if response.should_shut_down:
                    return
            await asyncio.sleep(RETRY_SECONDS)
        log.warning("left without the controller's consent", why=why)
