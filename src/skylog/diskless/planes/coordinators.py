"""What a plane asks coordinators for, wherever they are."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from skylog.diskless.plane import HighWatermarkListener, Unsubscribe

if TYPE_CHECKING:
    from skylog.diskless.coordinator import requests as ask
    from skylog.diskless.coordinator.registry import DisklessCoordinators


class Coordinators(Protocol):
    """Coordinators by their ids: those of one broker, or of all brokers of a cluster.

    One that cannot be reached is a KafkaError; see ``plane.py`` for what that means.
    """

    @property
    def local(self) -> DisklessCoordinators:
        """Those of this broker."""
        ...

    def led(self) -> list[int]:
        """Those that lead here."""
        ...

    def all(self) -> list[int]: ...

    def all_led(self) -> bool:
        """Whether there are coordinators, and each of them has a leader."""
        ...

    def elsewhere(self) -> dict[int, int]:
        """The coordinators that lead on other brokers, and where."""
        ...

    async def submit(self, coordinator_id: int, request: ask.Write | ask.StrictRead) -> Any: ...

    async def find(self, coordinator_id: int, request: ask.Find | ask.ForgetFiles) -> Any: ...

    async def look(self, coordinator_id: int, request: ask.Look) -> Any: ...

    def watch(self, listener: HighWatermarkListener) -> Unsubscribe: ...

    async def loaded(self) -> None: ...

    async def close(self) -> None: ...
