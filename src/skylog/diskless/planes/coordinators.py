"""The port of a plane to coordinators, wherever they are."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from skylog.diskless.plane import HighWatermarkListener, Unsubscribe

if TYPE_CHECKING:
    from skylog.diskless.coordinator import requests as ask
    from skylog.diskless.coordinator.registry import DisklessCoordinators


class Coordinators(Protocol):
    """Coordinators by id: those of one broker, or of all brokers of a cluster.

    An unreachable one raises a KafkaError; see ``plane.py`` for its meaning.
    """

    @property
    def local(self) -> DisklessCoordinators:
        """Those of this broker."""
        ...

    def led(self) -> list[int]:
        """Those that are led here."""
        ...

    def all(self) -> list[int]: ...

    def all_led(self) -> bool:
        """Whether there are coordinators, and each of them has a leader."""
        ...

    def elsewhere(self) -> dict[int, int]:
        """The coordinators led by other brokers, and by which."""
        ...

    async def submit(self, coordinator_id: int, request: ask.Write | ask.StrictRead) -> Any: ...

    async def find(self, coordinator_id: int, request: ask.Find | ask.ForgetFiles) -> Any: ...

    async def look(self, coordinator_id: int, request: ask.Look) -> Any: ...

    def watch(self, listener: HighWatermarkListener) -> Unsubscribe: ...

    async def loaded(self) -> None: ...

    async def close(self) -> None: ...
