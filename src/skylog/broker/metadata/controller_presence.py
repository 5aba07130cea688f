"""Registers a controller with the cluster (KIP-919): its listeners and features."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final

from skylog.controller.settings import SUPPORTED_FEATURES
from skylog.kernel.errors import ErrorCode, KafkaError
from skylog.kernel.logging import get_logger
from skylog.wire.messages.controller_registration_request import (
    ControllerRegistrationRequest,
    Feature,
    Listener,
)

if TYPE_CHECKING:
    from skylog.broker.background.tasks import Work
    from skylog.broker.metadata.controller_channel import ControllerChannel
    from skylog.controller.image import ClusterImage, Delta
    from skylog.kernel.ids import Uuid

log = get_logger("broker.controller")
# Clusters with an older metadata.version (before 3.7-IV0) have no record for it.
METADATA_VERSION_MIN: Final = 15
RETRY_SECONDS: Final = 1.0


class ControllerPresence:
    """Registers again whenever the metadata log does not show this incarnation."""

    def __init__(
        self,
        node_id: int,
        incarnation: Uuid,
        listeners: Sequence[Listener],
        controller: ControllerChannel,
        start: Callable[[str, Work], None],
    ) -> None:
        """``start`` runs work in the background."""
        self._request = ControllerRegistrationRequest(
            node_id,
            incarnation,
            listeners=list(listeners),
            features=[Feature(name, *levels) for name, levels in SUPPORTED_FEATURES.items()],
        )
        self._controller = controller
        self._start = start
        self._registered = False
        self._registering = False

    def metadata_changed(self, image: ClusterImage, delta: Delta) -> None:
        node_id = self._request.controller_id
        if not delta.features and node_id not in delta.controllers:
            return
        known = image.brokers.controllers.get(node_id)
        wanted = self._request.incarnation_id
        self._registered = known is not None and known.incarnation_id == wanted
        supported = (image.features.metadata_version or 0) >= METADATA_VERSION_MIN
        if supported and not self._registered and not self._registering:
            self._registering = True
            self._start("register controller", self._register)

    async def _register(self) -> None:
        try:
            while not self._registered:
                try:
                    response = await self._controller.submit(self._request, 0)
                    if not response.error_code:
                        return
                    why = ErrorCode(response.error_code).name
                except KafkaError as error:
                    why = str(error)
                log.warning("controller not registered yet", why=why)
                await asyncio.sleep(RETRY_SECONDS)
        finally:
            self._registering = False
