"""The transaction coordinator of a broker: one machine per led partition of
``__transaction_state``, and the markers that carry out its decisions."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Collection, Coroutine, Sequence
from dataclasses import replace
from typing import Any, Final

from skylog.kernel.clock import Clock
from skylog.kernel.errors import ErrorCode, KafkaError
from skylog.kernel.limits import TRANSACTIONAL_IDS_PER_PASS_MAX
from skylog.kernel.logging import get_logger
from skylog.kernel.waiting import end_tasks
from skylog.replicated.lifecycle import COORDINATOR_REFUSALS, State
from skylog.replicated.log import RuntimeLog
from skylog.replicated.partitioning import partition_of
from skylog.replicated.runtime import MachineKind, Runtime
from skylog.replicated.timers import LoopTimers, Timers
from skylog.transactions.leading import Led
from skylog.transactions.machine import TransactionMachine
from skylog.transactions.markers import RETRY_MS, Decision, LeaderOf, Markers, Partitions
from skylog.transactions.ports import Errors, MarkerSender, TopicPartition
from skylog.transactions.records import TransactionRecordCodec
from skylog.transactions.requests import (
    NEEDS_PRODUCER_ID,
    AbortTimedOut,
    AddPartitions,
    Describe,
    EndTxn,
    ExpireIds,
    FindIds,
    FindPrepared,
    FindTimedOut,
    InitProducerId,
    ListFilter,
    MarkersWritten,
    Outcome,
    TransactionRequest,
    VerifyPartitions,
)
from skylog.transactions.settings import TransactionSettings
from skylog.transactions.state import EPOCH_BUMP, Transaction
from skylog.wire.messages.describe_transactions_response import TransactionState as Described
from skylog.wire.messages.list_transactions_response import TransactionState as Listed

_log = get_logger("transactions.coordinator")
_RELOAD_DELAY_MS: Final = 1_000
# The log's error for a record that is too large must not reach the producer.
_TOO_LARGE: Final = (ErrorCode.MESSAGE_TOO_LARGE, ErrorCode.RECORD_LIST_TOO_LARGE)
Deciding = InitProducerId | EndTxn | AbortTimedOut


class TransactionCoordinator:
    """Finds the machine of a transactional id and answers for it.

    All calls come from the event loop. Errors are returned as codes, not raised.
    """

    def __init__(
        self,
        settings: TransactionSettings,
        clock: Clock,
        version: Callable[[], int],
        new_producer_id: Callable[[], Awaitable[int]],
        leader_of: LeaderOf,
        sender: MarkerSender,
        timers: Timers | None = None,
    ) -> None:
        """``version`` is the level of the feature ``transaction.version``."""
        # The topic's partition count, once it exists; until then, the configured one.
        self.partition_count = settings.topic_partitions
        self._settings = settings
        self._clock = clock
        self._new_producer_id = new_producer_id
        self._timers: Timers = LoopTimers() if timers is None else timers
        self._led: dict[int, Led] = {}
        self._tasks: set[asyncio.Task[Any]] = set()
        self._markers = Markers(self, leader_of, sender, self._timers, self._run)
        self._kind: MachineKind[TransactionRequest] = MachineKind(
            name="transaction coordinator",
            create=lambda: TransactionMachine(settings, version),
            codec=TransactionRecordCodec(),
            refusals=COORDINATOR_REFUSALS,
        )

    # Partitions

    def partition_for(self, transactional_id: str) -> int:
        """The partition of ``__transaction_state`` whose leader coordinates the id."""
        return partition_of(transactional_id, self.partition_count)

    def partition_led(self, index: int, log: RuntimeLog, epoch: int) -> None:
        """This broker now leads the partition: load it, in the background."""
        self.partition_resigned(index)
        led = Led(index, epoch)
        led.runtime = Runtime(
            self._kind,
            log,
            self._clock,
            self._timers,
            on_failure=lambda error: self._reload_later(led, error),
        )
        self._led[index] = led
        self._run(self._load(led))

    def partition_resigned(self, index: int) -> None:
        """This broker no longer leads the partition; its successor continues."""
        led = self._led.pop(index, None)
        if led is not None:
            led.runtime.unload()
            led.forget()

    async def loaded(self) -> None:
        """Wait until nothing is being loaded."""
        while any(led.loading for led in self._led.values()):
            await asyncio.wait(tuple(self._tasks), return_when=asyncio.FIRST_COMPLETED)

    async def close(self) -> None:
        for index in tuple(self._led):
            self.partition_resigned(index)
        # A request for markers may take long; the next leader sends it again.
        await end_tasks(self._tasks)

    @property
    def unfinished_count(self) -> int:
        """Decisions without all markers; may be called from any thread."""
        return sum(len(led.unfinished) for led in tuple(self._led.values()))

    def _start(self, work: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    def _run(self, work: Coroutine[Any, Any, None]) -> None:
        """In the background."""
        self._start(work)

    async def _load(self, led: Led) -> None:
        if self._led.get(led.index) is not led or led.runtime.state is not State.UNLOADED:
            return
        led.loading = True
        led.forget()  # the machine is about to list them all
        try:
            await led.runtime.load()
        except Exception as error:  # noqa: BLE001 - any error: retried
            self._reload_later(led, error)
        else:
            await self._resume(led)
        finally:
            led.loading = False

    def _reload_later(self, led: Led, error: Exception) -> None:
        _log.error("transactions had to be unloaded", partition=led.index, why=str(error))
        self._timers.start(_RELOAD_DELAY_MS, lambda: self._run(self._load(led)))

    async def _resume(self, led: Led) -> None:
        """Carry out earlier decisions."""
        try:
            for decided in await led.runtime.submit(FindPrepared()):
                self._carry_out(led, decided)
        except KafkaError:
            if (
                led.runtime.state is State.ACTIVE
            ):  # otherwise it is loaded again, or by another broker
                self._timers.start(RETRY_MS, lambda: self._run(self._resume(led)))

    # Producers

    async def init_producer_id(
        self, transactional_id: str, timeout_ms: int, expected: tuple[int, int] | None
    ) -> Outcome:
        if not transactional_id:
            return Outcome(ErrorCode.INVALID_REQUEST)
        if not 0 < timeout_ms <= self._settings.timeout_ms_max:
            return Outcome(ErrorCode.INVALID_TRANSACTION_TIMEOUT)
        return await self._decide(InitProducerId(transactional_id, timeout_ms, expected))

    async def end_txn(
        self,
        transactional_id: str,
        producer_id: int,
        producer_epoch: int,
        *,
        commit: bool,
        client_version: int,
    ) -> Outcome:
        if not transactional_id:
            return Outcome(ErrorCode.INVALID_REQUEST)
        return await self._decide(
            EndTxn(transactional_id, producer_id, producer_epoch, commit, client_version)
        )

    async def add_partitions(
        self,
        transactional_id: str,
        producer_id: int,
        producer_epoch: int,
        partitions: Collection[TopicPartition],
        client_version: int,
    ) -> ErrorCode:
        if not transactional_id:
            return ErrorCode.INVALID_REQUEST
        asked = frozenset(partitions)
        request = AddPartitions(
            transactional_id, producer_id, producer_epoch, asked, client_version
        )
        try:
            await self._submit(transactional_id, request)
        except KafkaError as error:
            return _code(error)
        return ErrorCode.NONE

    async def add(
        self,
        transactional_id: str,
        producer_id: int,
        producer_epoch: int,
        partitions: Collection[TopicPartition],
    ) -> Errors:
        """Add partitions that a producer writes to; waits a while for the end of the previous
        transaction, since only its markers can be missing."""
        asked = (transactional_id, producer_id, producer_epoch, partitions, EPOCH_BUMP)
        code = await self.add_partitions(*asked)
        if code is ErrorCode.CONCURRENT_TRANSACTIONS:
            led = self._led.get(self.partition_for(transactional_id))
            unfinished = led.unfinished.get(transactional_id) if led is not None else None
            if unfinished is not None:
                await self._ended(unfinished[1])
            code = await self.add_partitions(*asked)
        return dict.fromkeys(partitions, code)

    async def _ended(self, ended: asyncio.Event) -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(self._settings.add_wait_ms_max / 1000):
                await ended.wait()

    async def verify(
        self,
        transactional_id: str,
        producer_id: int,
        producer_epoch: int,
        partitions: Collection[TopicPartition],
    ) -> Errors:
        if not transactional_id:
            return dict.fromkeys(partitions, ErrorCode.INVALID_REQUEST)
        asked = frozenset(partitions)
        request = VerifyPartitions(transactional_id, producer_id, producer_epoch, asked)
        try:
            missing: Partitions = await self._submit(transactional_id, request)
        except KafkaError as error:
            return dict.fromkeys(partitions, _code(error))
        found = dict.fromkeys(partitions, ErrorCode.NONE)
        return {**found, **dict.fromkeys(missing, ErrorCode.TRANSACTION_ABORTABLE)}

    # Administration

    async def describe(self, transactional_id: str) -> Described:
        if not transactional_id:
            return Described(ErrorCode.INVALID_REQUEST, transactional_id)
        try:
            found: Sequence[Described] = await self._submit(
                transactional_id, Describe((transactional_id,))
            )
        except KafkaError as error:
            return Described(_code(error), transactional_id)
        return found[0]

    async def list_transactions(self, wanted: ListFilter) -> list[Listed]:
        """Of all partitions; raises KafkaError while one is being loaded."""
        found: list[Listed] = []
        for led in tuple(self._led.values()):
            if led.loading:
                raise KafkaError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
            try:
                found += await led.runtime.submit(wanted)
            except KafkaError as error:
                if error.code is not ErrorCode.NOT_COORDINATOR:
                    raise
        return found

    async def abort_timed_out(self) -> None:
        """Abort transactions that have exceeded their time-out."""
        for led in tuple(self._led.values()):
            for found in await self._ask(led, FindTimedOut()):
                request = AbortTimedOut(
                    found.transactional_id, found.producer_id, found.producer_epoch
                )
                outcome = await self._decide(request)
                if outcome.error is not ErrorCode.NONE:
                    _log.warning(
                        "transaction not timed out, tried again",
                        transactional_id=found.transactional_id,
                        error=outcome.error.name,
                    )

    async def expire_ids(self) -> None:
        """Forget expired ids, a few at a time."""
        for led in tuple(self._led.values()):
            known = await self._ask(led, FindIds())
            for at in range(0, len(known), TRANSACTIONAL_IDS_PER_PASS_MAX):
                await self._ask(led, ExpireIds(known[at : at + TRANSACTIONAL_IDS_PER_PASS_MAX]))

    async def _ask(self, led: Led, question: TransactionRequest) -> Any:
        """For passes, which run again: empty if there is no reply now."""
        try:
            return await led.runtime.submit(question)
        except KafkaError:
            return ()

    # Decisions

    async def _decide(self, request: Deciding) -> Outcome:
        """A decision is carried out even if its caller is cancelled meanwhile."""
        outcome: Outcome = await asyncio.shield(self._start(self._decided(request)))
        return outcome

    async def _decided(self, request: Deciding) -> Outcome:
        led = self._led.get(self.partition_for(request.transactional_id))
        if led is None:
            return Outcome(ErrorCode.NOT_COORDINATOR)
        try:
            outcome: Outcome = await led.runtime.submit(request)
            if outcome is NEEDS_PRODUCER_ID:
                new_producer_id = await self._new_producer_id()
                again = replace(request, new_producer_id=new_producer_id)
                outcome = await led.runtime.submit(again)
        except KafkaError as error:
            return Outcome(_code(error))
        if outcome.decided is not None:
            self._carry_out(led, outcome.decided)
        return outcome

    def _carry_out(self, led: Led, decided: Transaction) -> None:
        known = led.unfinished.get(decided.transactional_id)
        if known is not None and replace(known[0], partitions=decided.partitions) == decided:
            return  # the next load finds it again
        led.unfinished[decided.transactional_id] = (decided, asyncio.Event())
        self._markers.deliver(Decision(decided, led.index, led.epoch), decided.partitions)

    def is_current(self, decision: Decision) -> bool:
        return self._leading(decision) is not None

    def _leading(self, decision: Decision) -> Led | None:
        """The partition, if it is still carrying out this decision.

        The remainder of an earlier attempt must not affect the producer's next transaction, whose
        epoch may be the same.
        """
        led = self._led.get(decision.index)
        known = led.unfinished.get(decision.transactional_id) if led is not None else None
        return led if known is not None and known[0] is decision.transaction else None

    def markers_written(self, decision: Decision, partitions: Partitions) -> None:
        self._run(self._written(decision, partitions))

    async def _written(self, decision: Decision, partitions: Partitions) -> None:
        led = self._leading(decision)
        if led is None:
            return
        marked = decision.transaction
        request = MarkersWritten(
            marked.transactional_id, marked.producer_id, marked.producer_epoch, partitions
        )
        try:
            complete = await led.runtime.submit(request)
        except KafkaError:  # it is retried, unless the partition is reloaded
            self._timers.start(RETRY_MS, lambda: self.markers_written(decision, partitions))
            return
        if complete and self.is_current(decision):
            led.end(marked.transactional_id)

    async def _submit(self, transactional_id: str, request: TransactionRequest) -> Any:
        led = self._led.get(self.partition_for(transactional_id))
        if led is None:
            raise KafkaError(ErrorCode.NOT_COORDINATOR)
        return await led.runtime.submit(request)


def _code(error: KafkaError) -> ErrorCode:
    return ErrorCode.UNKNOWN_SERVER_ERROR if error.code in _TOO_LARGE else error.code
