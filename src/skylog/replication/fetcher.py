"""Fetches partitions from one leader and appends the records, one request after another.

An error affects only its own partition: after one, such as a full disk here or at the leader, that
partition pauses for a while. One whose log is offline is dropped until the next metadata change.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from skylog.kernel.errors import ErrorCode, KafkaError
from skylog.kernel.limits import TIER_REBUILDS_MAX
from skylog.kernel.logging import get_logger
from skylog.kernel.waiting import end_tasks
from skylog.log.fetched import check_fetched
from skylog.replication.follower import EpochEnd, FetchState, out_of_range, truncation_offset
from skylog.replication.leader_questions import LeaderQuestions
from skylog.replication.session import Key, ReplicaSession
from skylog.replication.tier_rebuild import TierRebuild
from skylog.replication.tier_state import lacks_history
from skylog.wire.messages.fetch_request import FetchPartition, FetchRequest, ReplicaState
from skylog.wire.messages.fetch_response import FetchResponse, PartitionData

if TYPE_CHECKING:
    from skylog.replication.partition import Partition
    from skylog.replication.ports import FetchPorts, FetchSettings, RemoteTier

log = get_logger("replication.fetcher")
LATEST: Final = -1
EARLIEST: Final = -2
# Other tasks get a turn after this many bytes.
_BYTES_PER_TURN: Final = 1 << 20
# How soon a partition that is over its quota is tried again.
_THROTTLE_MS: Final = 100
_SESSION_LOST: Final = frozenset(
    {
        ErrorCode.FETCH_SESSION_ID_NOT_FOUND,
        ErrorCode.INVALID_FETCH_SESSION_EPOCH,
        ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR,
    }
)
# The leader has newer or older metadata than this broker, as happens while changes spread.
_EXPECTED: Final = frozenset(
    {
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.UNKNOWN_LEADER_EPOCH,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.INCONSISTENT_TOPIC_ID,
    }
)


class Fetcher:
    """One connection to one leader. All calls come from the event loop."""

    def __init__(self, leader_id: int, lane: str, settings: FetchSettings, ports: FetchPorts):
        self._leader_id = leader_id
        self._lane = lane
        self._settings = settings
        self._ports = ports
        self._session = ReplicaSession()
        self._states: dict[Partition, FetchState] = {}
        self._by_key: dict[Key, Partition] = {}
        # Those that pause after an error.
        self._resting: dict[Partition, None] = {}
        self._leader = LeaderQuestions(ports.peers, settings.node_id, leader_id, lane)
        self._rebuilds: dict[Partition, asyncio.Task[None]] = {}
        self._rebuild_slots = asyncio.Semaphore(TIER_REBUILDS_MAX)
        self.failed: set[Partition] = set()
        self._work = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    def __len__(self) -> int:
        return len(self._states)

    @property
    def lag_max(self) -> int:
        """The lag of the slowest partition in records; may be called from any thread."""
        return max((state.lag or 0 for state in tuple(self._states.values())), default=0)

    def add(self, partition: Partition) -> None:
        """Fetch a partition in its current leader epoch."""
        known = self._states.get(partition)
        if known is not None and known.leader_epoch == partition.leader_epoch:
            return
        self.failed.discard(partition)
        self._stop_rebuild(partition)
        store = partition.log
        if store.latest_epoch < 0 and store.log_end_offset > store.high_watermark and store.size:
            # The leader epoch of these records is unknown: only committed ones are kept.
            partition.truncate_to(store.high_watermark)
        state = FetchState(partition.leader_epoch, store.log_end_offset, store.latest_epoch)
        self._states[partition] = state
        self._by_key[_key(partition)] = partition
        self._resting.pop(partition, None)
        self._want(partition, state)
        self._work.set()
        if self._task is None or self._task.done():
            self._task = asyncio.get_running_loop().create_task(self._run())

    def remove(self, partition: Partition) -> None:
        self.failed.discard(partition)
        self._stop_rebuild(partition)
        if self._states.pop(partition, None) is not None:
            self._resting.pop(partition, None)
            key = _key(partition)
            if self._by_key.get(key) is partition:
                del self._by_key[key]
            self._session.drop(key)

    def _stop_rebuild(self, partition: Partition) -> None:
        """Whatever it has done so far is done again, or was complete."""
        task = self._rebuilds.pop(partition, None)
        if task is not None:
            task.cancel()

    async def close(self) -> None:
        tasks = [*self._rebuilds.values()]
        if self._task is not None:
            tasks.append(self._task)
        await end_tasks(tasks)

    # -- requests ------------------------------------------------------------------------------

    async def _run(self) -> None:
        await self._ports.started.wait()
        while True:
            try:
                self._wake_rested()
                if self._session.has_work:
                    await self._fetch()
                elif self._states:
                    await self._rest()
                else:
                    return
            except KafkaError as error:
                log.debug("leader not reached", leader=self._leader_id, why=str(error))
                self._all_rest()
            except Exception:
                log.exception("fetch failed", leader=self._leader_id)
                self._all_rest()

    async def _rest(self) -> None:
        """Wait until the first pause ends, or a partition is added or rebuilt."""
        self._work.clear()
        ready_ms = min((self._states[each].ready_ms for each in self._resting), default=None)
        wait = None
        if ready_ms is not None:
            wait = max(ready_ms - self._ports.clock.now_ms(), 1) / 1000
        try:
            async with asyncio.timeout(wait):
                await self._work.wait()
        except TimeoutError:
            return

    def _wake_rested(self) -> None:
        if not self._resting:
            return
        now_ms = self._ports.clock.now_ms()
        for partition in tuple(self._resting):
            state = self._states[partition]
            if state.ready_ms <= now_ms:
                del self._resting[partition]
                self._want(partition, state)

    def _want(self, partition: Partition, state: FetchState) -> None:
        """Request what comes next, unless the partition is over its quota."""
        if not self._is_founded(partition, state):
            self._rebuild(partition, state)
            return
        quota = self._ports.quota
        if (
            not state.in_sync
            and quota.is_throttled(partition.topic, partition.index)
            and quota.exceeded
        ):
            self._rests(partition, state, _THROTTLE_MS)
            return
        self._session.want(
            _key(partition),
            FetchPartition(
                partition=partition.index,
                current_leader_epoch=state.leader_epoch,
                fetch_offset=state.offset,
                last_fetched_epoch=state.last_epoch,
                log_start_offset=partition.log.log_start_offset,
                partition_max_bytes=self._settings.partition_bytes_max,
            ),
        )

    def _rests(self, partition: Partition, state: FetchState, wait_ms: int) -> None:
        state.ready_ms = self._ports.clock.now_ms() + wait_ms
        self._resting[partition] = None
        self._session.drop(_key(partition))

    def _all_rest(self) -> None:
        for partition, state in self._states.items():
            if partition not in self._resting and partition not in self._rebuilds:
                self._rests(partition, state, self._settings.backoff_ms)
        self._session.reset()

    async def _fetch(self) -> None:
        settings = self._settings
        request = FetchRequest(
            replica_state=ReplicaState(settings.node_id, self._ports.broker_epoch()),
            max_wait_ms=settings.wait_ms_max,
            min_bytes=settings.bytes_min,
            max_bytes=settings.response_bytes_max,
        )
        self._session.fill(request)
        response: FetchResponse = await self._ports.peers.send(
            self._leader_id, request, lane=self._lane, timeout_ms=settings.wait_ms_max
        )
        code = ErrorCode(response.error_code)
        if code in _SESSION_LOST:
            self._session.reset()
            return
        if code is not ErrorCode.NONE:
            raise KafkaError(code)
        self._session.answered(response.session_id)
        await self._take(response)

    # -- responses -----------------------------------------------------------------------------

    async def _take(self, response: FetchResponse) -> None:
        taken = 0
        for topic in response.responses:
            for data in topic.partitions:
                key = topic.topic_id, data.partition_index
                partition, asked = self._by_key.get(key), self._session.asked(key)
                state = None if partition is None else self._states.get(partition)
                if partition is None or state is None or asked is None:
                    continue
                if (asked.fetch_offset, asked.current_leader_epoch) != (
                    state.offset,
                    state.leader_epoch,
                ):
                    continue  # it was truncated, or has another leader, since the request
                await self._take_partition(partition, state, data)
                taken += len(data.records or b"")
                if taken >= _BYTES_PER_TURN:
                    taken = 0
                    await asyncio.sleep(0)

    async def _take_partition(
        self, partition: Partition, state: FetchState, data: PartitionData
    ) -> None:
        try:
            code = ErrorCode(data.error_code)
            if code is ErrorCode.OFFSET_OUT_OF_RANGE:
                await self._reset_offset(partition, state)
            elif code is ErrorCode.OFFSET_MOVED_TO_TIERED_STORAGE:
                self._rebuild(partition, state)
            elif code is not ErrorCode.NONE:
                raise KafkaError(code)
            elif data.diverging_epoch.epoch >= 0:
                self._truncate(partition, state, data)
            else:
                self._append(partition, state, data)
        except KafkaError as error:
            if self._states.get(partition) is state:
                self._failed(partition, state, error)
        except Exception:
            log.exception("partition not fetched", partition=str(partition))
            self._give_up(partition)

    def _append(self, partition: Partition, state: FetchState, data: PartitionData) -> None:
        """Append the records, if any, and follow the leader's watermarks."""
        ports, store = self._ports, partition.log
        started_at = store.log_start_offset
        size = len(data.records or b"")
        if data.records:
            fetched = check_fetched(data.records, state.leader_epoch)
            partition.append_fetched(fetched, ports.clock.now_ms())
            ports.quota.record(partition.topic, partition.index, size)
            ports.fetched(partition.topic, size)
        partition.follow(data.high_watermark, data.log_start_offset)
        state.advance(store, data.high_watermark)
        if size or store.log_start_offset != started_at:
            self._want(partition, state)

    def _truncate(self, partition: Partition, state: FetchState, data: PartitionData) -> None:
        end = EpochEnd(data.diverging_epoch.epoch, data.diverging_epoch.end_offset)
        offset = truncation_offset(partition.log, end)
        log.info(
            "log truncated to the leader's",
            partition=str(partition),
            offset=offset,
            end_offset=partition.log.log_end_offset,
            leader_epoch=end.epoch,
            leader_end_offset=end.end_offset,
        )
        partition.truncate_to(offset)
        self._go_on(partition, state)

    def _go_on(self, partition: Partition, state: FetchState) -> None:
        """Ask again at once, unless the request would be the same."""
        before = state.offset, state.last_epoch
        state.restart(partition.log)
        if (state.offset, state.last_epoch) == before:
            self._rests(partition, state, self._settings.backoff_ms)
        else:
            self._want(partition, state)

    async def _reset_offset(self, partition: Partition, state: FetchState) -> None:
        """The leader has no record at our end: find out where to continue."""
        epoch = state.leader_epoch
        leader_end = (await self._leader.offset(partition, epoch, LATEST)).offset
        leader_start = (await self._leader.offset(partition, epoch, EARLIEST)).offset
        if self._states.get(partition) is not state:
            return
        reset = out_of_range(partition.log.log_end_offset, leader_start, leader_end)
        log.warning(
            "log out of the leader's range",
            partition=str(partition),
            end_offset=partition.log.log_end_offset,
            leader_start_offset=leader_start,
            leader_end_offset=leader_end,
        )
        if reset.fully:
            partition.truncate_fully_and_start_at(reset.offset)
        else:
            partition.truncate_to(reset.offset)
        state.lag = max(leader_end - partition.log.log_end_offset, 0)
        self._go_on(partition, state)

    # -- replicas that continue behind the remote log ------------------------------------------

    def _is_founded(self, partition: Partition, state: FetchState) -> bool:
        """Whether a log knows what came before it, or that nothing did."""
        return (
            state.last_epoch >= 0
            or self._ports.remote_tier is None
            or not partition.log.config.remote
            or not lacks_history(partition.log)
        )

    def _rebuild(self, partition: Partition, state: FetchState) -> None:
        """In a task of its own: a slow object store must not delay other partitions, as producers
        wait until these are fetched."""
        tier = self._ports.remote_tier
        if tier is None:
            raise KafkaError(ErrorCode.OFFSET_MOVED_TO_TIERED_STORAGE, "tiered storage is off")
        self._session.drop(_key(partition))
        work = self._rebuild_apart(partition, state, tier)
        self._rebuilds[partition] = asyncio.get_running_loop().create_task(work)

    async def _rebuild_apart(
        self, partition: Partition, state: FetchState, tier: RemoteTier
    ) -> None:
        error: KafkaError | None = None
        try:
            async with self._rebuild_slots:
                await self._ports.started.wait()
                await TierRebuild(partition, self._leader, tier).run()
        except KafkaError as raised:
            error = raised
        except Exception:
            log.exception("replica not rebuilt", partition=str(partition))
            error = KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR)
        # A cancelled task does not come here: another one may have its place.
        del self._rebuilds[partition]
        tier.rebuilt(partition.topic, error)
        if error is not None:
            self._failed(partition, state, error)
        else:
            self._go_on(partition, state)
        self._work.set()

    def _failed(self, partition: Partition, state: FetchState, error: KafkaError) -> None:
        if error.code is ErrorCode.FENCED_LEADER_EPOCH:
            log.debug("partition waits for metadata", partition=str(partition))
            self._give_up(partition)
            return
        if partition.log.is_offline:
            log.error("partition no longer fetched", partition=str(partition), why=str(error))
            self._give_up(partition)
            return
        tell = log.debug if error.code in _EXPECTED else log.warning
        tell("partition paused", partition=str(partition), why=str(error))
        self._rests(partition, state, self._settings.backoff_ms)

    def _give_up(self, partition: Partition) -> None:
        self.remove(partition)
        self.failed.add(partition)


def _key(partition: Partition) -> Key:
    return partition.topic_id, partition.index
