"""One node of the metadata quorum, as the rest of the process sees it.

While it leads, it is the log of the controller's machine. It publishes what is committed: first to
publishers, then to listeners of the high watermark, so that when a request's reply is sent, this
node's own metadata shows its effect.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass
from typing import Final

from skylog.client.settings import Address
from skylog.kernel.clock import Clock
from skylog.kernel.errors import ErrorCode, KafkaError, StorageError, invariant
from skylog.kernel.executor import Executor
from skylog.kernel.logging import get_logger
from skylog.kernel.rng import Random
from skylog.kernel.system import System
from skylog.log.files import Files
from skylog.log.locks import DirectoryLock
from skylog.log.log import Log
from skylog.quorum.acting import Acting
from skylog.quorum.config import QuorumConfig
from skylog.quorum.describe import describe_quorum
from skylog.quorum.driver import Driver
from skylog.quorum.election import ElectionState
from skylog.quorum.election_file import ElectionFile
from skylog.quorum.log import MetadataLog
from skylog.quorum.machine import QuorumMachine
from skylog.quorum.peers import Peers
from skylog.quorum.publishing import Publisher, Publishing
from skylog.quorum.retention import KnownSnapshot
from skylog.quorum.serving import Serving
from skylog.quorum.storage import NodeStorage
from skylog.quorum.voters import Endpoint, Voter, VoterSet
from skylog.replicated.log import KeyValue, LoadedBatch, Unsubscribe
from skylog.wire.messages.describe_quorum_response import DescribeQuorumResponse
from skylog.wire.schema import Message

_logger = get_logger("quorum.node")
_NO_NODE: Final = -1


@dataclass(frozen=True, slots=True)
class LeaderAndEpoch:
    """``leader_id`` is −1 if there is none."""

    leader_id: int
    epoch: int


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
        """``on_failure`` is called if the log cannot be written or followed: the owner must then
        stop this node, and may start another on the same directory."""
        self._storage = storage
        self._local = Voter(storage.replica, config.endpoints)
        self._config = config
        self._files = files
        self._clock = clock
        self._executor = executor
        self._rng = rng
        self._on_failure = on_failure
        self._peers = Peers(config.peers(storage.cluster_id), System(clock, rng, executor))
        self._serving = Serving(self, self._peers, storage.cluster_id, config)
        self._lock: DirectoryLock | None = None
        self._opened: MetadataLog | None = None
        self._started: QuorumMachine | None = None
        self._driver: Driver | None = None
        self._leadership_listeners: list[Callable[[bool], None]] = []
        self._failure: Exception | None = None
        self._closed = False
        self._last_snapshot_ms = 0

    # -- life cycle ----------------------------------------------------------------------------

    async def start(self) -> None:
        """Open the log and take part in the quorum; a single voter leads when this returns."""
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
        election_file = ElectionFile(self._files, directory)

        def read() -> tuple[MetadataLog, ElectionState | None]:
            try:
                # A lock of its own, before the first write: the broker's logs are locked later.
                self._lock = DirectoryLock(str(directory))
                log = MetadataLog.open(directory, self._files, self._config.log, now_ms)
                # What an earlier process left counts as durable from now on.
                log.sync()
                return log, election_file.read()
            except OSError as error:
                raise StorageError(f"{directory} cannot be read: {error}") from error

        self._opened, saved = await self._executor.run(read)
        machine = QuorumMachine(self._local, self._log, self._config.options, self._rng)
        stranger = self._config.controller and self._local.key not in machine.voters
        if stranger and not self._config.bootstrap:
            raise StorageError(
                f"{directory} names other voters than this node: {machine.voters.keys}; "
                "controller.quorum.bootstrap.servers must say where they are"
            )
        self._started = machine
        self._driver = self._build_driver(machine, election_file)
        await self._driver.start(saved)

    def _build_driver(self, machine: QuorumMachine, election_file: ElectionFile) -> Driver:
        log, executor, clock = self._log, self._executor, self._clock
        self._publishing = Publishing(log, executor, self._fail)
        return Driver(
            machine,
            log,
            Acting(log, self._local, election_file, self._publishing, executor, clock),
            self._publishing,
            self._peers,
            System(clock, self._rng, executor),
            self,
        )

    async def close(self) -> None:
        """Resign, make everything durable and close the files."""
        if self._opened is None or self._closed:
            return
        self._closed = True
        if self._driver is not None:
            await self._driver.close()
        await self._peers.close()
        try:
            if self._failure is None:
                await self._executor.run(self._log.close)
        finally:
            self._unlock()

    async def abandon(self) -> None:
        """Stop at once without notifying others, leaving the files as a killed process would."""
        self._closed = True
        if self._driver is not None:
            self._driver.abandon()
        await self._peers.close()
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
        return 0 if self._started is None else self._publishing.high_watermark

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
            # How much of it is on disk is unknown.
            self._fail(error)
            raise KafkaError(error.code, error.message, ambiguous=True) from error
        self._publishing.appended(end_offset, LoadedBatch(base_offset, records))
        self.driver.sync_soon()
        return end_offset

    def on_high_watermark(self, listener: Callable[[int], None]) -> Unsubscribe:
        return self._publishing.on_high_watermark(listener)

    async def read_all(self) -> AsyncIterator[LoadedBatch]:
        """The latest snapshot, then every batch after it up to the log's current end."""
        log, end_offset = self._log, self._log.end_offset
        offset = 0
        snapshot_id = log.latest_snapshot
        if snapshot_id is not None and snapshot_id.offset > 0:
            snapshot = await self._executor.run(lambda: log.read_snapshot(snapshot_id))
            offset = snapshot_id.offset
            yield LoadedBatch(offset - 1, snapshot.records, from_snapshot=True)
        async for batch in self._publishing.read_log(offset, end_offset):
            yield batch

    def snapshot_due(self, now_ms: int) -> bool:
        """Whether enough has been committed, or enough time has passed, since the last one."""
        added = self._log.unsnapshotted_bytes
        if added >= self._config.log.snapshot_after_bytes:
            return True
        interval_ms = self._config.log.snapshot_after_ms
        return bool(added and interval_ms) and now_ms - self._last_snapshot_ms >= interval_ms

    async def write_snapshot(self, end_offset: int, records: Sequence[KeyValue]) -> None:
        """Store the state as of ``end_offset`` and delete the log before it as configured."""
        invariant(end_offset <= self.high_watermark, f"a snapshot at uncommitted {end_offset}")
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

    # -- queries -------------------------------------------------------------------------------

    @property
    def stored(self) -> Log:
        """The log on disk, for backups of committed records."""
        return self._log.stored

    @property
    def epoch(self) -> int:
        return self._machine.epoch

    @property
    def leader_and_epoch(self) -> LeaderAndEpoch:
        leader_id = self._machine.leader_id
        return LeaderAndEpoch(_NO_NODE if leader_id is None else leader_id, self.epoch)

    @property
    def leader_endpoint(self) -> Endpoint | None:
        """The leader's address, if it is another node and known."""
        return self._machine.leader_endpoint

    @property
    def strangers(self) -> frozenset[Address]:
        """Controllers in the settings that belong to another cluster."""
        return frozenset(self._peers.strangers)

    def renew(self) -> None:
        """Use changed certificates for new connections."""
        self._peers.renew()

    @property
    def is_leader(self) -> bool:
        return self._driver is not None and self._driver.is_leader

    @property
    def voters(self) -> VoterSet:
        """The voters, as far as this node knows."""
        return self._machine.voters

    @property
    def kraft_version(self) -> int:
        return self._log.quorum.kraft_version

    def on_leadership(self, listener: Callable[[bool], None]) -> None:
        """Call ``listener`` when this node begins to lead and when it no longer does."""
        self._leadership_listeners.append(listener)

    def describe(self) -> DescribeQuorumResponse:
        """The answer to DescribeQuorum."""
        now_ms = self.driver.now_ms()
        return describe_quorum(
            self._machine.state,
            self._machine.voters,
            self._local.key,
            now_ms,
            self._clock.now_ms() - now_ms,
        )

    async def subscribe(self, publisher: Publisher) -> Unsubscribe:
        """Pass ``publisher`` the latest snapshot and every committed batch, then all new ones."""
        return await self._publishing.subscribe(publisher)

    async def serve(self, message: Message, version: int) -> Message:
        """Answer another replica, or an operator who changes the voters."""
        if self._closed or self._failure is not None or self._driver is None:
            raise KafkaError(ErrorCode.BROKER_NOT_AVAILABLE)
        return await self._serving.serve(message, version)

    # -- internals -----------------------------------------------------------------------------

    @property
    def driver(self) -> Driver:
        invariant(self._driver is not None, "the quorum node has not started")
        return self._driver  # type: ignore[return-value]

    @property
    def _log(self) -> MetadataLog:
        invariant(self._opened is not None, "the quorum node is not open")
        return self._opened  # type: ignore[return-value]

    @property
    def _machine(self) -> QuorumMachine:
        invariant(self._started is not None, "the quorum node has not started")
        return self._started  # type: ignore[return-value]

    # -- callbacks of the driver ---------------------------------------------------------------

    def driver_has_news(self) -> None:
        self._serving.wake()

    def driver_leads(self, leads: bool) -> None:
        for listener in tuple(self._leadership_listeners):
            listener(leads)

    def driver_failed(self, error: Exception) -> None:
        self._failure = self._failure or error
        self._on_failure(error)

    def _fail(self, error: Exception) -> None:
        self.driver.fail(error)
