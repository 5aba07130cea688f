"""A register machine and a log with a slow high watermark, for tests of the runtime."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from skylog.kernel.clock import ManualClock
from skylog.kernel.errors import ErrorCode, KafkaError
from skylog.replicated.lifecycle import COORDINATOR_REFUSALS
from skylog.replicated.log import KeyValue, LoadedBatch, Unsubscribe
from skylog.replicated.machine import Answer, CancelTimer, Parked, Result, StartTimer
from skylog.replicated.runtime import MachineKind, Runtime
from skylog.replicated.timers import Timer


@dataclass(frozen=True, slots=True)
class Add:
    """Append ``parts`` records that together add ``amount``; replies with the new sum."""

    amount: int
    parts: int = 1


@dataclass(frozen=True, slots=True)
class Read:
    pass


@dataclass(frozen=True, slots=True)
class Await:
    """Park until ``Wake``; with ``amount`` it appends first."""

    key: str
    amount: int = 0


@dataclass(frozen=True, slots=True)
class Wake:
    key: str


@dataclass(frozen=True, slots=True)
class Note:
    """A volatile event: changes state that is in no snapshot."""

    amount: int


@dataclass(frozen=True, slots=True)
class AddLater:
    key: str
    amount: int
    delay_ms: int


@dataclass(frozen=True, slots=True)
class Never:
    key: str


class Broken:
    """A request that makes the machine fail."""


class Register:
    """A sum and the offset of its last change."""

    def __init__(self) -> None:
        self.total = 0
        self.last_offset = -1
        self.noted = 0

    def handle(self, request: Any, now_ms: int) -> Result[Any]:
        match request:
            case Add(amount, parts):
                shares = [amount // parts] * (parts - 1)
                shares.append(amount - sum(shares))
                return Result(self.total + amount, records=shares)
            case Read():
                return Result((self.total, self.noted))
            case Await(key, amount):
                return Result(Parked(key), records=[amount] if amount else ())
            case Wake(key):
                return Result(None, effects=[Answer(key, self.total)])
            case Note(amount):
                return Result(None, volatile=[("note", amount)])
            case AddLater(key, amount, delay_ms):
                return Result(None, effects=[StartTimer(key, delay_ms, Add(amount))])
            case Never(key):
                return Result(None, effects=[CancelTimer(key)])
        raise TypeError(request)

    def apply(self, record: Any, offset: int) -> None:
        if offset < 0:
            self.noted += record[1]
        else:
            self.total += record
            self.last_offset = offset

    def snapshot(self) -> Iterable[Any]:
        return [self.total]


class IntCodec:
    def encode(self, record: int) -> KeyValue:
        return None, str(record).encode()

    def decode(self, key: bytes | None, value: bytes | None) -> int | None:
        return None if value is None else int(value)


class LaggingLog:
    """A log in memory whose high watermark and failures the test controls."""

    def __init__(self) -> None:
        self.batches: list[list[KeyValue]] = []
        self.end_offset = 0
        self.high_watermark = 0
        self.failure: Exception | None = None
        self.fails_after_write = False
        self.snapshot: tuple[int, list[KeyValue]] | None = None
        self.snapshot_wanted = False
        self._listeners: list[Callable[[int], None]] = []

    def append(self, records: Sequence[KeyValue]) -> int:
        failure, self.failure = self.failure, None
        if failure is None or self.fails_after_write:
            self.batches.append(list(records))
            self.end_offset += len(records)
        if failure is not None:
            raise failure
        return self.end_offset

    def commit(self, offset: int | None = None) -> None:
        self.high_watermark = self.end_offset if offset is None else offset
        for listener in list(self._listeners):
            listener(self.high_watermark)

    def lose_tail(self) -> None:
        """As after another leader: the uncommitted tail is lost."""
        kept: list[list[KeyValue]] = []
        end = 0
        for batch in self.batches:
            if end + len(batch) > self.high_watermark:
                break
            kept.append(batch)
            end += len(batch)
        self.batches, self.end_offset = kept, end
        self.high_watermark = min(self.high_watermark, end)

    def on_high_watermark(self, listener: Callable[[int], None]) -> Unsubscribe:
        self._listeners.append(listener)
        return lambda: self._listeners.remove(listener)

    async def read_all(self) -> AsyncIterator[LoadedBatch]:
        start = 0
        if self.snapshot is not None:
            start, records = self.snapshot
            yield LoadedBatch(start - 1, records, from_snapshot=True)
        offset = 0
        for batch in list(self.batches):
            if offset >= start:
                yield LoadedBatch(offset, batch)
            offset += len(batch)

    def snapshot_due(self, now_ms: int) -> bool:
        return self.snapshot_wanted

    async def write_snapshot(self, end_offset: int, records: Sequence[KeyValue]) -> None:
        assert end_offset <= self.high_watermark
        self.snapshot = end_offset, list(records)


class ManualTimers:
    """Timers that fire when the test says so."""

    @dataclass(slots=True, eq=False)
    class _Timer:
        at_ms: int
        action: Callable[[], None]
        cancelled: bool = False

        def cancel(self) -> None:
            self.cancelled = True

    def __init__(self, clock: ManualClock) -> None:
        self._clock = clock
        self._timers: list[ManualTimers._Timer] = []

    def start(self, delay_ms: int, action: Callable[[], None]) -> Timer:
        timer = self._Timer(self._clock.now_ms() + delay_ms, action)
        self._timers.append(timer)
        return timer

    def advance(self, ms: int) -> None:
        self._clock.advance(ms)
        due = [timer for timer in self._timers if timer.at_ms <= self._clock.now_ms()]
        self._timers = [timer for timer in self._timers if timer not in due]
        for timer in due:
            if not timer.cancelled:
                timer.action()


@dataclass
class Bench:
    """A runtime whose environment the test controls."""

    pending_max: int = 1000
    write_timeout_ms: int = 0
    log: LaggingLog = field(default_factory=LaggingLog)
    failures: list[Exception] = field(default_factory=list)
    clock: ManualClock = field(default_factory=ManualClock)

    def __post_init__(self) -> None:
        self.timers = ManualTimers(self.clock)
        kind: MachineKind[Any] = MachineKind(
            name="register",
            create=Register,
            codec=IntCodec(),
            refusals=COORDINATOR_REFUSALS,
            pending_requests_max=self.pending_max,
            write_timeout_ms=self.write_timeout_ms,
        )
        self.runtime: Runtime[Any] = Runtime(
            kind, self.log, self.clock, self.timers, self.failures.append
        )

    @property
    def register(self) -> Register:
        machine = self.runtime.machine
        assert isinstance(machine, Register)
        return machine


NOT_LEADER = KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER)
