"""Runs a coordinator over its log: handle → append → high watermark → apply → reply.

Its states (``replicated/lifecycle.py``) and its waiting callers are those of every machine; ADR 15
says why it has its own runtime. It is also unloaded if a sync or its cache fails.

The event loop appends and replies; the machine and its cache are used in turns, short ones on the
event loop, the others on a thread. Writes do not wait for one another: while some wait for the high
watermark, the next ones are handled on top of them. A reply is sent once the high watermark has
passed everything it depends on; the cache applies that before it answers a later request.
"""

from __future__ import annotations

import asyncio
import sqlite3
from collections import deque
from collections.abc import Callable, Coroutine
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from itertools import islice, takewhile
from typing import Any, TypeVar

from skylog.diskless.coordinator.checkpoints import Checkpoints
from skylog.diskless.coordinator.following import Following
from skylog.diskless.coordinator.gathering import Gathering
from skylog.diskless.coordinator.log import CoordinatorLog
from skylog.diskless.coordinator.machine import CoordinatorMachine
from skylog.diskless.coordinator.replica import Replica
from skylog.diskless.coordinator.requests import (
    Find,
    FindBatches,
    ForgetFiles,
    ListOffsets,
    StrictRead,
    Write,
)
from skylog.diskless.coordinator.settings import RuntimeSettings
from skylog.diskless.coordinator.snapshot_records import snapshot_records
from skylog.diskless.coordinator.snapshots import KEPT, Snapshots
from skylog.diskless.coordinator.state import StateView
from skylog.diskless.coordinator.tail import NotInTail
from skylog.diskless.coordinator.turn import Handled, PendingBatch, Turn
from skylog.diskless.plane import TopicPartition
from skylog.kernel.clock import Clock
from skylog.kernel.errors import ErrorCode, KafkaError, StorageError, invariant
from skylog.kernel.limits import (
    DISKLESS_PENDING_REQUESTS_MAX,
    DISKLESS_REQUESTS_PER_TURN_MAX,
)
from skylog.kernel.logging import get_logger
from skylog.kernel.stages import Stage
from skylog.quorum.snapshots import SnapshotId
from skylog.replicated.lifecycle import DISKLESS_REFUSALS, State
from skylog.replicated.pending import Pending, Waiter

_log = get_logger("diskless.coordinator")
T = TypeVar("T")


@dataclass(slots=True, eq=False)
class _Asked(Waiter):
    """A caller whose request is queued until its turn is over."""

    request: Any = None
    # For a strict read: how much of the log the cache must contain before it is answered.
    end_offset: int = 0


class CoordinatorRuntime:
    """One coordinator on the leader of its log. All calls come from the event loop."""

    def __init__(
        self,
        replica: Replica,
        log: CoordinatorLog,
        settings: RuntimeSettings,
        clock: Clock,
        snapshot_stage: Stage,
        moved: Callable[[TopicPartition, int], None],
        failed: Callable[[Exception], None],
    ) -> None:
        """``moved`` is called with high watermarks, ``failed`` when the coordinator had to be
        unloaded; its owner may load it again."""
        self.coordinator_id = replica.coordinator_id
        self._replica = replica
        self._log = log
        self._settings = settings
        self._clock = clock
        self._snapshot_stage = snapshot_stage
        self._failed = failed
        self._state = State.UNLOADED
        self._machine: CoordinatorMachine | None = None
        self._applied = 0
        self._following = Following(moved)
        # Callers stay queued until their turn is over.
        self._finds: deque[_Asked] = deque()
        self._requests: deque[_Asked] = deque()
        self._reads: deque[_Asked] = deque()
        self._replies = Pending()
        self._batches: deque[PendingBatch] = deque()
        self._wakeup = asyncio.Event()
        self._gathering = Gathering(self._wakeup.set)
        self._tasks: set[asyncio.Task[Any]] = set()
        self._bytes_since_snapshot = 0
        self._snapshot_task: asyncio.Task[Any] | None = None
        self._checkpoints = Checkpoints(replica.coordinator_id, replica.background)
        # Each load and unload starts a new life; work of an older one has no effect.
        self._life = 0

    @property
    def state(self) -> State:
        return self._state

    @property
    def applied_offset(self) -> int:
        return self._applied

    @property
    def log(self) -> CoordinatorLog:
        return self._log

    @property
    def machine(self) -> CoordinatorMachine | None:
        """For inspection while nothing runs."""
        return self._machine

    # Requests

    async def submit(self, request: Write | StrictRead) -> Any:
        """The reply, once nothing it depends on can be lost; a read sees all earlier writes."""
        if not isinstance(request, StrictRead):
            self._log.require_in_sync()
        elif isinstance(request, ListOffsets) and self._has_followed_all:
            with suppress(NotInTail):
                return self._following.list_offsets(request)
        return await self._enqueue(self._requests, request)

    @property
    def _has_followed_all(self) -> bool:
        """Whether the tail can answer everything requested."""
        followed = self._following.end_offset >= self._log.end_offset
        return followed and not self._requests and self._state is State.ACTIVE

    async def find(self, request: Find | ForgetFiles) -> Any:
        """A result from committed state, at once; a client that knows of a commit finds it."""
        followed = self._following.end_offset >= self._log.high_watermark
        if followed and self._state is State.ACTIVE and isinstance(request, FindBatches):
            with suppress(NotInTail):
                return self._following.find(request)
        return await self._enqueue(self._finds, request)

    async def caught_up(self) -> None:
        """Wait until the cache contains everything that is committed now."""
        await self.find(ForgetFiles(()))

    async def look(self, read: Callable[[StateView, Snapshots], T]) -> T:
        """Read committed state in the background, on a thread other than the coordinator's own."""
        await self.caught_up()
        machine, snapshots = self._machine, self._replica.snapshots
        if machine is None:
            raise DISKLESS_REFUSALS.not_active(self._state)

        def work() -> T:
            with machine.state.snapshot_view() as view:
                return read(view, snapshots)

        task: asyncio.Task[T] = self._start(self._replica.background.run(work))
        try:
            return await asyncio.shield(task)
        except (OSError, sqlite3.Error) as error:  # it was unloaded, and its files may be gone
            raise KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE, str(error)) from error

    async def _enqueue(self, line: deque[_Asked], request: Any) -> Any:
        if self._state is not State.ACTIVE:
            raise DISKLESS_REFUSALS.not_active(self._state)
        if len(line) + len(self._replies) >= DISKLESS_PENDING_REQUESTS_MAX:
            raise KafkaError(DISKLESS_REFUSALS.overloaded, "Too many requests are waiting.")
        waiter = _Asked(asyncio.get_running_loop().create_future(), request=request)
        line.append(waiter)
        self._wakeup.set()
        return await waiter.future

    # Life

    async def load(self) -> None:
        """Build the state; if that raises, the coordinator stays unloaded."""
        invariant(self._state is State.UNLOADED, f"coordinator is {self._state.value}")
        self._life += 1
        life = self._life
        self._state = State.LOADING
        try:
            machine = await self._load(life)
        except BaseException:
            if life == self._life:
                self.unload()
            raise
        if machine is None or life != self._life:
            if machine is not None:
                await self._replica.thread.run(machine.state.close)
            return
        self._machine = machine
        self._applied = machine.state.applied.end_offset
        self._following.begin(self._applied)
        self._bytes_since_snapshot = self._log.size
        self._state = State.ACTIVE
        self._start(self._work(life, machine))

    async def _load(self, life: int) -> CoordinatorMachine | None:
        log = self._log
        await log.open(self._committed, self._fail)
        while log.high_watermark < log.end_offset:
            if life != self._life:
                return None
            self._wakeup.clear()
            await self._wakeup.wait()

        return await self._replica.load(log, self._settings.rules)

    def unload(self) -> None:
        """Unload the coordinator, for example because leadership is lost; every caller gets an
        error."""
        self._life += 1
        self._state = State.UNLOADED
        self._machine = None
        self._following.begin(0)
        self._log.close()
        self._batches.clear()
        self._gathering.begin()
        self._wakeup.set()
        for line in (self._finds, self._requests, self._reads):
            while line:
                waiter = line.popleft()
                waiter.settle(DISKLESS_REFUSALS.unloaded(appended=waiter.appended))
        self._replies.fail_all(DISKLESS_REFUSALS)

    async def closed(self) -> None:
        """After ``unload``: wait until it no longer uses its threads and its log."""
        while self._tasks:
            await asyncio.wait(tuple(self._tasks))
        await self._log.settled()

    def _start(self, work: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    def _fail(self, error: Exception) -> None:
        _log.error("coordinator failed", coordinator=self.coordinator_id, why=str(error))
        if self._state is State.ACTIVE:
            self.unload()
            self._failed(error)

    # Turns

    async def _work(self, life: int, machine: CoordinatorMachine) -> None:
        run = self._replica.thread.run
        failure = None
        try:
            while life == self._life:
                await self._checkpoints.between_turns(machine.state, self._replica.thread)
                turn = self._next_turn()
                if turn.idle:
                    self._wakeup.clear()
                    await self._wakeup.wait()
                    continue
                if turn.is_short(machine):
                    turn.run(machine)
                else:
                    await run(partial(turn.run, machine))
                if life == self._life:
                    self._finish(turn, machine)
                await asyncio.sleep(0)  # let other tasks run
        except Exception as error:  # noqa: BLE001 - any error: the cache is in doubt
            failure = error
        if self._snapshot_task is not None:
            await asyncio.wait({self._snapshot_task})
        await self._checkpoints.settled()
        await run(machine.state.close)  # no other thread has it open now
        if failure is not None:
            await run(self._replica.factory.drop)
            if life == self._life:
                self._fail(failure)

    def _next_turn(self) -> Turn:
        high_watermark = self._log.high_watermark
        committed = list(takewhile(lambda b: b.end_offset <= high_watermark, self._batches))
        applied = committed[-1].end_offset if committed else self._applied
        turn = Turn(
            [waiter.request for waiter in self._finds],
            committed,
            [w.request for w in takewhile(lambda w: w.end_offset <= applied, self._reads)],
            [w.request for w in islice(self._requests, DISKLESS_REQUESTS_PER_TURN_MAX)],
            self._log.end_offset,
            self._clock.now_ms(),
            self._settings.batch_bytes_max,
            self._following.end_offset,
        )
        self._gathering.leave(turn)
        return turn

    def _finish(self, turn: Turn, machine: CoordinatorMachine) -> None:
        for line, outcomes in ((self._finds, turn.found), (self._reads, turn.read)):
            for outcome in outcomes:
                line.popleft().settle(outcome)
        for batch in turn.committed:
            self._applied = batch.end_offset
            self._bytes_since_snapshot += len(batch.encoded)
            self._batches.popleft()
        if turn.committed:
            self._gathering.begin()
        self._following.turn(turn)
        for handled in turn.handled:
            if not self._proceed(self._requests.popleft(), handled, turn.now_ms):
                return
        self._committed()
        self._snapshot_if_due()
        self._checkpoints.turn_is_over(machine.state, changed=bool(turn.committed))

    def _committed(self) -> None:
        self._wakeup.set()
        high_watermark = self._log.high_watermark
        self._replies.release(high_watermark)
        self._following.commits(self._batches, high_watermark)

    def _proceed(self, waiter: _Asked, handled: Handled, now_ms: int) -> bool:
        """Append the decision and wait for it. False: the coordinator was unloaded."""
        waiter.appended = handled.joined
        if handled.batch is None:
            self._wait(waiter, handled)
            return True
        try:
            end_offset = self._log.append(handled.batch.encoded, now_ms)
            waiter.appended = True
            if end_offset != handled.end_offset:
                raise StorageError(f"the log ends at {end_offset}, not at {handled.end_offset}")
        except Exception as error:  # noqa: BLE001 - later writes depend on it
            known = isinstance(error, KafkaError) and not error.ambiguous
            waiter.appended = waiter.appended or not known
            self._wait(waiter, handled)
            self._fail(error)
            return False
        # Not earlier: the append itself may have moved the high watermark.
        self._wait(waiter, handled)
        self._batches.append(handled.batch)
        return True

    def _wait(self, waiter: _Asked, handled: Handled) -> None:
        if handled.wait:
            waiter.end_offset = handled.end_offset
            self._reads.append(waiter)
        else:
            self._replies.add(handled.end_offset, waiter, handled.reply)

    # Snapshots

    def _snapshot_if_due(self) -> None:
        due = self._bytes_since_snapshot >= self._settings.snapshot_bytes
        if due and self._snapshot_task is None:
            self._bytes_since_snapshot = 0
            self._snapshot_task = self._start(self._take_snapshot())

    async def _take_snapshot(self) -> None:
        try:
            with self._snapshot_stage.run():
                await self._write_snapshot()
        except (KafkaError, StorageError, OSError) as error:
            _log.error("snapshot failed", coordinator=self.coordinator_id, why=str(error))
        finally:
            self._snapshot_task = None

    async def snapshot(self) -> SnapshotId:
        """Write the committed state to a file in the background, then truncate the start of the
        log."""
        await self.caught_up()
        return await self._write_snapshot()

    async def _write_snapshot(self) -> SnapshotId:
        """From the cache's state: it must not wait for turns, which may wait for it."""
        machine, life = self._machine, self._life
        if machine is None:
            raise KafkaError(ErrorCode.NOT_COORDINATOR)
        epoch, snapshots = self._log.leader_epoch, self._replica.snapshots

        def write() -> list[SnapshotId]:
            with machine.state.snapshot_view() as view:
                applied = view.applied
                number = SnapshotId(applied.end_offset, epoch)
                known = snapshots.ids()
                if number not in known:
                    snapshots.write(number, snapshot_records(view), applied.timestamp_ms)
            return snapshots.ids()

        numbers = await self._replica.background.run(write)
        if life == self._life and len(numbers) >= KEPT:
            self._log.prune(numbers[-KEPT].offset)
            for old in numbers[:-KEPT]:
                await self._replica.background.run(partial(snapshots.remove, old))
        return numbers[-1]
