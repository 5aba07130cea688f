"""The steps of a quorum node: the machine decides, its effects are carried out, then comes the next
event.

Only the syncs of the leader's own appends run concurrently: appends of one event-loop iteration
share a sync, and what is appended meanwhile waits for the next. The high watermark advances when a
sync is done or another replica has fetched, so nothing acknowledged can be lost.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any, Final, Protocol

from skylog.kernel.errors import ErrorCode, KafkaError, StorageError, invariant
from skylog.kernel.logging import get_logger
from skylog.kernel.system import System
from skylog.kernel.waiting import end_tasks
from skylog.quorum.acting import Acting
from skylog.quorum.effects import (
    AdvanceHighWatermark,
    AppendFetched,
    AppendVoters,
    BeginEpoch,
    Effect,
    InstallSnapshot,
    Send,
    TruncateTo,
)
from skylog.quorum.election import ElectionState
from skylog.quorum.log import MetadataLog
from skylog.quorum.machine import QuorumMachine
from skylog.quorum.messages import FetchResponse, FetchSnapshotResponse, Leadership, PeerRequest
from skylog.quorum.peers import Peers
from skylog.quorum.publishing import Publishing
from skylog.quorum.states import Leader

_logger = get_logger("quorum.driver")
# A timer that fired early, through rounding or a stopped clock, is not set again at once.
_TIMER_MS_MIN: Final = 5
_FAREWELL_SECONDS_MAX: Final = 1.0
Decide = Callable[[int], list[Effect]]


class DriverOwner(Protocol):
    """Receives the results of a driver's steps."""

    def driver_has_news(self) -> None:
        """Waiting fetches may have an answer now."""
        ...

    def driver_leads(self, leads: bool) -> None: ...

    def driver_failed(self, error: Exception) -> None: ...


class Driver:
    """Drives one machine over its log, its peers and its timer."""

    def __init__(
        self,
        machine: QuorumMachine,
        log: MetadataLog,
        acting: Acting,
        publishing: Publishing,
        peers: Peers,
        system: System,
        owner: DriverOwner,
    ) -> None:
        self._machine = machine
        self._log = log
        self._acting = acting
        self._publishing = publishing
        self._peers = peers
        self._executor = system.executor
        self._clock = system.clock
        self._owner = owner
        self._turns = asyncio.Lock()
        self._timer: asyncio.TimerHandle | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        # Steps requested by callers.
        self._received: set[asyncio.Task[None]] = set()
        self._leads_for_others = False
        self.syncing: asyncio.Task[None] | None = None
        # A sync that was running when the log was truncated does not cover later appends.
        self._cuts = 0
        self.failure: Exception | None = None
        self._closed = False

    @property
    def is_leader(self) -> bool:
        return isinstance(self._machine.state, Leader)

    def now_ms(self) -> int:
        """The machine's time, which never goes back."""
        return int(self._clock.monotonic() * 1000)

    async def start(self, saved: ElectionState | None) -> None:
        await self._turn(lambda now_ms: self._machine.start(saved, now_ms))
        if self.syncing is not None:
            await self.syncing
        if self.failure is not None:
            raise self.failure

    async def close(self) -> None:
        """A leader notifies the others, so that they need not wait for a timeout; then it stops."""
        if self.failure is None:
            led = self.is_leader
            with contextlib.suppress(OSError, StorageError, KafkaError):
                await self._turn(self._machine.resign)
            if led and self._tasks:
                await asyncio.wait(set(self._tasks), timeout=_FAREWELL_SECONDS_MAX)
        self._closed = True
        self._stop_timer()
        self._note_leadership()
        self._owner.driver_has_news()
        await end_tasks(self._tasks)
        await asyncio.gather(*self._received, return_exceptions=True)
        if self.syncing is not None:
            await self.syncing
        await self._publishing.close()

    def abandon(self) -> None:
        """Stop at once; work in progress is abandoned."""
        self._closed = True
        self._stop_timer()

    def sync_soon(self) -> None:
        """Something was appended."""
        self._owner.driver_has_news()
        if self.syncing is None:
            self.syncing = asyncio.get_running_loop().create_task(self._sync())

    def fail(self, error: Exception) -> None:
        if self.failure is None:
            self.failure = error
            _logger.error("metadata log failed", error=str(error))
            self._stop_timer()
            self._owner.driver_failed(error)

    @property
    def leadership(self) -> Leadership:
        return self._machine.leadership

    async def receive(self, request: PeerRequest, bytes_max: int) -> Any:
        """The machine's answer, with the bytes that belong in it."""
        found: Any = None

        def decide(now_ms: int) -> list[Effect]:
            nonlocal found
            found, effects = self._machine.receive(request, now_ms)
            return effects

        async def fill() -> None:
            nonlocal found
            log = self._log
            if isinstance(found, FetchResponse) and found.read_from is not None:
                start = found.read_from
                found = found.with_records(
                    await self._executor.run(lambda: log.read_bytes(start, bytes_max))
                )
            elif isinstance(found, FetchSnapshotResponse) and found.snapshot_id is not None:
                piece = (found.snapshot_id, found.position, bytes_max)
                data = await self._executor.run(lambda: log.read_piece(*piece))
                found = replace(found, data=data)

        # The caller may disconnect before it is answered. A step that has begun is completed
        # anyway: otherwise a vote might be reported that is not on disk.
        turn = asyncio.get_running_loop().create_task(self._turn(decide, fill))
        self._received.add(turn)
        turn.add_done_callback(self._over)
        try:
            await asyncio.shield(turn)
        except StorageError as error:
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, str(error)) from error
        return found

    def _over(self, turn: asyncio.Task[None]) -> None:
        self._received.discard(turn)
        if not turn.cancelled():
            turn.exception()  # reported to the caller, if it is still waiting

    async def _turn(
        self,
        decide: Decide,
        fill: Callable[[], Awaitable[None]] | None = None,
    ) -> None:
        """One event: the machine's effects are carried out, then its requests are sent."""
        async with self._turns:
            if self._closed or self.failure is not None:
                raise StorageError("the quorum node is closed")
            try:
                await self._act(decide)
                if fill is not None:
                    await fill()
                await self._act(self._machine.tick)
            except (OSError, StorageError, KafkaError) as error:
                self.fail(error)
                raise
            self._note_leadership()
        self._set_timer()

    async def _act(self, decide: Decide) -> None:
        effects = decide(self.now_ms())
        if not self.is_leader:
            self._note_leadership()
        self._cuts += any(isinstance(each, TruncateTo | InstallSnapshot) for each in effects)
        while effects:
            effect, *effects = effects
            match effect:
                case AdvanceHighWatermark(offset):
                    self._advance(offset)
                case Send():
                    self._send(effect)
                case _:
                    effects = await self._carry_out(effect) + effects

    async def _carry_out(self, effect: Effect) -> list[Effect]:
        if isinstance(effect, AppendFetched | TruncateTo | InstallSnapshot):
            while self.syncing is not None:
                await self.syncing
        try:
            more = await self._acting.carry_out(effect, self._machine)
        except KafkaError as error:
            if not isinstance(effect, AppendFetched) or self._log.is_offline:
                raise
            _logger.warning("records of the leader refused", why=str(error))
            return []
        if isinstance(effect, BeginEpoch | AppendVoters):
            self.sync_soon()
        return more

    def _note_leadership(self) -> None:
        leads = self.is_leader and not self._closed
        if leads != self._leads_for_others:
            self._leads_for_others = leads
            _logger.info("leadership", leads=leads, epoch=self._machine.epoch)
            self._owner.driver_has_news()
            self._owner.driver_leads(leads)

    def _advance(self, high_watermark: int) -> None:
        self._publishing.advance(high_watermark)
        self._owner.driver_has_news()

    def _set_timer(self) -> None:
        self._stop_timer()
        deadline = self._machine.deadline_ms
        if deadline is not None and not self._closed and self.failure is None:
            delay_ms = max(_TIMER_MS_MIN, deadline - self.now_ms())
            loop = asyncio.get_running_loop()
            self._timer = loop.call_later(delay_ms / 1000, self._wake)

    def _wake(self) -> None:
        if not self._closed and self.failure is None:
            self._in_background(lambda: self._turn(lambda _: []))

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _send(self, send: Send) -> None:
        async def ask() -> None:
            response = await self._peers.ask(send.peer, send.request)
            number = send.correlation_id
            await self._turn(lambda now_ms: self._machine.answered(number, response, now_ms))

        self._in_background(ask)

    def _in_background(self, work: Callable[[], Awaitable[None]]) -> None:
        task = asyncio.get_running_loop().create_task(self._guarded(work))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _guarded(self, work: Callable[[], Awaitable[None]]) -> None:
        with contextlib.suppress(OSError, StorageError, KafkaError):  # the owner has been notified
            await work()

    async def _sync(self) -> None:
        log, synced = self._log, -1
        try:
            while self.failure is None and synced != log.end_offset:
                end_offset, cuts = log.end_offset, self._cuts
                await self._executor.run(log.sync)
                synced = end_offset
                if cuts == self._cuts:
                    self._synced(end_offset)
        except Exception as error:  # noqa: BLE001 — after a failed sync nothing is known to be durable
            self.fail(error)
        finally:
            self.syncing = None

    def _synced(self, end_offset: int) -> None:
        for effect in self._machine.log_synced(end_offset, self.now_ms()):
            invariant(isinstance(effect, AdvanceHighWatermark), f"a sync had the effect {effect}")
            self._advance(effect.offset)  # type: ignore[union-attr]
        if not self.is_leader:
            # It was removed as a voter by what it has just committed; or what it wrote as a leader
            # is durable now and can be acknowledged to the next leader.
            self._note_leadership()
            self._wake()
