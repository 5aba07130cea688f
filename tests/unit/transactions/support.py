"""A transaction machine without a runtime: the test controls time and producer ids."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from itertools import count
from typing import Any

from skylog.kernel.errors import ErrorCode, KafkaError
from skylog.replicated.digest import state_digest
from skylog.replicated.log import KeyValue
from skylog.transactions.machine import TransactionMachine
from skylog.transactions.records import TransactionRecordCodec
from skylog.transactions.requests import (
    NEEDS_PRODUCER_ID,
    AddPartitions,
    EndTxn,
    InitProducerId,
    MarkersWritten,
    Outcome,
    TransactionRequest,
    VerifyPartitions,
)
from skylog.transactions.settings import TransactionSettings
from skylog.transactions.state import State, Transaction

ID = "transactional"
TIMEOUT_MS = 60_000
A, B = ("topic", 0), ("topic", 1)
CODEC = TransactionRecordCodec()


def fingerprint(machine: TransactionMachine) -> str:
    """A machine's whole state as text."""
    return repr((machine._transactions, sorted(machine._open), sorted(machine._prepared)))


@dataclass
class Bench:
    """Checks for every request that ``handle`` changes nothing, and that the log is complete."""

    version: int = 2
    settings: TransactionSettings = field(default_factory=TransactionSettings)
    now_ms: int = 1_700_000_000_000
    log: list[KeyValue] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.machine = self._new()
        self._ids = count(1000)

    def _new(self) -> TransactionMachine:
        return TransactionMachine(self.settings, lambda: self.version)

    def run(self, request: TransactionRequest) -> Any:
        """The reply; provides producer ids that the machine requests. Raises its errors."""
        reply = self._run(request)
        if reply is NEEDS_PRODUCER_ID:
            again: Any = request
            return self._run(replace(again, new_producer_id=next(self._ids)))
        return reply

    def _run(self, request: TransactionRequest) -> Any:
        before = fingerprint(self.machine)
        try:
            result = self.machine.handle(request, self.now_ms)
        finally:
            assert fingerprint(self.machine) == before
        for record in result.records:
            self.log.append(CODEC.encode(record))
            self.machine.apply(record, len(self.log) - 1)
        for event in result.volatile:
            self.machine.apply(event, -1)
        if isinstance(result.reply, KafkaError):
            raise result.reply
        return result.reply

    def code(self, request: TransactionRequest) -> ErrorCode:
        """The error of a request, raised or in its outcome."""
        try:
            reply = self.run(request)
        except KafkaError as error:
            return error.code
        return reply.error if isinstance(reply, Outcome) else ErrorCode.NONE

    def reload(self) -> None:
        """Another broker takes over."""
        machine = self._new()
        for offset, pair in enumerate(self.log):
            record = CODEC.decode(*pair)
            assert record is not None
            machine.apply(record, offset)
        if not self.machine._prepared:
            assert state_digest(machine, CODEC) == state_digest(self.machine, CODEC)
        self.machine = machine

    # What most tests need

    @property
    def transaction(self) -> Transaction:
        found = self.machine.transaction(ID)
        assert found is not None
        return found

    @property
    def state(self) -> State:
        return self.transaction.state

    @property
    def producer(self) -> tuple[int, int]:
        return self.transaction.producer_id, self.transaction.producer_epoch

    def init(self, expected: tuple[int, int] | None = None) -> Outcome:
        outcome: Outcome = self.run(InitProducerId(ID, TIMEOUT_MS, expected))
        return outcome

    def add(self, *partitions: tuple[str, int], version: int = 2) -> None:
        self.run(AddPartitions(ID, *self.producer, frozenset(partitions), version))

    def missing(self, *partitions: tuple[str, int]) -> Any:
        return self.run(VerifyPartitions(ID, *self.producer, frozenset(partitions)))

    def end(self, *, commit: bool = True, version: int = 2) -> Outcome:
        outcome: Outcome = self.run(EndTxn(ID, *self.producer, commit, version))
        return outcome

    def mark(self, *partitions: tuple[str, int]) -> bool:
        """Markers with the present epoch were written."""
        complete: bool = self.run(MarkersWritten(ID, *self.producer, frozenset(partitions)))
        return complete

    def began(self, *partitions: tuple[str, int], version: int = 2) -> None:
        """A producer with an open transaction."""
        self.init()
        self.add(*(partitions or (A,)), version=version)

    def ended(self, *, commit: bool = True, version: int = 2) -> None:
        """A producer whose first transaction is complete."""
        self.began(version=version)
        self.end(commit=commit, version=version)
        self.mark(A)

    def set_epoch(self, epoch: int) -> None:
        """Move close to the last epoch."""
        self.machine._put(replace(self.transaction, producer_epoch=epoch))
        self.log.append(CODEC.encode(next(iter(self.machine.snapshot()))))
