"""One node of the metadata quorum: the machine decides, the node acts.

What is appended in one turn of the event loop shares a sync; what is appended while a sync runs
waits for the next one. The high watermark moves when a sync is done, so nothing that anybody was
told can be lost. Committed batches go to the publishers first and to the listeners of the high
watermark second: when a request's reply leaves, this node's own metadata shows its effect.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, field
from typing import Final

from skylog.kernel.clock import Clock
from skylog.kernel.errors import ErrorCode, KafkaError, StorageError, invariant
from skylog.kernel.executor import Executor
from skylog.kernel.logging import get_logger
from skylog.kernel.rng import Random
from skylog.kernel.settings.sections import QuorumSettings
from skylog.log.files import Files
from skylog.log.locks import DirectoryLock
from skylog.log.log import Log
from skylog.quorum.control import leader_change
from skylog.quorum.describe import describe_quorum
from skylog.quorum.effects import AdvanceHighWatermark, BeginEpoch, Effect, SaveElection
from skylog.quorum.election import ElectionState
from skylog.quorum.election_file import ElectionFile
from skylog.quorum.log import MetadataLog, MetadataLogConfig
from skylog.quorum.machine import QuorumMachine
from skylog.quorum.replica import QuorumOptions, Timeouts
from skylog.quorum.retention import KnownSnapshot
from skylog.quorum.states import Leader
from skylog.quorum.storage import NodeStorage
from skylog.quorum.voters import Endpoint, Voter
from skylog.replicated.log import KeyValue, LoadedBatch, Unsubscribe
from skylog.wire.batch import Batch
from skylog.wire.messages.describe_quorum_response import DescribeQuorumResponse
from skylog.wire.records import decode_records

_logger = get_logger("quorum.node")
_NOBODY: Final = -1
# Gets a snapshot (``from_snapshot``: the whole state) or one committed batch, in order.
Publisher = Callable[[LoadedBatch], None]


@dataclass(frozen=True, slots=True)
class LeaderAndEpoch:
    """``leader_id`` is −1 while there is none."""

    leader_id: int
    epoch: int


@dataclass(frozen=True, slots=True)
class QuorumConfig:
    """How this node takes part; ``endpoints`` are where its own controller listens."""

    endpoints: tuple[Endpoint, ...]
    log: MetadataLogConfig = field(default_factory=MetadataLogConfig)
    timeouts: Timeouts = field(default_factory=Timeouts)

    @classmethod
    def from_settings(cls, settings: QuorumSettings, endpoints: Sequence[Endpoint]) -> QuorumConfig:
        timeouts = Timeouts(
            settings.election_timeout_ms,
            settings.fetch_timeout_ms,
            settings.request_timeout_ms,
            settings.retry_backoff_ms,
        )
        return cls(tuple(endpoints), MetadataLogConfig.from_settings(settings), timeouts)


class QuorumNode:
    """This node's replica of the metadata log. All calls come from the event loop."""

    def __init__(
        self,
        storage: NodeStorage,
        config: QuorumConfig,
        *,
        files: Files,
        clock: Clock,
        executor: Executor,
        rng: Random,
        on_failure: Callable[[Exception], None],
    ) -> None:
        """``on_failure`` hears of a log that cannot be written or followed: whoever owns the node
        must end it, and may start another on the same directory."""
        self._storage = storage
        self._local = Voter(storage.replica, config.endpoints)
        self._config = config.log
        self._timeouts = config.timeouts
        self._files = files
        self._clock = clock
        self._executor = executor
        self._rng = rng
        self._on_failure = on_failure
        self._election_file = ElectionFile(files, storage.metadata_log)
        self._lock: DirectoryLock | None = None
        self._opened: MetadataLog | None = None
        self._started: QuorumMachine | None = None
        self._high_watermark = 0
        self._listeners: list[Callable[[int], None]] = []
        self._publishers: list[Publisher] = []
        # Appended and not yet committed, for the publishers: the end of each batch, and the batch.
        self._uncommitted: deque[tuple[int, LoadedBatch]] = deque()
        self._syncing: asyncio.Task[None] | None = None
        self._failure: Exception | None = None
        self._closed = False
        self._last_snapshot_ms = 0

    async def start(self) -> None:
        """Open the log and take part in the quorum; a lone voter leads when this returns."""
        try:
            await self._start(self._clock.now_ms())
        except BaseException as error:
            self._failure = self._failure or StorageError(f"the quorum node did not start: {error}")
            self._unlock()
            raise
        _logger.info("quorum joined", leader=self.leader_and_epoch.leader_id, epoch=self.epoch)

    async def _start(self, now_ms: int) -> None:
        self._last_snapshot_ms = now_ms
        directory = self._storage.metadata_log

        def read() -> tuple[MetadataLog, ElectionState | None]:
            try:
                # Its own, from before the first write: the broker's logs are locked later.
                self._lock = DirectoryLock(str(directory))
                log = MetadataLog.open(directory, self._files, self._config, now_ms)
                return log, self._election_file.read()
            except OSError as error:
                raise StorageError(f"{directory} cannot be read: {error}") from error

        self._opened, saved = await self._executor.run(read)
        voters = self._log.quorum.voters
        if voters is None or not voters.is_only(self._storage.replica):
            raise StorageError(f"{directory} names other voters than this node alone: {voters}")
        options = QuorumOptions(self._timeouts)
        self._started = QuorumMachine(self._local, self._log, options, self._rng)
        await self._act(self._machine.start(saved, now_ms))
        if self._syncing is not None:
            await self._syncing
        if self._failure is not None:
            raise self._failure

    async def close(self) -> None:
        """Stop leading, make everything durable and let go of the files."""
        if self._opened is None or self._closed:
            return
        self._closed = True
        if self._started is not None:
            await self._act(self._machine.resign(self._clock.now_ms()))
        if self._syncing is not None:
            await self._syncing
        try:
            if self._failure is None:
                await self._executor.run(self._log.close)
        finally:
            self._unlock()

    def _unlock(self) -> None:
        lock, self._lock = self._lock, None
        if lock is not None:
            lock.release()

    # -- the log of a replicated machine -------------------------------------------------------

    @property
    def end_offset(self) -> int:
        return self._log.end_offset

    @property
    def high_watermark(self) -> int:
        return self._high_watermark

    def append(self, records: Sequence[KeyValue]) -> int:
        """Append one atomic batch; RECORD_LIST_TOO_LARGE and NOT_CONTROLLER change nothing."""
        if self._failure is not None:
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, str(self._failure))
        if self._closed or not self.is_leader:
            raise KafkaError(ErrorCode.NOT_CONTROLLER)
        base_offset = self._log.end_offset
        try:
            end_offset = self._log.append(records, self.epoch, self._clock.now_ms())
        except KafkaError as error:
            if not self._log.is_offline:
                raise
            # Nobody knows what the disk holds of it.
            self._fail(error)
            raise KafkaError(error.code, error.message, ambiguous=True) from error
        self._uncommitted.append((end_offset, LoadedBatch(base_offset, records)))
        self._sync_soon()
        return end_offset

    def on_high_watermark(self, listener: Callable[[int], None]) -> Unsubscribe:
        self._listeners.append(listener)
        return lambda: self._listeners.remove(listener)

    async def read_all(self) -> AsyncIterator[LoadedBatch]:
        """The latest snapshot, then every batch after it up to the log's present end."""
        log, end_offset = self._log, self._log.end_offset
        offset = 0
        snapshot_id = log.latest_snapshot
        if snapshot_id is not None and snapshot_id.offset > 0:
            snapshot = await self._executor.run(lambda: log.read_snapshot(snapshot_id))
            offset = snapshot_id.offset
            yield LoadedBatch(offset - 1, snapshot.records, from_snapshot=True)
        async for batch in self._read_log(offset, end_offset):
            yield batch

    def snapshot_due(self, now_ms: int) -> bool:
        """Whether enough has been committed, or anything long enough ago, since the last one."""
        added = self._log.unsnapshotted_bytes
        if added >= self._config.snapshot_after_bytes:
            return True
        interval_ms = self._config.snapshot_after_ms
        return bool(added and interval_ms) and now_ms - self._last_snapshot_ms >= interval_ms

    async def write_snapshot(self, end_offset: int, records: Sequence[KeyValue]) -> None:
        """Keep the state as of ``end_offset`` and let go of the log before it as settings say."""
        invariant(end_offset <= self._high_watermark, f"a snapshot at {end_offset}, not committed")
        log, now_ms = self._log, self._clock.now_ms()
        latest = log.latest_snapshot
        if latest is not None and end_offset <= latest.offset:
            return
        covered = log.unsnapshotted_bytes

        def write() -> KnownSnapshot:
            try:
                return log.write_snapshot(end_offset, records, now_ms)
            except OSError as error:
                raise StorageError(f"no snapshot at {end_offset}: {error}") from error

        written = await self._executor.run(write)
        log.add_snapshot(written, now_ms)
        log.unsnapshotted_bytes -= covered
        self._last_snapshot_ms = now_ms
        _logger.info("metadata snapshot written", offset=end_offset, bytes=written.size)

    # -- what others want to know --------------------------------------------------------------

    @property
    def stored(self) -> Log:
        """The log on disk, for who copies what is committed."""
        return self._log.stored

    @property
    def epoch(self) -> int:
        return self._machine.epoch

    @property
    def leader_and_epoch(self) -> LeaderAndEpoch:
        leader_id = self._machine.leader_id
        return LeaderAndEpoch(_NOBODY if leader_id is None else leader_id, self.epoch)

    @property
    def is_leader(self) -> bool:
        return self._started is not None and isinstance(self._started.state, Leader)

    @property
    def kraft_version(self) -> int:
        return self._log.quorum.kraft_version

    def describe(self) -> DescribeQuorumResponse:
        """The answer to DescribeQuorum."""
        return describe_quorum(
            self._machine.state, self._machine.voters, self._storage.replica, self._clock.now_ms()
        )

    async def subscribe(self, publisher: Publisher) -> Unsubscribe:
        """Give ``publisher`` the latest snapshot and every committed batch, then all to come."""
        offset = 0
        snapshot_id = self._log.latest_snapshot
        if snapshot_id is not None and snapshot_id.offset > 0:
            log = self._log
            snapshot = await self._executor.run(lambda: log.read_snapshot(snapshot_id))
            offset = snapshot_id.offset
            publisher(LoadedBatch(offset - 1, snapshot.records, from_snapshot=True))
        # More may be committed while it reads; it is live once there is nothing left to read.
        while offset < self._high_watermark:
            end_offset = self._high_watermark
            async for batch in self._read_log(offset, end_offset):
                publisher(batch)
            offset = end_offset
        self._publishers.append(publisher)
        return lambda: self._publishers.remove(publisher)

    # -- acting --------------------------------------------------------------------------------

    @property
    def _log(self) -> MetadataLog:
        invariant(self._opened is not None, "the quorum node is not open")
        return self._opened  # type: ignore[return-value]

    @property
    def _machine(self) -> QuorumMachine:
        invariant(self._started is not None, "the quorum node has not started")
        return self._started  # type: ignore[return-value]

    async def _act(self, effects: Sequence[Effect]) -> None:
        for effect in effects:
            match effect:
                case SaveElection(election):
                    await self._save(election)
                case BeginEpoch():
                    self._begin_epoch(effect)
                case AdvanceHighWatermark(offset):
                    self._advance(offset)
                case _:
                    invariant(False, f"a lone voter has no need of {effect}")

    async def _save(self, election: ElectionState) -> None:
        try:
            await self._executor.run(lambda: self._election_file.write(election))
        except OSError as error:
            raise StorageError(f"the election cannot be saved: {error}") from error

    def _begin_epoch(self, begun: BeginEpoch) -> None:
        log = self._log
        voters = log.quorum.voters
        invariant(voters is not None, "an epoch without voters")
        log.begin_epoch(begun.epoch)
        records = [leader_change(self._local.key.id, voters.keys, begun.granting)]  # type: ignore[union-attr]
        if log.voters_offset < 0 or voters.get(self._local.key.id) != self._local:  # type: ignore[union-attr]
            # Formatting left them beside the log; other nodes learn of them, and of a controller
            # that has moved, from the log.
            records += log.quorum.with_voter(self._local).to_control()
        log.append_control(records, begun.epoch, self._clock.now_ms())
        self._sync_soon()

    def _sync_soon(self) -> None:
        if self._syncing is None:
            self._syncing = asyncio.get_running_loop().create_task(self._sync())

    async def _sync(self) -> None:
        log, synced = self._log, -1
        try:
            while self._failure is None and synced < log.end_offset:
                end_offset = log.end_offset
                await self._executor.run(log.sync)
                synced = end_offset
                now_ms = self._clock.now_ms()
                await self._act(self._machine.log_synced(end_offset, now_ms))
        except Exception as error:  # noqa: BLE001 — after a failed sync nothing is known to be safe
            self._fail(error)
        finally:
            self._syncing = None

    def _advance(self, high_watermark: int) -> None:
        self._high_watermark = high_watermark
        self._log.commit(high_watermark)
        while self._uncommitted and self._uncommitted[0][0] <= high_watermark:
            batch = self._uncommitted.popleft()[1]
            for publisher in tuple(self._publishers):
                publisher(batch)
        for listener in tuple(self._listeners):
            listener(high_watermark)

    async def _read_log(self, offset: int, end_offset: int) -> AsyncIterator[LoadedBatch]:
        log = self._log

        def read(start: int) -> tuple[int, list[LoadedBatch]]:
            batches = log.read(start, end_offset)
            loaded = [_loaded(batch) for batch in batches if not batch.is_control]
            return batches[-1].next_offset if batches else end_offset, loaded

        while offset < end_offset:
            start = offset
            offset, loaded = await self._executor.run(lambda: read(start))  # noqa: B023 — awaited
            for batch in loaded:
                yield batch

    def _fail(self, error: Exception) -> None:
        if self._failure is None:
            self._failure = error
            _logger.error("the metadata log failed", error=str(error))
            self._on_failure(error)


def _loaded(batch: Batch) -> LoadedBatch:
    records = [(record.key, record.value) for record in decode_records(batch)]
    return LoadedBatch(batch.base_offset, records)
