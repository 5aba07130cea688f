"""Runs a machine over a log: handle → append → apply → high watermark → reply.

``lifecycle.py`` has the table of its states; an ``apply`` that raises unloads the machine, too.

One request runs at a time and none waits for another: many are in flight while the high watermark
lags. Records and then volatile events are applied at once, so a machine that may have applied lost
records is never rolled back, only unloaded and loaded again.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar, cast

from skylog.kernel.clock import Clock
from skylog.kernel.errors import ErrorCode, KafkaError, invariant
from skylog.kernel.limits import RUNTIME_PENDING_REQUESTS_MAX
from skylog.kernel.logging import get_logger
from skylog.log.producers import TransactionEnd
from skylog.replicated.lifecycle import Refusals, State
from skylog.replicated.log import (
    KeyValue,
    LoadedBatch,
    RecordCodec,
    RuntimeLog,
    TransactionalLog,
    Unsubscribe,
)
from skylog.replicated.machine import (
    Answer,
    CancelTimer,
    InTransaction,
    Machine,
    Note,
    Parked,
    Result,
    StartTimer,
    TransactionalRecord,
)
from skylog.replicated.pending import Pending, Waiter
from skylog.replicated.timers import Timer, Timers

_logger = get_logger("replicated.runtime")
RequestT = TypeVar("RequestT")
# The log refuses these records: the machine has not changed and continues.
_REFUSED_RECORDS = frozenset(
    {
        ErrorCode.MESSAGE_TOO_LARGE,
        ErrorCode.RECORD_LIST_TOO_LARGE,
        ErrorCode.INVALID_PRODUCER_EPOCH,
        ErrorCode.INVALID_TXN_STATE,
        ErrorCode.TRANSACTION_COORDINATOR_FENCED,
    }
)


@dataclass(frozen=True, slots=True)
class MachineKind(Generic[RequestT]):
    """What the runtime must know about a kind of machine."""

    name: str
    create: Callable[[], Machine[RequestT]]
    codec: RecordCodec
    refusals: Refusals
    # Handled first after each load: starts timers, drops what is no longer valid.
    loaded_request: RequestT | None = None
    pending_requests_max: int = RUNTIME_PENDING_REQUESTS_MAX
    # Longest wait for the high watermark; 0 means no limit.
    write_timeout_ms: int = 0


class Runtime(Generic[RequestT]):
    """One machine on the leader of its log. All calls come from the event loop."""

    def __init__(
        self,
        kind: MachineKind[RequestT],
        log: RuntimeLog,
        clock: Clock,
        timers: Timers,
        on_failure: Callable[[Exception], None],
    ) -> None:
        """``on_failure`` is called when a machine had to be unloaded; its owner may load it
        again."""
        self._kind = kind
        self._log = log
        self._clock = clock
        self._timers = timers
        self._on_failure = on_failure
        self._notes = get_logger(kind.name)
        self._state = State.UNLOADED
        self._machine: Machine[RequestT] | None = None
        self._pending = Pending()
        self._running_timers: dict[Any, Timer] = {}
        self._overdue: Timer | None = None
        self._unsubscribe: Unsubscribe | None = None
        # Incremented by each load and unload; a load that finds it changed stops.
        self._life = 0

    @property
    def state(self) -> State:
        return self._state

    @property
    def machine(self) -> Machine[RequestT] | None:
        """The machine, read-only; its state may not be committed yet."""
        return self._machine

    @property
    def pending_count(self) -> int:
        return len(self._pending)

    async def submit(self, request: RequestT) -> Any:
        """Handle ``request`` and return its reply once nothing that it shows can be lost."""
        if self._state is not State.ACTIVE:
            raise self._kind.refusals.not_active(self._state)
        if len(self._pending) >= self._kind.pending_requests_max:
            raise KafkaError(self._kind.refusals.overloaded, "Too many requests are waiting.")
        waiter = Waiter(asyncio.get_running_loop().create_future())
        parked = self._execute(request, waiter)
        try:
            return await waiter.future
        except asyncio.CancelledError:
            if parked is not None:
                self._pending.forget(parked.key, waiter)
            raise

    async def load(self) -> None:
        """Build the machine from the log. If the log raises, it stays unloaded."""
        invariant(self._state is State.UNLOADED, f"{self._kind.name} is {self._state.value}")
        self._life += 1
        life = self._life
        self._state = State.LOADING
        machine = self._kind.create()
        try:
            async for batch in self._log.read_all():
                if life != self._life:
                    return
                self._replay(machine, batch)
        except BaseException:
            if life == self._life:
                self._state = State.UNLOADED
            raise
        if life != self._life:
            return
        self._machine = machine
        self._state = State.ACTIVE
        self._unsubscribe = self._log.on_high_watermark(self._pending.release)
        if self._kind.loaded_request is not None:
            self._execute(self._kind.loaded_request, None)

    def unload(self) -> None:
        """Unload the machine, for example because leadership is lost; every caller gets an
        error."""
        self._life += 1
        self._state = State.UNLOADED
        self._machine = None
        if self._unsubscribe is not None:
            self._unsubscribe()
            self._unsubscribe = None
        for timer in self._running_timers.values():
            timer.cancel()
        self._running_timers.clear()
        if self._overdue is not None:
            self._overdue.cancel()
            self._overdue = None
        self._pending.fail_all(self._kind.refusals)

    async def snapshot_if_due(self) -> bool:
        """Write a snapshot of the current state, once all of it is committed."""
        if self._machine is None or not self._log.snapshot_due(self._clock.now_ms()):
            return False
        end_offset = self._log.end_offset
        if end_offset == 0:
            return False
        records = [self._kind.codec.encode(record) for record in self._machine.snapshot()]
        waiter = Waiter(asyncio.get_running_loop().create_future())
        self._reply_at(end_offset, waiter, None)
        await waiter.future
        await self._log.write_snapshot(end_offset, records)
        return True

    async def snapshot_standby_if_due(self) -> bool:
        """Write a snapshot of the committed state, on a node that is not the leader.

        Its log grows like the leader's. The state is built only for this, which is rare.
        """
        end_offset = self._log.high_watermark
        if self._state is not State.UNLOADED or not self._log.snapshot_due(self._clock.now_ms()):
            return False
        machine = self._kind.create()
        async for batch in self._log.read_all():
            # Another snapshot may have arrived from the leader meanwhile; then this one is not
            # needed.
            if batch.offset_of(len(batch.records)) > end_offset:
                break
            self._replay(machine, batch)
        records = [self._kind.codec.encode(record) for record in machine.snapshot()]
        await self._log.write_snapshot(end_offset, records)
        return True

    def _replay(self, machine: Machine[RequestT], batch: LoadedBatch) -> None:
        decode = self._kind.codec.decode
        transaction = batch.transaction
        if isinstance(transaction, TransactionEnd):
            machine.apply(transaction, batch.base_offset)
        for index, (key, value) in enumerate(batch.records):
            record = decode(key, value)
            if record is not None:
                machine.apply(_as_applied(record, transaction), batch.offset_of(index))

    def _execute(self, request: RequestT, waiter: Waiter | None) -> Parked | None:
        """One request, from ``handle`` to its place in the queue; a timer's has no ``waiter``."""
        invariant(self._machine is not None, f"{self._kind.name} is not loaded")
        result, encoded = self._handle(request)
        appends = result.records or result.transaction is not None
        if appends and not self._append(encoded, result.transaction, waiter):
            return None
        if not self._apply(result, waiter):
            return None
        return self._reply(result, waiter)

    def _handle(self, request: RequestT) -> tuple[Result[Any], Sequence[KeyValue]]:
        """A request whose handling fails is refused: nothing has changed yet."""
        machine = self._machine
        try:
            result = machine.handle(request, self._clock.now_ms())  # type: ignore[union-attr]
            return result, [self._kind.codec.encode(record) for record in result.records]
        except KafkaError as error:
            return Result(reply=error), ()
        except Exception:
            name = type(request).__name__
            _logger.exception("request not handled", machine=self._kind.name, request=name)
            return Result(reply=KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR)), ()

    def _append(
        self,
        encoded: Sequence[KeyValue],
        transaction: InTransaction | TransactionEnd | None,
        waiter: Waiter | None,
    ) -> bool:
        try:
            self._write(encoded, transaction)
        except KafkaError as error:
            if error.code in _REFUSED_RECORDS and not error.ambiguous:
                if waiter is None:
                    _logger.error("records refused", machine=self._kind.name, why=str(error))
                self._reply_at(self._log.end_offset, waiter, error)
            elif error.code is ErrorCode.NOT_ENOUGH_REPLICAS and waiter is not None:
                # Nothing has changed; the client retries, and reads still work.
                refusal = KafkaError(self._kind.refusals.unknown, error.message)
                self._reply_at(self._log.end_offset, waiter, refusal)
            else:
                self._fail(error, waiter, appended=error.ambiguous)
            return False
        except Exception as error:
            _logger.exception("records not appended", machine=self._kind.name)
            self._fail(error, waiter, appended=True)
            return False
        if waiter is not None:
            waiter.appended = True
        return True

    def _write(
        self, encoded: Sequence[KeyValue], transaction: InTransaction | TransactionEnd | None
    ) -> None:
        if transaction is None:
            self._log.append(encoded)
            return
        log = cast("TransactionalLog", self._log)  # only such a log's machine has these results
        if isinstance(transaction, TransactionEnd):
            log.end_transaction(transaction)
        elif encoded:
            log.append_in_transaction(encoded, transaction)

    def _apply(self, result: Result[Any], waiter: Waiter | None) -> bool:
        machine = self._machine
        invariant(machine is not None, f"{self._kind.name} was unloaded by its own append")
        offset = self._log.end_offset - len(result.records)
        transaction = result.transaction
        try:
            if isinstance(transaction, TransactionEnd):
                machine.apply(transaction, offset - 1)  # type: ignore[union-attr]
            for index, record in enumerate(result.records):
                applied = _as_applied(record, transaction)
                machine.apply(applied, offset + index)  # type: ignore[union-attr]
            for event in result.volatile:
                machine.apply(event, -1)  # type: ignore[union-attr]
        except Exception as error:
            _logger.exception("records not applied", machine=self._kind.name)
            self._fail(error, waiter, appended=bool(result.records))
            return False
        return True

    def _reply(self, result: Result[Any], waiter: Waiter | None) -> Parked | None:
        end_offset, now = self._log.end_offset, self._clock.monotonic()
        parked = result.reply if isinstance(result.reply, Parked) else None
        if waiter is not None:
            if parked is not None:
                self._pending.park(parked.key, waiter)
            else:
                self._pending.add(end_offset, waiter, result.reply, now)
        for effect in result.effects:
            match effect:
                case StartTimer():
                    self._start_timer(effect)
                case CancelTimer(key):
                    self._cancel_timer(key)
                case Answer(key, reply):
                    self._pending.answer(key, end_offset, reply, now)
                case Note(message, warning):
                    tell = self._notes.warning if warning else self._notes.info
                    tell(message)
        self._release()
        return parked

    def _reply_at(self, end_offset: int, waiter: Waiter | None, outcome: Any) -> None:
        if waiter is not None:
            self._pending.add(end_offset, waiter, outcome, self._clock.monotonic())
        self._release()

    def _release(self) -> None:
        """Send committed replies, and check for overdue ones."""
        self._pending.release(self._log.high_watermark)
        timeout_ms = self._kind.write_timeout_ms
        if timeout_ms and self._overdue is None and self._pending.oldest is not None:
            self._overdue = self._timers.start(timeout_ms, self._expire)

    def _expire(self) -> None:
        self._overdue = None
        timeout_ms, now = self._kind.write_timeout_ms, self._clock.monotonic()
        self._pending.expire(now - timeout_ms / 1000, self._kind.refusals.unknown)
        oldest = self._pending.oldest
        if oldest is not None:
            left_ms = math.ceil((oldest - now) * 1000) + timeout_ms
            self._overdue = self._timers.start(left_ms, self._expire)

    def _fail(self, error: Exception, waiter: Waiter | None, *, appended: bool) -> None:
        if waiter is not None:
            waiter.appended = appended
            self._pending.add(self._log.end_offset, waiter, None, self._clock.monotonic())
        self.unload()
        self._on_failure(error)

    def _start_timer(self, effect: StartTimer) -> None:
        self._cancel_timer(effect.key)

        def fire() -> None:
            self._running_timers.pop(effect.key, None)
            self._execute(effect.request, None)

        self._running_timers[effect.key] = self._timers.start(effect.delay_ms, fire)

    def _cancel_timer(self, key: Any) -> None:
        timer = self._running_timers.pop(key, None)
        if timer is not None:
            timer.cancel()


def _as_applied(record: Any, transaction: InTransaction | TransactionEnd | None) -> Any:
    if isinstance(transaction, InTransaction):
        return TransactionalRecord(transaction.producer_id, record)
    return record
