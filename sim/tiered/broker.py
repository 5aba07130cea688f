"""One broker: a disk, and a process with the real copier, expirer and remote log."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from random import Random
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from sim.tiered.disk import SimLog
from sim.tiered.store import SimStorage
from sim.tiered.waiting import Request, turn
from skylog.kernel.errors import ErrorCode, KafkaError
from skylog.kernel.executor import InlineExecutor
from skylog.kernel.ids import Uuid
from skylog.kernel.system import System
from skylog.log.checkpoints import decode_epochs
from skylog.tiered.copier import Copier
from skylog.tiered.counts import TieredCounts
from skylog.tiered.expirer import Expirer
from skylog.tiered.hosted import Hosted
from skylog.tiered.leading import Preparation
from skylog.tiered.metadata.machine import Outcome, RemoteLog
from skylog.tiered.ports import Published
from skylog.tiered.quota import ByteQuota
from skylog.tiered.sagas import FAILURES, RetrySettings, SagaRunner
from skylog.tiered.segments import IndexType, RemoteSegment, SegmentState, TopicIdPartition
from skylog.tiered.slots import Slots
from skylog.wire.metadata_records import encode_remote_log
from skylog.wire.schema import Message

if TYPE_CHECKING:
    from sim.tiered.world import World

TOPIC: Final = "t"
PARTITION: Final = TopicIdPartition(Uuid(b"0123456789abcdef"), 0)
NO_PAUSE: Final = RetrySettings(backoff_ms=0, backoff_ms_max=0, jitter=0.0)
UNLIMITED: Final = 2**63 - 1
COPY, EXPIRE, REBUILD = "copy", "expire", "rebuild"


class EnoughSlots(Slots):
    """Nobody waits for one, so that no event loop is needed."""

    async def __aenter__(self) -> None:
        self._taken += 1


class State(NamedTuple):
    """What the controller has decided."""

    leader: int
    epoch: int


class SimBroker:
    """Implements ``tiered.ports.RemoteLogs``, with a reader of the metadata topic that lags."""

    def __init__(self, world: World, node_id: int) -> None:
        self.world = world
        self.node_id = node_id
        self.disk = SimLog(world.clock, world.config)
        self.up = False
        self.paused = False
        self.known = State(-1, -1)
        # Where the epoch of this leader begins, and what followers have in it.
        self.epoch_start = 0
        self.ends: dict[int, int] = {}
        # The snapshot file.
        self._saved: tuple[Any, list[bytes]] | None = None
        self.lanes: dict[str, Coroutine[Any, Any, Any]] = {}

    # --- Life ---------------------------------------------------------------------------------

    def start(self) -> None:
        world, disk = self.world, self.disk
        self.up, self.paused = True, False
        self.known = State(-1, -1)
        self.ends = {}
        saved = self._saved
        self.remote = RemoteLog(PARTITION, TOPIC) if saved is None else RemoteLog.restored(*saved)
        if self.remote.next_offset > world.topic.committed:
            self.remote = RemoteLog(PARTITION, TOPIC)
        self.applied = self.remote.next_offset
        self.target = world.topic.committed
        self.outcomes: dict[int, Outcome] = {}
        # States of segments that this process has read.
        self._read_back: set[tuple[bytes, int]] = set()
        self._listeners: list[Callable[[TopicIdPartition], None]] = []
        self.hosted = Hosted(PARTITION, TOPIC, disk)
        system = System(world.clock, Random(world.rng.random()), InlineExecutor())
        self.storage = SimStorage(world.stored, disk, world.send, self._check)
        counts, slots = TieredCounts(world.clock), EnoughSlots(10)
        runner = SagaRunner(self.node_id, self, self.storage, system, NO_PAUSE, counts)
        preparation = Preparation(self.storage)
        quota = ByteQuota(UNLIMITED, 11, 1)
        self.copier = Copier(self, runner, preparation, system, quota, slots, counts)
        self.expirer = Expirer(runner, system, slots, counts)

    def kill(self) -> None:
        self.up = self.paused = False
        self._end_lanes()
        # Local retention goes by what this process has read, not by what an earlier one had.
        self.disk.remote_end = 0
        self.disk.highest_remote_offset = -1

    def _end_lanes(self, *names: str) -> None:
        for name in names or tuple(self.lanes):
            lane = self.lanes.pop(name, None)
            if lane is not None:
                lane.close()

    @property
    def runs(self) -> bool:
        return self.up and not self.paused

    @property
    def leads(self) -> bool:
        """Whether it believes so."""
        return self.up and self.known.leader == self.node_id

    def learn(self, state: State) -> None:
        """Read the cluster's metadata."""
        if state == self.known:
            return
        self.known = state
        self.ends = {}
        if self.leads:
            self._end_lanes(REBUILD)
            self.epoch_start = self.disk.log_end_offset
            self.disk.epochs.assign(state.epoch, self.disk.log_end_offset)
            self.disk.is_held = True
            self.hosted.led(state.epoch)
            self.hosted.follow(self.remote)
        elif self.hosted.leads:
            self.hosted.deposed()
            self._end_lanes()

    # --- The remote log -----------------------------------------------------------------------

    def read(self, count: int) -> bool:
        """Apply records of the metadata topic; False if there are none."""
        topic = self.world.topic
        if self.applied > topic.committed:
            self._begin_again()
        end = min(self.applied + count, topic.committed)
        if end == self.applied:
            return False
        for offset in range(self.applied, end):
            record = topic.record(offset)
            outcome = self.outcomes[offset] = self.remote.apply(record, offset)
            if outcome is Outcome.EFFECTIVE:
                id_ = bytes(record.remote_log_segment_id.id)
                self._read_back.add((id_, record.remote_log_segment_state))
            self.world.noted[f"record {outcome.value}"] += 1
        self.applied = end
        self.hosted.follow(self.remote)
        return True

    def _begin_again(self) -> None:
        self.remote = RemoteLog(PARTITION, TOPIC)
        self.applied, self.target = 0, self.world.topic.committed
        self.outcomes.clear()

    def save(self) -> None:
        head, segments = self.remote.snapshot()
        head.metadata_offset = self.applied
        self._saved = head, segments

    def follow(self, partition: TopicIdPartition, topic: str) -> None: ...

    def unfollow(self, partition: TopicIdPartition) -> None: ...

    def on_change(self, listener: Callable[[TopicIdPartition], None]) -> None: ...

    def get(self, partition: TopicIdPartition) -> RemoteLog | None:
        return self.remote if self.applied >= self.target else None

    async def ready(self, partition: TopicIdPartition) -> RemoteLog:
        while self.applied < self.target:
            await turn()
        return self.remote

    async def caught_up(self, partition: TopicIdPartition) -> RemoteLog:
        self.target = max(self.target, self.world.topic.committed)
        return await self.ready(partition)

    async def publish(self, partition: TopicIdPartition, record: Message) -> Published:
        topic, value = self.world.topic, encode_remote_log(record)
        unclear = KafkaError(ErrorCode.REQUEST_TIMED_OUT, ambiguous=True)
        state = int(getattr(record, "remote_log_segment_state", -1))
        epoch = getattr(record, "copier_epoch", -1)
        assert epoch == self.hosted.leader_epoch, "T7: written in another epoch than the present"
        request = Request(f"publish {state}", lambda: (topic.life, topic.append(value)))
        self.world.send(request)
        life, offset = await request.answered(unclear)
        while topic.life == life and self.applied <= offset:
            await turn()
        if topic.life != life:
            raise unclear
        effective = self.outcomes[offset] is Outcome.EFFECTIVE
        return Published.EFFECTIVE if effective else Published.VOID

    # --- Work ---------------------------------------------------------------------------------

    def work(self, name: str) -> bool:
        """Go on in a lane, up to where it waits; False if there is nothing to do."""
        lane = self.lanes.get(name)
        if lane is None:
            lane = self._begin(name)
            if lane is None:
                return False
            self.lanes[name] = lane
        try:
            lane.send(None)
        except StopIteration:
            self.lanes.pop(name, None)
        except FAILURES:
            self.lanes.pop(name, None)
        return True

    def is_free(self, name: str) -> bool:
        return name not in self.lanes

    def _begin(self, name: str) -> Coroutine[Any, Any, Any] | None:
        remote = self.get(PARTITION)
        if remote is None or not self.hosted.leads:
            return None
        worker = self.copier if name == COPY else self.expirer
        return worker.run(self.hosted, remote) if worker.has_work(self.hosted, remote) else None

    def _check(self, what: str, segment: RemoteSegment) -> None:
        """What must hold when a request for an object is sent."""
        disk, id_ = self.disk, bytes(segment.id)
        if what == "put":
            assert segment.end_offset < disk.last_stable_offset, "T11: above the stable offset"
            assert segment.end_offset < disk.segments[-1].base_offset, "T11: the active segment"
            state = SegmentState.COPY_STARTED
        else:
            state = SegmentState.DELETE_STARTED
        is_known = (id_, state) in self._read_back or self._of_snapshot(id_, state)
        assert is_known, f"T3, T7: {what} before the record was read back"

    def _of_snapshot(self, id_: bytes, state: SegmentState) -> bool:
        mine = self.remote.segment(id_)
        return mine is not None and mine.state is state

    # --- Following ----------------------------------------------------------------------------

    def fetch_from(self, leader: SimBroker) -> None:
        """One fetch of a follower, and what it does with the answer."""
        # Until it has more, for it may be about to truncate what it has.
        leader.ends.pop(self.node_id, None)
        mine, theirs = self.disk, leader.disk
        if REBUILD in self.lanes or self._truncates(theirs):
            return
        if mine.log_end_offset < theirs.log_start_offset == theirs.local_log_start_offset:
            mine.restart_at(theirs.log_start_offset, theirs.log_start_offset, ())
        if mine.log_end_offset < theirs.local_log_start_offset:
            self.lanes[REBUILD] = self._rebuild(leader)
            return
        for _ in range(3):
            record = theirs.record(mine.log_end_offset)
            if record is None:
                break
            mine.append(record)
        mine.high_watermark = max(
            mine.high_watermark, min(theirs.high_watermark, mine.log_end_offset)
        )
        mine.move_start(min(theirs.log_start_offset, mine.high_watermark))
        leader.ends[self.node_id] = mine.log_end_offset

    def _truncates(self, theirs: SimLog) -> bool:
        mine = self.disk
        latest = mine.epochs.latest
        if latest < 0 or not mine.has_records:
            return False
        epoch, end = theirs.epochs.end_of(latest, theirs.log_end_offset)
        if epoch < 0:
            end = theirs.local_log_start_offset
        own_end = mine.epochs.end_of(epoch, mine.log_end_offset)[1] if epoch >= 0 else end
        end = min(end, own_end, mine.log_end_offset)
        if end >= mine.log_end_offset and epoch in (latest, -1):
            return False
        mine.truncate_to(end)
        return True

    async def _rebuild(self, leader: SimBroker) -> None:
        """The leader has the next records in the store only: go on behind them."""
        theirs = leader.disk
        last = theirs.local_log_start_offset - 1
        epoch = leader.hosted.lineage.epoch_of(last)
        segment = None if epoch is None else self.remote.segment_for(epoch, last)
        if epoch is None or segment is None:
            return
        raw = await self.storage.fetch_index(segment, IndexType.LEADER_EPOCH)
        epochs = [one for one in decode_epochs(raw.decode()) if one[0] <= epoch]
        self.disk.restart_at(last + 1, theirs.log_start_offset, epochs)
        self.disk.epochs.truncate_start(theirs.log_start_offset)
        self.world.noted["rebuild"] += 1
