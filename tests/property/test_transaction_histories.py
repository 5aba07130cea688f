"""Whatever producers, partitions, brokers and the log do, a transaction has one outcome.

Producers begin, end and fence each other; requests for markers and their responses are lost; the
high watermark lags; coordinators change and lose what was not committed. Checked are the log (each
step follows from the one before, epochs never decrease, and a decision is followed only by its
completion), the partitions (no marker precedes the commit of its decision or contradicts it) and
the producers (an acknowledged commit is in the log). In the end, when everything works again, every
decision has been carried out.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from functools import partial
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from skylog.kernel.errors import ErrorCode, KafkaError
from skylog.replicated.digest import state_digest
from skylog.transactions.machine import TransactionMachine
from skylog.transactions.records import TransactionRecord, TransactionRecordCodec
from skylog.transactions.settings import TransactionSettings
from skylog.transactions.state import State, Transaction
from tests.unit.transactions.shell_support import TIMEOUT_MS, Marker, Shell, turn

CODEC = TransactionRecordCodec()
IDS = ("a", "b")
PARTITIONS = [("topic", index) for index in range(3)]
REFUSED = (
    ErrorCode.NOT_COORDINATOR,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.CONCURRENT_TRANSACTIONS,
)
# Valid transitions in the log.
NEXT = {
    None: {State.EMPTY},
    State.EMPTY: {State.EMPTY, State.ONGOING, State.PREPARE_ABORT},
    State.ONGOING: {State.ONGOING, State.PREPARE_COMMIT, State.PREPARE_ABORT},
    State.PREPARE_COMMIT: {State.COMPLETE_COMMIT},
    State.PREPARE_ABORT: {State.COMPLETE_ABORT},
    State.COMPLETE_COMMIT: {State.EMPTY, State.ONGOING, State.PREPARE_ABORT},
    State.COMPLETE_ABORT: {State.EMPTY, State.ONGOING, State.PREPARE_ABORT},
}


class World:
    """A coordinator, its log, and all decisions and acknowledgements."""

    def __init__(self, version: int) -> None:
        self.shell = Shell(lagging=True)
        self.shell.version = version
        self.shell.partitions.on_marker = self.marked
        # By the offset of the decision.
        self.marked_partitions: dict[int, set[Any]] = defaultdict(set)
        # Producer id and epoch of transactions whose commit was acknowledged.
        self.told: list[Transaction] = []

    @property
    def log(self) -> Any:
        return self.shell.log

    def records(self, *, committed: bool = False) -> list[Any]:
        pairs = [pair for batch in self.log.batches for pair in batch]
        if committed:
            pairs = pairs[: self.log.high_watermark]
        return [CODEC.decode(*pair) for pair in pairs]

    def marked(self, marker: Marker) -> None:
        """A partition gets a marker: its decision must be committed, and must be this one."""
        at, now = self._latest(marker.producer_id)
        assert now.is_prepared, "a marker for what is not decided, or may still be lost"
        assert now.producer_epoch == marker.epoch
        assert now.commits is marker.commit
        assert marker.partition in now.partitions
        self.marked_partitions[at].add(marker.partition)

    def _latest(self, producer_id: int) -> tuple[int, Transaction]:
        """The latest committed step of this producer's transactional id, and its offset.

        A step may be complete and not committed: its markers may be sent again.
        """
        found = [
            (at, record.transaction)
            for at, record in enumerate(self.records(committed=True))
            if record.transaction.producer_id == producer_id
        ]
        assert found, "a marker for a producer that may still be lost"
        return found[-1]

    def check_log(self) -> None:
        latest: dict[str, Transaction] = {}
        retired: set[int] = set()
        for record in self.records():
            assert isinstance(record, TransactionRecord)
            now = record.transaction
            before = latest.get(now.transactional_id)
            assert now.state in NEXT[before.state if before is not None else None]
            if before is not None:
                self._check_step(before, now, retired)
            latest[now.transactional_id] = now

    def _check_step(self, before: Transaction, now: Transaction, retired: set[int]) -> None:
        assert now.producer_id not in retired
        if now.producer_id == before.producer_id:
            assert now.producer_epoch >= before.producer_epoch
        else:
            retired.add(before.producer_id)
        if now.state is State.EMPTY or (now.is_prepared and now.client_version == 2):
            same = (before.producer_id, before.producer_epoch)
            assert (now.producer_id, now.producer_epoch) > same, "nobody was fenced"
        if before.is_prepared:
            assert not now.partitions
        if now.is_prepared:
            assert now.partitions == before.partitions
        if before.is_open and now.is_open:
            assert now.partitions >= before.partitions

    def check_told(self) -> None:
        """Every acknowledged commit is in the log."""
        decided = {
            (t.transactional_id, t.producer_id, t.producer_epoch, t.state)
            for t in (record.transaction for record in self.records())
            if t.is_prepared
        }
        for heard in self.told:
            assert (
                heard.transactional_id,
                heard.producer_id,
                heard.producer_epoch,
                heard.state,
            ) in decided, "a lost commit"

    def check_finished(self) -> None:
        for at, record in enumerate(self.records()):
            decided = record.transaction
            if decided.is_prepared:
                assert self.marked_partitions[at] >= decided.partitions, "a marker is missing"

    def check_digest(self) -> None:
        led = self.shell.coordinator._led[0]
        machine = led.runtime.machine
        replayed = TransactionMachine(TransactionSettings(), lambda: self.shell.version)
        for offset, record in enumerate(self.records()):
            replayed.apply(record, offset)
        assert machine is not None
        assert state_digest(machine, CODEC) == state_digest(replayed, CODEC)


@dataclass
class Producer:
    """What a client library does, one request at a time."""

    world: World
    transactional_id: str
    version: int
    producer: tuple[int, int] | None = None
    begun: frozenset[Any] = frozenset()
    request: asyncio.Task[None] | None = None

    @property
    def is_busy(self) -> bool:
        return self.request is not None and not self.request.done()

    def act(self, action: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """The next request, unless one is in flight."""
        if not self.is_busy:
            if self.request is not None:
                self.request.result()
            self.request = asyncio.get_running_loop().create_task(action())

    async def begin(self) -> None:
        """The next step towards an open transaction."""
        if self.producer is None:
            await self._init()
        else:
            await self._add(PARTITIONS[len(self.begun) % len(PARTITIONS)])

    async def end(self, commit: bool) -> None:
        if self.producer is not None and self.begun:
            await self._end(commit)

    async def _init(self) -> None:
        outcome = await self.world.shell.coordinator.init_producer_id(
            self.transactional_id, TIMEOUT_MS, None
        )
        if outcome.error is ErrorCode.NONE:
            self.producer, self.begun = (outcome.producer_id, outcome.producer_epoch), frozenset()
        else:
            assert outcome.error in REFUSED, outcome.error

    async def _add(self, partition: Any) -> None:
        assert self.producer is not None
        code = await self.world.shell.coordinator.add_partitions(
            self.transactional_id, *self.producer, [partition], self.version
        )
        if code is ErrorCode.NONE:
            self.begun |= {partition}
        elif code not in REFUSED:
            self._fenced(code)

    async def _end(self, commit: bool) -> None:
        assert self.producer is not None
        producer_id, epoch = self.producer
        outcome = await self.world.shell.coordinator.end_txn(
            self.transactional_id,
            producer_id,
            epoch,
            commit=commit,
            client_version=self.version,
        )
        if outcome.error is not ErrorCode.NONE:
            if outcome.error not in REFUSED:
                self._fenced(outcome.error)
            return
        marker_epoch = epoch
        if self.version == 2:
            marker_epoch = epoch + 1
            self.producer = (outcome.producer_id, outcome.producer_epoch)
        state = State.PREPARE_COMMIT if commit else State.PREPARE_ABORT
        self.world.told.append(
            Transaction(self.transactional_id, producer_id, marker_epoch, state=state)
        )
        self.begun = frozenset()

    def _fenced(self, code: ErrorCode) -> None:
        assert code in (
            ErrorCode.PRODUCER_FENCED,
            ErrorCode.INVALID_TXN_STATE,
            ErrorCode.INVALID_PRODUCER_ID_MAPPING,  # a coordinator lost the id before the response
        ), code
        self.producer, self.begun = None, frozenset()


WHO = st.integers(0, 3)
transactions = st.tuples(st.just("transaction"), WHO, st.booleans(), st.integers(1, 4))
actions = st.one_of(
    transactions,
    transactions,
    transactions,
    st.tuples(st.just("begin"), WHO, st.none(), st.none()),
    st.tuples(st.just("end"), WHO, st.booleans(), st.none()),
    st.tuples(st.just("lag"), st.booleans(), st.none(), st.none()),
    st.tuples(st.just("commit"), st.sampled_from([1, 2, 2**31]), st.none(), st.none()),
    st.tuples(st.just("time"), st.sampled_from([100, 1_000, 61_000]), st.none(), st.none()),
    st.tuples(st.just("time out"), st.none(), st.none(), st.none()),
    st.tuples(st.just("network"), st.sampled_from(["", "request", "response"]), *[st.none()] * 2),
    st.tuples(st.just("refuse"), st.integers(0, 2), st.booleans(), st.none()),
    st.tuples(st.just("stop"), st.booleans(), st.none(), st.none()),
    st.tuples(st.just("break"), st.booleans(), st.none(), st.none()),
    st.tuples(st.just("fail over"), st.none(), st.none(), st.none()),
)


class Schedule:
    """Runs actions against a world."""

    def __init__(self, version: int) -> None:
        self.world = World(version)
        # Two for each id, which fence each other.
        self.producers = [
            Producer(self.world, name, 2 if version == 2 and number else 0)
            for name in IDS
            for number in range(2)
        ]
        self.background: list[asyncio.Task[Any]] = []
        # Whether the high watermark moves only by explicit steps.
        self.is_lagging = False

    async def step(self, action: str, what: Any, flag: Any, number: Any) -> None:
        match action:
            case "transaction":
                await self.transaction(self.producers[what], number, commit=flag)
            case "begin":
                self.producers[what].act(self.producers[what].begin)
            case "end":
                self.producers[what].act(partial(self.producers[what].end, flag))
            case "time":
                self.world.shell.timers.advance(what)
            case "time out":
                task = asyncio.ensure_future(self.world.shell.coordinator.abort_timed_out())
                self.background.append(task)
            case "lag" | "commit" | "break" | "fail over":
                await self.change_log(action, what)
            case _:
                self.change_network(action, what, flag)
        await turn()

    async def change_log(self, action: str, what: Any) -> None:
        log = self.world.log
        match action:
            case "lag":
                self.is_lagging = what
            case "commit":
                log.commit(min(log.high_watermark + what, log.end_offset))
            case "break":
                log.failure = KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, ambiguous=what)
                log.fails_after_write = what
            case _:
                log.failure = None
                await self.world.shell.fail_over()

    def change_network(self, action: str, what: Any, flag: Any) -> None:
        partitions = self.world.shell.partitions
        match action:
            case "network":
                partitions.lost = what
            case "refuse":
                code = ErrorCode.NOT_LEADER_OR_FOLLOWER if flag else ErrorCode.NONE
                partitions.errors[PARTITIONS[what]] = code
            case "stop":
                partitions.open.clear() if what else partitions.open.set()

    async def transaction(self, producer: Producer, count: int, *, commit: bool) -> None:
        """Some steps to begin with, then the end; a log that does not lag answers each."""
        for _ in range(count):
            producer.act(producer.begin)
            await self.answer()
        producer.act(partial(producer.end, commit))
        await self.answer()

    async def answer(self) -> None:
        await turn()
        if not self.is_lagging:
            self.world.log.commit()
            await turn()

    async def heal(self) -> None:
        """Without further faults, every decision is carried out."""
        shell = self.world.shell
        self.world.log.failure = None
        shell.partitions.lost = ""
        shell.partitions.errors.clear()
        shell.partitions.open.set()
        for _ in range(12):
            self.world.log.commit()
            await turn()
            shell.timers.advance(1_000)
            await turn()
        self.world.log.commit()
        await turn()

    async def close(self) -> None:
        await self.world.shell.coordinator.close()
        requests = [one.request for one in self.producers if one.request is not None]
        await asyncio.gather(*requests, *self.background)


async def run(steps: list[tuple[str, Any, Any, Any]], version: int) -> None:
    schedule = Schedule(version)
    world = schedule.world
    await world.shell.lead()
    for step in steps:
        await schedule.step(*step)
    await schedule.heal()
    world.check_log()
    world.check_told()
    world.check_finished()
    world.check_digest()
    assert all(
        world.records()[at].transaction.is_prepared is False
        for at in last_of_each_id(world.records())
    ), "a decision was not carried out"
    await schedule.close()


def last_of_each_id(records: list[Any]) -> list[int]:
    return list({r.transaction.transactional_id: at for at, r in enumerate(records)}.values())


@settings(max_examples=100, deadline=None)
@given(st.lists(actions, min_size=10, max_size=80), st.sampled_from([2, 2, 1]))
def test_a_transaction_has_one_outcome(
    steps: list[tuple[str, Any, Any, Any]], version: int
) -> None:
    asyncio.run(run(steps, version))
