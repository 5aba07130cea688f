"""The controller's runtime: its machine over the quorum's metadata log."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, Final

from skylog.controller.machine import ControllerMachine
from skylog.controller.requests import ControllerRequest, Loaded, Request, no_charge
from skylog.controller.settings import ConfigSchema, ControllerSettings
from skylog.controller.state import ControllerState
from skylog.kernel.clock import Clock
from skylog.kernel.rng import Random
from skylog.replicated.lifecycle import CONTROLLER_REFUSALS, State
from skylog.replicated.log import KeyValue, RuntimeLog
from skylog.replicated.runtime import MachineKind, Runtime
from skylog.replicated.timers import LoopTimers, Timers
from skylog.wire.metadata_records import decode_metadata, encode_metadata
from skylog.wire.schema import Message

_SEED_BYTES: Final = 32


class MetadataCodec:
    """Metadata records have no key."""

    def encode(self, record: Message) -> KeyValue:
        return None, encode_metadata(record)

    def decode(self, _key: bytes | None, value: bytes | None) -> Message | None:
        return decode_metadata(value)


class Controller:
    """Answers requests while its node leads the quorum."""

    def __init__(
        self,
        settings: ControllerSettings,
        configs: ConfigSchema,
        log: RuntimeLog,
        *,
        clock: Clock,
        rng: Random,
        timers: Timers | None = None,
        on_failure: Callable[[Exception], None],
    ) -> None:
        """``on_failure`` is called when a machine had to be unloaded; ``start`` may retry."""
        self._log = log
        self._rng = rng
        self._on_failure = on_failure
        self._loading: asyncio.Task[None] | None = None
        kind: MachineKind[Request] = MachineKind(
            name="controller",
            create=lambda: ControllerMachine(settings, configs),
            codec=MetadataCodec(),
            refusals=CONTROLLER_REFUSALS,
            loaded_request=Loaded(),
        )
        self._runtime = Runtime(kind, log, clock, timers or LoopTimers(), on_failure)

    async def start(self) -> None:
        """Read the log and become active; an empty log gets the cluster's first records."""
        await self._runtime.load()

    def stop(self) -> None:
        """Stop answering, for example because another node leads; callers get an error."""
        self._runtime.unload()

    def lead(self, leads: bool) -> None:
        """This controller's node gained or lost the leadership of the quorum."""
        if not leads:
            self.stop()
            return

        async def load() -> None:
            try:
                await self.start()
            except Exception as error:  # noqa: BLE001 — a leader needs its state
                self._on_failure(error)

        self._loading = asyncio.get_running_loop().create_task(load())

    @property
    def active(self) -> bool:
        return self._runtime.state is State.ACTIVE

    @property
    def state(self) -> ControllerState | None:
        """The active controller's state, read-only; not all of it may be committed."""
        machine = self._runtime.machine
        return machine.state if isinstance(machine, ControllerMachine) else None

    async def submit(
        self,
        message: Message,
        version: int,
        charge: Callable[[int], None] = no_charge,
    ) -> Any:
        """The response, once its contents are committed; KafkaError if the request fails as a
        whole.

        ``charge`` is called with changed partitions and may raise THROTTLING_QUOTA_EXCEEDED.
        """
        return await self._runtime.submit(
            ControllerRequest(
                message,
                version,
                seed=self._rng.randbytes(_SEED_BYTES),
                next_offset=self._log.end_offset,
                charge=charge,
            )
        )

    async def snapshot_if_due(self) -> bool:
        if self._runtime.state is State.UNLOADED:
            return await self._runtime.snapshot_standby_if_due()
        return await self._runtime.snapshot_if_due()
