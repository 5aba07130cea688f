"""Fetches from the leaders of many partitions, one request per leader at a time."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field

from skylog.client.cluster import Cluster
from skylog.client.connection import ClientConnection
from skylog.client.errors import error_of
from skylog.client.fetch_session import FetchSession, Wanted
from skylog.client.metadata import TopicPartition
from skylog.client.records import ConsumerRecord, records_of
from skylog.kernel.errors import ErrorCode, KafkaError
from skylog.kernel.ids import ZERO_UUID
from skylog.wire.messages.fetch_request import FetchRequest
from skylog.wire.messages.fetch_response import FetchResponse, PartitionData


@dataclass(frozen=True, slots=True)
class FetchSettings:
    """How much to fetch at a time, and how long a broker may wait for it."""

    bytes_min: int = 1
    wait_ms_max: int = 500
    bytes_max: int = 50 * 1024 * 1024
    partition_bytes_max: int = 1024 * 1024
    committed_only: bool = False
    rack: str = ""


@dataclass(frozen=True, slots=True)
class Fetched:
    """The result of one partition; ``asked`` tells whether it is still wanted."""

    partition: TopicPartition
    asked: Wanted
    error: KafkaError | None = None
    records: list[ConsumerRecord] = field(default_factory=list)
    next_offset: int = -1
    high_watermark: int = -1


class Fetcher:
    """The fetches of one consumer. A request that has not been answered yet stays in flight."""

    def __init__(self, cluster: Cluster, settings: FetchSettings) -> None:
        self._cluster = cluster
        self._settings = settings
        self._lane = cluster.new_lane()
        self._sessions: dict[int, FetchSession] = {}
        self._tasks: dict[int, asyncio.Task[list[Fetched]]] = {}
        self._failures = 0

    async def fetch(self, wanted: Mapping[TopicPartition, int], seconds: float) -> list[Fetched]:
        """Fetch these partitions from these offsets; returns what has arrived when the time is
        up."""
        by_leader, unreachable = await self._by_leader(wanted)
        for node_id, asked in by_leader.items():
            if node_id not in self._tasks:
                work = self._ask(node_id, asked)
                self._tasks[node_id] = asyncio.ensure_future(work)
        if not self._tasks:
            await asyncio.sleep(min(seconds, self._cluster.backoff(self._failures)))
            self._failures += bool(unreachable)
            return unreachable
        done, _ = await asyncio.wait(
            self._tasks.values(), timeout=seconds, return_when=asyncio.FIRST_COMPLETED
        )
        answers = unreachable
        for node_id, task in list(self._tasks.items()):
            if task in done:
                del self._tasks[node_id]
                answers += task.result()
        self._failures = 0 if any(a.error is None for a in answers) else self._failures
        return answers

    async def close(self) -> None:
        tasks = list(self._tasks.values())
        self._tasks.clear()
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)
        await self._cluster.close_lane(self._lane)

    async def _by_leader(
        self, wanted: Mapping[TopicPartition, int]
    ) -> tuple[dict[int, dict[TopicPartition, Wanted]], list[Fetched]]:
        by_leader: dict[int, dict[TopicPartition, Wanted]] = {}
        failed: list[Fetched] = []
        for partition, offset in wanted.items():
            try:
                topic = await self._cluster.topic(partition.topic)
                info = topic.partitions.get(partition.partition)
                if info is None or info.leader < 0:
                    self._cluster.metadata.forget(partition.topic)
                    raise KafkaError(ErrorCode.LEADER_NOT_AVAILABLE, f"partition {partition}")
                by_leader.setdefault(info.leader, {})[partition] = Wanted(
                    topic.topic_id, offset, info.leader_epoch, self._settings.partition_bytes_max
                )
            except KafkaError as error:
                nothing = Wanted(ZERO_UUID, offset, -1, 0)
                failed.append(Fetched(partition, nothing, error))
        return by_leader, failed

    async def _ask(self, node_id: int, asked: dict[TopicPartition, Wanted]) -> list[Fetched]:
        session = self._sessions.setdefault(node_id, FetchSession())
        try:
            connection = await self._cluster.node(node_id, self._lane)
            answer = await self._request(connection, session, asked)
            error = error_of(answer.error_code, f"fetch from {connection.address}")
            if error is not None:
                raise error
            session.answered(answer.session_id)
        except KafkaError as error:
            session.reset()
            for partition in asked:
                self._cluster.metadata.forget(partition.topic)
            await asyncio.sleep(self._cluster.backoff(self._failures))
            self._failures += 1
            return [Fetched(partition, want, error) for partition, want in asked.items()]
        except asyncio.CancelledError:
            session.reset()
            raise
        return self._partitions(answer, asked)

    async def _request(
        self,
        connection: ClientConnection,
        session: FetchSession,
        asked: dict[TopicPartition, Wanted],
    ) -> FetchResponse:
        settings = self._settings
        request = FetchRequest(
            max_wait_ms=settings.wait_ms_max,
            min_bytes=settings.bytes_min,
            max_bytes=settings.bytes_max,
            isolation_level=int(settings.committed_only),
            rack_id=settings.rack,
        )
        session.fill(request, asked)
        named = any(want.topic_id == ZERO_UUID for want in asked.values())
        answer: FetchResponse = await connection.request(
            request, version_max=12 if named else None, timeout_ms=settings.wait_ms_max
        )
        return answer

    def _partitions(
        self, answer: FetchResponse, asked: dict[TopicPartition, Wanted]
    ) -> list[Fetched]:
        names = {want.topic_id: key.topic for key, want in asked.items()}
        found = []
        for topic in answer.responses:
            name = topic.topic or names.get(topic.topic_id, "")
            for data in topic.partitions:
                key = TopicPartition(name, data.partition_index)
                if key in asked:
                    found.append(self._partition(key, asked[key], data))
        return found

    def _partition(self, key: TopicPartition, asked: Wanted, data: PartitionData) -> Fetched:
        error = error_of(data.error_code, f"partition {key}")
        if error is not None:
            if error.code is not ErrorCode.OFFSET_OUT_OF_RANGE:
                self._cluster.metadata.forget(key.topic)
            return Fetched(key, asked, error)
        try:
            records, position = records_of(
                key, data, asked.offset, committed_only=self._settings.committed_only
            )
        except KafkaError as damaged:
            return Fetched(key, asked, damaged)
        return Fetched(key, asked, None, records, position, data.high_watermark)
