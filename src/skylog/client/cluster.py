"""The cluster as seen by a client: finds brokers, leaders and coordinators, and retries."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection
from enum import IntEnum
from types import TracebackType
from typing import Any, Final, TypeVar

from skylog.client.connection import ClientConnection, open_connection
from skylog.client.errors import check, error_of
from skylog.client.metadata import Metadata, PartitionInfo, TopicInfo, TopicPartition
from skylog.client.settings import Address, ClientSettings
from skylog.kernel.errors import ErrorCode, KafkaError
from skylog.kernel.system import System, real_system
from skylog.security.tls import client_context
from skylog.wire.messages.find_coordinator_request import FindCoordinatorRequest
from skylog.wire.messages.find_coordinator_response import FindCoordinatorResponse
from skylog.wire.messages.metadata_request import MetadataRequest, MetadataRequestTopic
from skylog.wire.messages.metadata_response import MetadataResponse
from skylog.wire.schema import Message

T = TypeVar("T")
# A broker answers the requests of a connection in order, so requests that wait at the broker (a
# fetch, a rebalance) use a separate lane, which is a separate connection.
SHARED_LANE: Final = 0
_Line = tuple[Address, int]


class CoordinatorType(IntEnum):
    """What a coordinator coordinates."""

    GROUP = 0
    TRANSACTION = 1


# After these errors the request must go to another broker.
COORDINATOR_MOVED = frozenset(
    {
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NETWORK_EXCEPTION,
        ErrorCode.REQUEST_TIMED_OUT,
    }
)


class Cluster:
    """Connections and metadata that producers, consumers and admins of one client share."""

    def __init__(self, settings: ClientSettings, system: System | None = None) -> None:
        self.settings = settings
        self.system = system or real_system()
        self.metadata = Metadata()
        self._tls = client_context(settings.tls) if settings.tls is not None else None
        self._connections: dict[_Line, ClientConnection] = {}
        self._lanes = 0
        self._retired: list[ClientConnection] = []
        self._opening: dict[_Line, asyncio.Lock] = {}
        self._coordinators: dict[tuple[CoordinatorType, str], int] = {}
        self._closed = False

    async def __aenter__(self) -> Cluster:
        try:
            await self.refresh(())
        except BaseException:
            await self.close()
            raise
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Close all connections."""
        self._closed = True
        connections = [*self._connections.values(), *self._retired]
        self._connections.clear()
        self._retired.clear()
        for connection in connections:
            connection.abort()
        for connection in connections:
            await connection.close()

    # Connections --------------------------------------------------------------------------

    def new_lane(self) -> int:
        """A lane for requests that wait at the broker; ``close_lane`` closes it."""
        self._lanes += 1
        return self._lanes

    async def close_lane(self, lane: int) -> None:
        """Close the connections of a lane."""
        lines = [line for line in self._connections if line[1] == lane]
        for line in lines:
            await self._connections.pop(line).close()
        for line in [line for line in self._opening if line[1] == lane]:
            del self._opening[line]

    async def node(self, node_id: int, lane: int = SHARED_LANE) -> ClientConnection:
        """A connection to a broker by its id."""
        broker = self.metadata.brokers.get(node_id)
        if broker is None:
            raise KafkaError(ErrorCode.LEADER_NOT_AVAILABLE, f"broker {node_id} is unknown")
        return await self._connection(broker.address, lane)

    async def any_node(self) -> ClientConnection:
        """A connection to any reachable broker."""
        for (_, lane), connection in self._connections.items():
            if lane == SHARED_LANE and connection.usable:
                return connection
        known = [broker.address for broker in self.metadata.brokers.values()]
        failures: list[str] = []
        for address in dict.fromkeys((*known, *self.settings.bootstrap)):
            try:
                return await self._connection(address, SHARED_LANE)
            except KafkaError as error:
                if not error.retriable:
                    raise
                failures.append(error.message or str(error))
        raise KafkaError(ErrorCode.NETWORK_EXCEPTION, "; ".join(failures))

    async def controller(self) -> ClientConnection:
        """A connection to the broker that acts as the controller."""
        if self.metadata.controller_id in self.metadata.brokers:
            return await self.node(self.metadata.controller_id)
        return await self.any_node()

    async def _connection(self, address: Address, lane: int) -> ClientConnection:
        self._check_open()
        await self._drop_retired()
        line = (address, lane)
        async with self._opening.setdefault(line, asyncio.Lock()):
            connection = self._connections.get(line)
            if connection is not None:
                if connection.usable and not self._is_idle(connection):
                    return connection
                self._retired.append(self._connections.pop(line))
            opened = await open_connection(address, self.settings, self.system, self._tls)
            if self._closed:
                await opened.close()
            self._check_open()
            self._connections[line] = opened
            return opened

    def _check_open(self) -> None:
        if self._closed:
            raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, "the client is closed")

    def _is_idle(self, connection: ClientConnection) -> bool:
        """Brokers close idle connections: do not send a request just before that."""
        silent = self.system.clock.monotonic() - connection.last_used
        return not connection.busy and silent > self.settings.idle_ms_max / 1000

    async def _drop_retired(self) -> None:
        done = [connection for connection in self._retired if not connection.busy]
        for connection in done:
            self._retired.remove(connection)
            await connection.close()

    # Metadata -----------------------------------------------------------------------------

    async def refresh(
        self, topics: Collection[str] | None = None, *, allow_create: bool = False
    ) -> MetadataResponse:
        """Request the brokers and some topics, or (None) all of them."""
        wanted = None if topics is None else [MetadataRequestTopic(name=name) for name in topics]
        request = MetadataRequest(topics=wanted, allow_auto_topic_creation=allow_create)

        async def ask() -> MetadataResponse:
            answer: MetadataResponse = await (await self.any_node()).request(request)
            check(answer.error_code, "Metadata")
            return answer

        answer = await self.retry(ask)
        now = self.system.clock.monotonic()
        self.metadata.update(answer, now, whole=topics is None)
        return answer

    async def topic(self, name: str, *, allow_create: bool = False) -> TopicInfo:
        """A topic, requested if it is unknown or its metadata is old; raises its error if it has
        one."""
        age_ms_max = self.settings.metadata_age_ms_max
        now = self.system.clock.monotonic()
        found = self.metadata.fresh(name, now, age_ms_max)
        if found is None:
            await self.refresh((name,), allow_create=allow_create)
            found = self.metadata.topics.get(name)
        if found is None:
            unknown = KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"topic {name}")
            raise self.metadata.errors.get(name, unknown)
        return found

    async def leader(self, partition: TopicPartition) -> tuple[ClientConnection, PartitionInfo]:
        """A connection to a partition's leader. Errors are retriable and refresh the metadata."""
        topic = await self.topic(partition.topic)
        found = topic.partitions.get(partition.partition)
        if found is None:
            self.metadata.forget(partition.topic)
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"partition {partition}")
        if found.leader < 0:
            self.metadata.forget(partition.topic)
            raise KafkaError(ErrorCode.LEADER_NOT_AVAILABLE, f"partition {partition}")
        try:
            return await self.node(found.leader), found
        except KafkaError:
            self.metadata.forget(partition.topic)
            raise

    # Coordinators -------------------------------------------------------------------------

    async def coordinator(
        self, key: str, kind: CoordinatorType = CoordinatorType.GROUP, lane: int = SHARED_LANE
    ) -> ClientConnection:
        """A connection to the coordinator of a group or transactional id."""
        known = self._coordinators.get((kind, key))
        if known is None:
            known = self._coordinators[kind, key] = await self._find_coordinator(key, kind)
        try:
            return await self.node(known, lane)
        except KafkaError:
            self.forget_coordinator(key, kind)
            raise

    def forget_coordinator(self, key: str, kind: CoordinatorType = CoordinatorType.GROUP) -> None:
        """Look up the coordinator again."""
        self._coordinators.pop((kind, key), None)

    async def _find_coordinator(self, key: str, kind: CoordinatorType) -> int:
        request = FindCoordinatorRequest(key_type=kind, coordinator_keys=[key])
        connection = await self.any_node()
        answer: FindCoordinatorResponse = await connection.request(request, version_min=4)
        found = answer.coordinators[0]
        check(found.error_code, found.error_message or f"{kind.name.lower()} {key}")
        if found.node_id not in self.metadata.brokers:
            await self.refresh(())
        return found.node_id

    async def at_coordinator(
        self,
        key: str,
        request: Message,
        error_of_answer: Callable[[Any], int],
        *,
        version_min: int = 0,
        version_max: int | None = None,
        timeout_ms: int = 0,
        lane: int = SHARED_LANE,
    ) -> Any:
        """Ask a group's coordinator until it is found and ready; other errors are in the response.

        ``timeout_ms`` is how long the coordinator may let the request wait.
        """

        async def ask() -> Any:
            try:
                connection = await self.coordinator(key, lane=lane)
                answer = await connection.request(
                    request,
                    version_min=version_min,
                    version_max=version_max,
                    timeout_ms=timeout_ms,
                )
                error = error_of(error_of_answer(answer), f"group {key}")
                waits = error is not None and (
                    error.code in COORDINATOR_MOVED
                    or error.code is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
                )
                if error is not None and waits:
                    raise error
                return answer
            except KafkaError as failure:
                if failure.code in COORDINATOR_MOVED:
                    self.forget_coordinator(key)
                raise

        return await self.retry(ask)

    # Trying again -------------------------------------------------------------------------

    async def retry(self, work: Callable[[], Awaitable[T]], *, timeout_ms: int | None = None) -> T:
        """Retry the work until it succeeds, fails definitely, or times out; then raise the last
        error."""
        patience_ms = self.settings.api_timeout_ms if timeout_ms is None else timeout_ms
        deadline = self.system.clock.monotonic() + patience_ms / 1000
        attempt = 0
        while True:
            try:
                return await work()
            except KafkaError as error:
                pause = self.backoff(attempt)
                late = self.system.clock.monotonic() + pause > deadline
                if not error.retriable or late or self._closed:
                    raise
            await asyncio.sleep(pause)
            attempt += 1

    def backoff(self, attempt: int) -> float:
        """Seconds to wait before a retry: doubling each time, with 20 % jitter."""
        growing_ms = self.settings.retry_backoff_ms << min(attempt, 16)
        pause_ms = min(growing_ms, self.settings.retry_backoff_ms_max)
        return pause_ms / 1000 * (0.8 + 0.4 * self.system.rng.random())
