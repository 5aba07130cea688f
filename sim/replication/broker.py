"""One broker: the real partition over a log in memory, and a fetcher without sockets."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from sim.replication.controller import Metadata
from sim.replication.log import SimBatch, SimLog, remote_segment
from skylog.kernel.errors import ErrorCode, KafkaError
from skylog.kernel.ids import ZERO_UUID
from skylog.log.config import LogConfig
from skylog.log.fetched import FetchedBatches
from skylog.replication.follower import EpochEnd, FetchState, out_of_range, truncation_offset
from skylog.replication.leader import IsrAnswer, IsrChange, Membership, find_divergence
from skylog.replication.partition import Partition
from skylog.replication.tier_state import (
    LeaderOffset,
    earlier_epoch,
    is_ahead,
    lacks_history,
    target_epoch,
)

if TYPE_CHECKING:
    from sim.replication.world import World

LAG_MS: Final = 60
FETCH_TIMEOUT_MS: Final = 50
ISR_TIMEOUT_MS: Final = 40


@dataclass(frozen=True, slots=True)
class Fetch:
    replica: int
    broker_epoch: int
    leader_epoch: int
    offset: int
    last_epoch: int
    start_offset: int
    # It asks where to continue behind the remote log, instead of records.
    rebuilds: bool = False


@dataclass(frozen=True, slots=True)
class Fetched:
    error: ErrorCode = ErrorCode.NONE
    diverging: tuple[int, int] | None = None
    batches: tuple[SimBatch, ...] = ()
    high_watermark: int = -1
    start_offset: int = -1
    # With OFFSET_OUT_OF_RANGE: the leader's log end offset, which a follower would ask for next.
    end_offset: int = -1
    # With OFFSET_MOVED_TO_TIERED_STORAGE: the start of its local log, and the end of the epoch
    # before it.
    boundary: LeaderOffset | None = None
    earlier: EpochEnd | None = None


class SimBroker:
    """Implements ``PartitionHost``, and ``Clock`` for it."""

    def __init__(self, world: World, node_id: int, config: LogConfig) -> None:
        self.world = world
        self.node_id = node_id
        self.lag_ms_max = LAG_MS
        self.clock = self
        self.config = config
        self.up = False
        self.paused = False
        self.life = 0
        self.epoch = -1
        self.seen = 0
        self.log: SimLog | None = None
        self.partition: Partition | None = None
        self._members: dict[int, Membership] = {}
        self._state: FetchState | None = None
        self._asked: tuple[int, Fetch] | None = None
        self._asked_ms = 0
        self._number = 0
        self._change: IsrChange | None = None
        self._change_ms = 0
        self._unacked: list[tuple[int, int, list[int]]] = []
        self.loaded = False
        self._registered_at = 0
        # How far it has read the metadata topic.
        self.remote_seen = 0

    # What a partition needs of its broker.

    def now_ms(self) -> int:
        return self.world.now_ms

    def monotonic(self) -> float:
        return self.world.now_ms / 1000

    def broker_epoch(self) -> int:
        return self.epoch

    def brokers(self, node_id: int) -> Membership | None:
        return self._members.get(node_id)

    def alter_isr(self, partition: Partition, change: IsrChange) -> None:
        self._change, self._change_ms = change, self.world.now_ms
        self.world.ask_controller(self, change)

    def isr_answered(self, change: IsrChange, answer: IsrAnswer | ErrorCode) -> None:
        if self.partition is not None and self.partition.isr_answered(change, answer):
            self._change_ms = self.world.now_ms

    # -- life ----------------------------------------------------------------------------------

    def start(self) -> None:
        self.up = True
        self.life += 1
        self.epoch = -1

    def registered(self, epoch: int, version: int) -> None:
        """Metadata counts from the version with this registration on."""
        if epoch > self.epoch:
            self.epoch, self._registered_at = epoch, version

    def crash(self, *, power: bool) -> None:
        self.up = self.paused = False
        self.partition = self._state = self._asked = self._change = None
        self._members, self._unacked = {}, []
        self.loaded = False
        if self.log is not None:
            self.log.crash(power=power)

    def learn(self, versions: list[Metadata], index: int) -> None:
        """Read metadata up to a version; after a start, that version alone."""
        if self.epoch < 0 or index < self._registered_at:
            return
        first = self.seen + 1 if self.loaded else max(index, self.seen)
        self.loaded = True
        for number in range(first, index + 1):
            self._members = versions[number].brokers
            self._follow(versions[number])
        self.seen = max(self.seen, index)

    def _follow(self, version: Metadata) -> None:
        state = version.partition
        if self.node_id not in state.replicas:
            if self.partition is not None:
                self.partition.mark_deleted()
                self.world.note("drop")
            self.partition = self._state = self.log = None
            return
        if self.log is None:
            self.log = SimLog(self.config, self.world.remote)
        if self.partition is None:
            made: Any = self.log
            self.partition = Partition(self, "t", 0, ZERO_UUID, made)
            self.partition.on_commit(self._committed)
        partition = self.partition
        newer = (
            state.leader_epoch > partition.leader_epoch
            and state.partition_epoch >= partition.partition_epoch
        )
        if newer and state.leader == self.node_id:
            # A leader that learns late of its election may have been replaced since.
            current = self.world.controller.partition.leader_epoch == state.leader_epoch
            log = self.log if current else None
            self.world.checks.led(self.node_id, state.leader_epoch, log)
            self.world.note("lead")
        partition.update(state)
        if partition.is_leader or state.leader < 0:
            self._state = None
        elif newer or self._state is None:
            self._state = FetchState(
                partition.leader_epoch, self.log.log_end_offset, self.log.latest_epoch
            )

    def _committed(self, high_watermark: int) -> None:
        partition, log = self.partition, self.log
        assert partition is not None and log is not None
        epoch = partition.leader_epoch
        self.world.checks.moved(self.node_id, self.life, epoch, log, high_watermark)
        if not partition.is_leader:
            return
        waiting = []
        for began, offset, values in self._unacked:
            if began != epoch:
                continue
            if offset < high_watermark:
                for back, value in enumerate(reversed(values)):
                    self.world.checks.acknowledged(value, offset - back)
                self.world.note("ack")
            else:
                waiting.append((began, offset, values))
        self._unacked = waiting

    # -- leading -------------------------------------------------------------------------------

    def produce(self, values: list[int], *, acks_all: bool) -> None:
        partition = self.partition
        if partition is None or not partition.is_leader or self.log is None:
            return
        # With no other replica, the append answers at once.
        offset = self.log.log_end_offset + len(values) - 1
        if acks_all:
            self._unacked.append((partition.leader_epoch, offset, values))
        try:
            batches: Any = [SimBatch(values)]
            partition.append(batches, self.now_ms(), acks_all=acks_all)
        except KafkaError:
            self._unacked.pop()
            self.world.checks.refused.update(values)
            self.world.note("refused")

    def delete_records(self) -> None:
        partition = self.partition
        if partition is not None and partition.is_leader and self.log is not None:
            low, high = self.log.log_start_offset, self.log.high_watermark
            start = partition.delete_records_before(self.world.rng.randint(low, high))
            self.world.checks.deleted(start)
            self.world.note("delete")

    def serve(self, fetch: Fetch) -> Fetched:
        partition, log = self.partition, self.log
        if partition is None or log is None:
            return Fetched(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        if fetch.leader_epoch < partition.leader_epoch:
            return Fetched(ErrorCode.FENCED_LEADER_EPOCH)
        if fetch.leader_epoch > partition.leader_epoch:
            return Fetched(ErrorCode.UNKNOWN_LEADER_EPOCH)
        if not partition.is_leader or not partition.has_follower(fetch.replica):
            return Fetched(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        try:
            diverging = find_divergence(log, fetch.offset, fetch.last_epoch)
            if diverging is not None:
                return Fetched(diverging=diverging)
            if fetch.rebuilds:
                raise KafkaError(ErrorCode.OFFSET_MOVED_TO_TIERED_STORAGE)
            batches = tuple(log.read(fetch.offset, self.world.fetch_records))
            partition.fetched_by(
                fetch.replica, fetch.offset, fetch.start_offset, fetch.broker_epoch
            )
        except KafkaError as error:
            if error.code is ErrorCode.OFFSET_MOVED_TO_TIERED_STORAGE:
                return _moved(log)
            start, end = log.log_start_offset, log.log_end_offset
            return Fetched(error.code, start_offset=start, end_offset=end)
        return Fetched(
            batches=batches, high_watermark=log.high_watermark, start_offset=log.log_start_offset
        )

    # -- following -----------------------------------------------------------------------------

    def tick(self) -> None:
        """A broker's periodic work."""
        now_ms, partition = self.world.now_ms, self.partition
        if partition is None or self.epoch < 0 or self.log is None:
            return
        partition.shrink_isr()
        pending = None if partition.leader is None else partition.leader.pending
        if pending is not None and now_ms - self._change_ms > ISR_TIMEOUT_MS:
            self._change_ms = now_ms
            self.world.ask_controller(self, pending)
        if self._asked is not None and now_ms - self._asked_ms > FETCH_TIMEOUT_MS:
            self._asked = None
        state = self._state
        if state is not None and self._asked is None and state.ready_ms <= now_ms:
            self._number += 1
            fetch = Fetch(
                self.node_id,
                self.epoch,
                state.leader_epoch,
                state.offset,
                state.last_epoch,
                self.log.log_start_offset,
                lacks_history(self.log),
            )
            self._asked, self._asked_ms = (self._number, fetch), now_ms
            self.world.fetch(self, partition.leader_id, self._number, fetch)

    def fetched(self, number: int, answer: Fetched) -> None:
        """Does what ``Fetcher`` does."""
        asked, state, partition, log = self._asked, self._state, self.partition, self.log
        if asked is None or asked[0] != number:
            return
        self._asked = None
        if state is None or partition is None or log is None:
            return
        if (asked[1].offset, asked[1].leader_epoch) != (state.offset, state.leader_epoch):
            return
        if answer.error is ErrorCode.OFFSET_OUT_OF_RANGE:
            reset = out_of_range(log.log_end_offset, answer.start_offset, answer.end_offset)
            if reset.fully:
                partition.truncate_fully_and_start_at(reset.offset)
            else:
                partition.truncate_to(reset.offset)
            self.world.note("reset")
            state.restart(log)
        elif answer.error is ErrorCode.OFFSET_MOVED_TO_TIERED_STORAGE:
            state.ready_ms = self.world.now_ms + 5
            self._rebuild(answer, partition, state, log)
        elif answer.error is not ErrorCode.NONE:
            state.ready_ms = self.world.now_ms + 5
        elif answer.diverging is not None:
            before = log.log_end_offset
            partition.truncate_to(truncation_offset(log, EpochEnd(*answer.diverging)))
            self.world.note("truncate" if log.log_end_offset < before else "diverge")
            state.restart(log)
        else:
            self._append(answer, partition, state, log)

    def _append(
        self, answer: Fetched, partition: Partition, state: FetchState, log: SimLog
    ) -> None:
        taken = [each for each in answer.batches if each.leader_epoch <= state.leader_epoch]
        if taken:
            batches: Any = [SimBatch(list(b.values), b.base_offset, b.leader_epoch) for b in taken]
            size = sum(batch.size for batch in taken)
            partition.append_fetched(FetchedBatches(batches, memoryview(bytes(size))), 0)
        partition.follow(answer.high_watermark, answer.start_offset)
        state.advance(log, answer.high_watermark)

    # -- tiered storage ------------------------------------------------------------------------

    def tier(self) -> None:
        """Copy as the leader; drop local records as any replica; read the metadata topic."""
        partition, log, world = self.partition, self.log, self.world
        if partition is None or log is None:
            return
        if partition.is_leader and log.copy(world.rng.randint(log.base, log.high_watermark)):
            world.note("copy")
        self.remote_seen = world.rng.randint(self.remote_seen, len(world.remote))
        low, high = log.base, min(log.remote_end(), log.high_watermark)
        if low < high:
            log.drop_local(world.rng.randint(low, high))
            world.note("local retention")

    def _rebuild(
        self, answer: Fetched, partition: Partition, state: FetchState, log: SimLog
    ) -> None:
        """Does what ``TierRebuild`` does; the process may be killed after each step."""
        assert answer.boundary is not None
        boundary, start = answer.boundary, answer.start_offset
        if boundary.offset <= start:
            if not log.size:
                partition.truncate_fully_and_start_at(start)
        else:
            epoch = target_epoch(boundary, answer.earlier)
            seen = self.world.remote[: self.remote_seen]
            segment = remote_segment(seen, epoch, boundary.offset - 1)
            if segment is None:
                self.world.note("no segment yet")
                return
            if is_ahead(log, boundary):
                state.restart(log)
                return
            partition.truncate_fully_and_start_at(segment.end_offset + 1, start)
            if self.world.killed_in_rebuild(self):
                return
            log.restore(segment.epochs)
            self.world.note("rebuild")
        state.restart(log)


def _moved(log: SimLog) -> Fetched:
    boundary = LeaderOffset(log.base, log.epoch_of(log.base))
    asked = earlier_epoch(boundary)
    return Fetched(
        ErrorCode.OFFSET_MOVED_TO_TIERED_STORAGE,
        start_offset=log.log_start_offset,
        boundary=boundary,
        earlier=None if asked is None else EpochEnd(*log.epoch_end_offset(asked)),
    )
