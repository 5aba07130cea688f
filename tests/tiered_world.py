"""A small world for tiered storage: one metadata partition, one store, brokers with small logs.

Everything that a broker does to the world passes ``World.effect``: there it can be killed, and
there a reply can be lost. Records of the local logs are (offset, epoch) pairs, so that a read can
be judged.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from skylog.kernel.clock import ManualClock
from skylog.kernel.errors import ErrorCode, KafkaError
from skylog.kernel.executor import InlineExecutor
from skylog.kernel.ids import Uuid
from skylog.kernel.system import System
from skylog.log.checkpoints import EpochStart, decode_epochs, encode_snapshot
from skylog.log.closed import ClosedSegment
from skylog.log.config import LogConfig
from skylog.log.epochs import LeaderEpochs
from skylog.log.producers import ProducerEntry
from skylog.objects.store import NotFound, ObjectError
from skylog.objects.store import Outcome as StoreOutcome
from skylog.tiered.copier import Copier
from skylog.tiered.counts import TieredCounts
from skylog.tiered.deletion import PartitionDeletion
from skylog.tiered.expirer import Expirer
from skylog.tiered.hosted import Hosted
from skylog.tiered.leading import Preparation
from skylog.tiered.lineage import Lineage
from skylog.tiered.metadata.machine import Outcome, RemoteLog
from skylog.tiered.ports import Published, SegmentFiles
from skylog.tiered.quota import ByteQuota
from skylog.tiered.retention import Limits
from skylog.tiered.sagas import RetrySettings, SagaRunner
from skylog.tiered.segments import IndexType, RemoteSegment, SegmentState, TopicIdPartition
from skylog.tiered.slots import Slots
from skylog.tiered.storage import CustomMetadataTooLarge
from skylog.wire.metadata_records import decode_remote_log, encode_remote_log
from skylog.wire.schema import Message

TOPIC = "t"
PARTITION = TopicIdPartition(Uuid(b"0123456789abcdef"), 0)
SEGMENT_RECORDS = 10
RECORD_BYTES = 100
REMOTE = LogConfig(remote_storage_enable=True, remote=True, retention_ms=-1)
NO_PAUSE = RetrySettings(backoff_ms=0, backoff_ms_max=0, jitter=0.0)

Record = tuple[int, int]


class Crash(BaseException):
    """kill -9."""


class Reply:
    """What becomes of one effect: ``before`` it happens, or of its answer ``after`` it."""

    NONE = "none"
    FAIL_BEFORE = "before"
    LOST_AFTER = "after"


@dataclass
class World:
    """What outlives every broker."""

    clock: ManualClock = field(default_factory=ManualClock)
    # The values of the metadata partition.
    topic: list[bytes] = field(default_factory=list)
    objects: dict[tuple[bytes, str], object] = field(default_factory=dict)
    effects: list[str] = field(default_factory=list)
    # Called with the number and name of each effect; returns a ``Reply`` or raises ``Crash``.
    fate: Callable[[int, str], str] = lambda number, name: Reply.NONE
    # What the objects of a segment that the log names are.
    custom_metadata: bytes | None = None

    def effect(self, name: str, act: Callable[[], object]) -> None:
        """Do ``act``; the fate decides before and after."""
        number = len(self.effects)
        self.effects.append(name)
        fate = self.fate(number, name)
        if fate == Reply.FAIL_BEFORE:
            raise _failure(name, definite=True)
        act()
        if fate == Reply.LOST_AFTER:
            raise _failure(name, definite=False)

    def remote(self) -> RemoteLog:
        """The remote log as a broker has it that reads the topic from the beginning."""
        log = RemoteLog(PARTITION, TOPIC)
        for offset, value in enumerate(self.topic):
            record = decode_remote_log(value)
            assert record is not None
            log.apply(record, offset)
        return log


def _failure(name: str, *, definite: bool) -> Exception:
    if name.startswith("publish"):
        return KafkaError(ErrorCode.REQUEST_TIMED_OUT, name)
    kind = StoreOutcome.NOT_DONE if definite else StoreOutcome.AMBIGUOUS
    return ObjectError(name, kind)


class WorldLogs:
    """``RemoteLogs`` of one broker."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._remote = RemoteLog(PARTITION, TOPIC)
        self._listeners: list[Callable[[TopicIdPartition], None]] = []
        self.read()

    def read(self) -> dict[int, Outcome]:
        """Apply what was written since."""
        outcomes = {}
        for offset in range(self._remote.next_offset, len(self._world.topic)):
            record = decode_remote_log(self._world.topic[offset])
            assert record is not None
            outcomes[offset] = self._remote.apply(record, offset)
            for listener in self._listeners:
                listener(PARTITION)
        return outcomes

    def follow(self, partition: TopicIdPartition, topic: str) -> None: ...

    def unfollow(self, partition: TopicIdPartition) -> None: ...

    def on_change(self, listener: Callable[[TopicIdPartition], None]) -> None:
        self._listeners.append(listener)

    def get(self, partition: TopicIdPartition) -> RemoteLog | None:
        return self._remote

    async def ready(self, partition: TopicIdPartition) -> RemoteLog:
        return self._remote

    async def publish(self, partition: TopicIdPartition, record: Message) -> Published:
        value = encode_remote_log(record)
        name = f"publish {type(record).__name__} {_state_of(record)}"
        at = -1

        def append() -> None:
            nonlocal at
            at = len(self._world.topic)
            self._world.topic.append(value)

        try:
            self._world.effect(name, append)
        except KafkaError:
            self.read()  # a lost answer does not keep others from reading it
            raise
        outcome = self.read()[at]
        return Published.EFFECTIVE if outcome is Outcome.EFFECTIVE else Published.VOID


def _state_of(record: Message) -> int:
    for name in ("remote_log_segment_state", "remote_partition_delete_state"):
        if hasattr(record, name):
            return int(getattr(record, name))
    raise AssertionError(record)


class WorldStorage:
    """``RemoteStorage``: three objects for each segment, as in the layouts."""

    def __init__(self, world: World, log: WorldLog) -> None:
        self._world = world
        self._log = log

    async def copy(self, segment: RemoteSegment, files: SegmentFiles) -> bytes | None:
        assert self._world.remote().segment(segment.id) is not None, "T3: put before STARTED"
        if len(self._world.custom_metadata or b"") > 128:
            raise CustomMetadataTooLarge(len(self._world.custom_metadata or b""), 128)
        records = self._log.stored(segment.start_offset, segment.end_offset)
        for name, content in (
            ("log", records),
            ("indexes", files.leader_epochs),
            ("manifest", segment.size),
        ):
            self._put(segment, name, content)
        return self._world.custom_metadata

    def _put(self, segment: RemoteSegment, name: str, content: object) -> None:
        objects = self._world.objects

        def put() -> None:
            known = objects.setdefault((segment.id, name), content)
            assert known == content, "other bytes under the same key"

        self._world.effect(f"put {name}", put)

    async def fetch(self, segment: RemoteSegment, start: int, end: int) -> bytes:
        raise AssertionError("nobody reads records here")

    async def fetch_index(self, segment: RemoteSegment, kind: IndexType) -> bytes:
        if (segment.id, "indexes") not in self._world.objects:
            raise NotFound(str(segment.id))
        if kind is IndexType.LEADER_EPOCH:
            index = self._world.objects[segment.id, "indexes"]
            assert isinstance(index, bytes)
            return index
        assert kind is IndexType.PRODUCER_SNAPSHOT
        return encode_snapshot(())

    async def delete(self, segment: RemoteSegment) -> None:
        known = self._world.remote().segment(segment.id)
        assert known is not None and known.state is SegmentState.DELETE_STARTED, "T7"
        for name in ("manifest", "log", "indexes"):
            self._world.effect(
                f"delete {name}", lambda name=name: self._world.objects.pop((segment.id, name), 0)
            )


@dataclass
class LocalSegment:
    base_offset: int
    records: list[Record]
    max_timestamp: int

    @property
    def size(self) -> int:
        return len(self.records) * RECORD_BYTES


class WorldLog:
    """``CopySource``: a log on the disk of one broker, which survives a crash."""

    def __init__(self, world: World, config: LogConfig = REMOTE) -> None:
        self._world = world
        self.config = config
        self.log_start_offset = 0
        self.epochs = LeaderEpochs()
        self.segments = [LocalSegment(0, [], -1)]
        self.stable_offset: int | None = None
        self.remote_end = 0
        self.highest_remote_offset = -1
        self.served = 0

    # -- what a broker does with it

    def lead(self, epoch: int) -> None:
        self.epochs.assign(epoch, self.log_end_offset)

    def append(self, count: int = 1) -> None:
        """Records, in segments of ``SEGMENT_RECORDS``."""
        for _ in range(count):
            if len(self.segments[-1].records) == SEGMENT_RECORDS:
                self.segments.append(LocalSegment(self.log_end_offset, [], -1))
            active = self.segments[-1]
            active.records.append((self.log_end_offset, self.epochs.latest))
            active.max_timestamp = self._world.clock.now_ms()

    def drop_local(self) -> None:
        """Local retention without limits: all that is remote goes, up to the active segment."""
        while len(self.segments) > 1 and self.segments[1].base_offset <= max(
            self.remote_end, self.log_start_offset
        ):
            del self.segments[0]

    def wipe(self) -> None:
        """Another disk."""
        self.__init__(self._world, self.config)  # type: ignore[misc]

    def stored(self, start: int, end: int) -> list[Record]:
        found = [record for one in self.segments for record in one.records]
        found = [record for record in found if start <= record[0] <= end]
        if len(found) != end - start + 1:
            raise FileNotFoundError(f"{start}..{end}")
        return found

    def local(self, offset: int) -> Record | None:
        for one in self.segments:
            for record in one.records:
                if record[0] == offset:
                    return record
        return None

    # -- the port

    @property
    def local_log_start_offset(self) -> int:
        return max(self.segments[0].base_offset, self.log_start_offset)

    @property
    def log_end_offset(self) -> int:
        return self.segments[-1].base_offset + len(self.segments[-1].records)

    @property
    def has_records(self) -> bool:
        return any(one.records for one in self.segments)

    @property
    def last_stable_offset(self) -> int:
        return self.log_end_offset if self.stable_offset is None else self.stable_offset

    @property
    def closed_end(self) -> int:
        ends = [one.base_offset for one in self.segments]
        return max((end for end in ends if end <= self.last_stable_offset), default=ends[0])

    async def closed_segments(self, from_offset: int) -> Sequence[ClosedSegment]:
        found = []
        for one, following in zip(self.segments, self.segments[1:], strict=False):
            end = following.base_offset
            if from_offset < end <= self.last_stable_offset:
                paths = ("log", "index", "timeindex", None, "snapshot")
                found.append(
                    ClosedSegment(one.base_offset, end, one.size, one.max_timestamp, *paths)
                )
        return found

    async def files_of(self, closed: ClosedSegment) -> SegmentFiles:
        from skylog.tiered.copying import epoch_checkpoint

        epochs = epoch_checkpoint(self.epochs, closed.next_offset)
        return SegmentFiles("log", "index", "timeindex", None, "snapshot", epochs)

    def wake_when_stable(self, wake: Callable[[], None]) -> None: ...

    def bytes_from(self, offset: int) -> int:
        return sum(one.size for one in self.segments if one.base_offset >= offset)

    def only_local_bytes(self, remote: RemoteLog) -> int:
        lineage = Lineage(self.epochs, self.log_end_offset)
        return self.bytes_from(lineage.highest_remote_offset(remote).offset + 1)

    @property
    def limits(self) -> Limits:
        return Limits.of(self.config)

    async def refresh(self) -> None: ...

    def remote_moved(self, highest_offset: int, remote_end: int) -> None:
        self.highest_remote_offset = highest_offset
        self.remote_end = min(remote_end, self.log_end_offset)

    async def start_at(self, offset: int) -> int:
        assert offset <= self.log_end_offset

        def move() -> None:
            if offset > self.log_start_offset:
                self.log_start_offset = offset
                self.epochs.truncate_start(offset)

        self._world.effect("log start", move)
        self.drop_local()
        return self.log_start_offset

    def prepared(self) -> None:
        self.served += 1

    @property
    def knows_start(self) -> bool:
        return True

    async def learn_start(self, offset: int) -> None:
        raise AssertionError("the log start was known")

    async def restore_epochs(self, epochs: Sequence[EpochStart]) -> None:
        self.epochs = LeaderEpochs(epochs)

    async def rebuild(
        self,
        next_offset: int,
        log_start_offset: int,
        epochs: Sequence[EpochStart],
        producers: Sequence[ProducerEntry],
    ) -> None:
        latest = self.epochs.latest

        def build() -> None:
            self.segments = [LocalSegment(next_offset, [], -1)]
            self.log_start_offset = log_start_offset
            self.epochs = LeaderEpochs(epochs)
            self.epochs.assign(latest, next_offset)

        self._world.effect("rebuild", build)


class Broker:
    """The lanes of one partition, on a broker with ``log`` as its disk."""

    def __init__(self, world: World, log: WorldLog, epoch: int, seed: int = 0) -> None:
        self.world = world
        self.log = log
        self.logs = WorldLogs(world)
        self.storage = WorldStorage(world, log)
        system = System(world.clock, random.Random(seed * 1000 + epoch), InlineExecutor())
        self.counts = TieredCounts(world.clock)
        slots = Slots(1)
        self.runner = SagaRunner(epoch % 3, self.logs, self.storage, system, NO_PAUSE, self.counts)
        self.quota = ByteQuota(2**63 - 1, 11, 1)
        self.copier = Copier(
            self.logs,
            self.runner,
            Preparation(self.storage),
            system,
            self.quota,
            slots,
            self.counts,
        )
        self.expirer = Expirer(self.runner, system, slots, self.counts)
        self.deletion = PartitionDeletion(self.runner, self.logs, system, slots)
        self.hosted = Hosted(PARTITION, TOPIC, log)
        self.logs.on_change(lambda _: self.follow())
        self.lead(epoch)

    def lead(self, epoch: int) -> None:
        self.log.lead(epoch)
        self.hosted.led(epoch)
        self.logs.read()
        self.follow()

    def follow(self) -> None:
        self.hosted.follow(self.remote)

    @property
    def remote(self) -> RemoteLog:
        found = self.logs.get(PARTITION)
        assert found is not None
        return found

    async def copy(self) -> None:
        if self.copier.has_work(self.hosted, self.remote):
            await self.copier.run(self.hosted, self.remote)

    async def expire(self) -> None:
        if self.expirer.has_work(self.hosted, self.remote):
            await self.expirer.run(self.hosted, self.remote)

    async def settle(self, rounds: int = 50) -> None:
        """Until there is nothing to do."""
        for _ in range(rounds):
            if not self.hosted.leads:
                raise Crash  # nothing more is done here
            if not self.copier.has_work(self.hosted, self.remote) and not self.expirer.has_work(
                self.hosted, self.remote
            ):
                return
            await self.copy()
            await self.expire()
        raise AssertionError("there is always something to do")

    # -- checks

    def read(self, offset: int) -> Record | None:
        """As a consumer of this leader does: local, or remote by the epoch of the lineage."""
        found = self.log.local(offset)
        if found is not None and offset >= self.log.local_log_start_offset:
            return found
        epoch = self.hosted.lineage.epoch_of(offset)
        segment = None if epoch is None else self.remote.segment_for(epoch, offset)
        if segment is None:
            return None
        stored = self.world.objects.get((segment.id, "log"))
        assert isinstance(stored, list), "T2: a finished segment without its log"
        return next((record for record in stored if record[0] == offset), None)

    def check(self) -> None:
        """T1, T2 and T4 hold at every moment."""
        for offset in range(self.log.log_start_offset, self.log.log_end_offset):
            found = self.read(offset)
            assert found is not None, f"T1: {offset} cannot be read"
            assert found[1] == self.hosted.lineage.epoch_of(offset), f"T9: {offset}"
        for segment in self.remote.all():
            if segment.state is SegmentState.COPY_FINISHED:
                for name in ("log", "indexes", "manifest"):
                    assert (segment.id, name) in self.world.objects, f"T2: no {name}"

    def check_settled(self, *, zombies: bool = False) -> None:
        """T15 and T16: nothing is under way, and the store has what the topic names. What a zombie
        puts after its segment was cleaned is left to the orphan scan."""
        self.check()
        assert not self.remote.unfinished(), "T16"
        named = {segment.id for segment in self.remote.all()}
        stored = {key[0] for key in self.world.objects}
        assert (stored >= named) if zombies else (stored == named), "T15"
        for segment in self.remote.all():
            index = self.world.objects[segment.id, "indexes"]
            assert isinstance(index, bytes)
            entries = decode_epochs(index.decode())
            assert entries and entries[-1][1] <= segment.end_offset


def with_config(**changes: object) -> LogConfig:
    return replace(REMOTE, **changes)  # type: ignore[arg-type]
