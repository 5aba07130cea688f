"""A broker's life in the cluster: register, heartbeat, serve, and take its leave.

==============  =========================================================
state           goes to
==============  =========================================================
starting        fenced: the controller has registered this incarnation
fenced          running: a heartbeat says that the fence is gone
running         leaving: ``leave``
leaving         gone: the controller lets it go, or the wait is over
==============  =========================================================
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING

from skylog.kernel.errors import ErrorCode, KafkaError, StorageError
from skylog.kernel.logging import get_logger
from skylog.kernel.rng import Random, random_uuid
from skylog.wire.messages.broker_heartbeat_request import BrokerHeartbeatRequest
from skylog.wire.messages.broker_registration_request import (
    BrokerRegistrationRequest,
    Feature,
    Listener,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from skylog.broker.controller_channel import ControllerChannel
    from skylog.kernel.ids import Uuid
    from skylog.kernel.settings import BrokerSettings

log = get_logger("broker.lifecycle")
REGISTRATION_VERSION = 4
HEARTBEAT_VERSION = 1
RETRY_SECONDS = 0.05


class Lifecycle:
    """Speaks for this broker with the controller."""

    def __init__(
        self,
        settings: BrokerSettings,
        cluster_id: str,
        rng: Random,
        controller: ControllerChannel,
        metadata_offset: Callable[[], int],
    ) -> None:
        self.node_id = settings.node.node_id
        self.broker_epoch = -1
        self._settings = settings
        self._cluster_id = cluster_id
        self._incarnation = random_uuid(rng)
        self._metadata_offset = metadata_offset
        self._controller = controller
        self._heartbeats: asyncio.Task[None] | None = None

    @property
    def serving(self) -> bool:
        """Whether the controller has let this broker in."""
        return self._heartbeats is not None and not self._heartbeats.done()

    async def join(
        self,
        listeners: Sequence[Listener],
        features: Mapping[str, tuple[int, int]],
        directories: Sequence[Uuid],
        previous_epoch: int,
    ) -> None:
        """Register and wait until the controller lets this broker serve.

        ``previous_epoch`` is that of a clean shutdown, -1 after any other: the controller then
        knows that nothing was lost.
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
        async with asyncio.timeout(node.registration_timeout_ms / 1000):
            await self._register(request)
            while not await self._heartbeat():  # noqa: ASYNC110 - the controller is asked anew
                await asyncio.sleep(RETRY_SECONDS)
        self._heartbeats = asyncio.ensure_future(self._beat())

    async def _register(self, request: BrokerRegistrationRequest) -> None:
        while True:
            code = ErrorCode.NONE
            try:
                response = await self._controller.submit(request, REGISTRATION_VERSION)
                code = ErrorCode(response.error_code)
            except KafkaError as error:
                code = error.code
            if code is ErrorCode.NONE:
                self.broker_epoch = response.broker_epoch
                return
            if code in (ErrorCode.INCONSISTENT_CLUSTER_ID, ErrorCode.DUPLICATE_BROKER_REGISTRATION):
                raise StorageError(
                    f"broker {self.node_id} cannot register: {code.name}; is another broker of "
                    "this node.id running, or is the directory another cluster's?"
                )
            log.warning("broker not registered yet", error=code.name)
            await asyncio.sleep(RETRY_SECONDS)

    async def _beat(self) -> None:
        while True:
            await asyncio.sleep(self._settings.node.heartbeat_interval_ms / 1000)
            try:
                await self._heartbeat()
            except KafkaError as error:
                log.warning("heartbeat failed", error=error.code.name)
            except Exception:
                # A broker without heartbeats is soon without partitions: go on whatever happens.
                log.exception("heartbeat failed")

    async def _heartbeat(self, *, leave: bool = False) -> bool:
        """True once the broker may serve or, when leaving, go."""
        request = BrokerHeartbeatRequest(
            self.node_id, self.broker_epoch, self._metadata_offset() - 1, False, leave
        )
        response = await self._controller.submit(request, HEARTBEAT_VERSION)
        if response.error_code:
            raise KafkaError(ErrorCode(response.error_code))
        return bool(response.should_shut_down) if leave else not response.is_fenced

    async def leave(self) -> None:
        """Hand leadership over before going, for as long as a session would last at most."""
        if self._heartbeats is None:
            return
        self._heartbeats.cancel()
        await asyncio.gather(self._heartbeats, return_exceptions=True)
        try:
            async with asyncio.timeout(self._settings.node.session_timeout_ms / 1000):
                while not await self._heartbeat(leave=True):  # noqa: ASYNC110 - as above
                    await asyncio.sleep(RETRY_SECONDS)
        except (KafkaError, TimeoutError) as error:
            log.warning("left without the controller's leave", why=str(error))
