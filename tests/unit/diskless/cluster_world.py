"""Brokers in one process: coordinators on some of them, and an unreliable network between them.

A metadata partition is one log for all brokers; a new leader may lack what was not replicated.
Everything above the log is real. Messages go through the codec, as on a socket.
"""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from skylog.diskless.coordinator.api import DisklessApi
from skylog.diskless.coordinator.inspection import merged_pages
from skylog.diskless.coordinator.own_api import OwnApi
from skylog.diskless.coordinator.settings import RuntimeSettings
from skylog.diskless.plane import CoordinatorOf, FileInfo, RetentionResult, TopicPartition
from skylog.diskless.planes.cluster import ClusterCoordinators
from skylog.diskless.planes.topic import TopicPlane
from skylog.kernel.clock import ManualClock
from skylog.kernel.errors import ErrorCode, KafkaError
from skylog.kernel.executor import InlineExecutor
from skylog.wire.apis import response_class
from skylog.wire.batch import Batch
from skylog.wire.codec import decode, encode
from tests.unit.diskless.coordinator.support import FakePartition, Home

METHODS = {
    93: "create_partitions",
    94: "delete_topics",
    95: "commit_file",
    96: "delete_records",
    97: "list_offsets",
    98: "find_batches",
    100: "describe_files",
    506: "receive_file",
    507: "pin_files",
    508: "read_ranges",
    509: "fetch_snapshot",
}


@dataclass
class Faults:
    """How often a request is lost, its response is lost, it is duplicated, or it is delayed."""

    lost: float = 0.0
    answer_lost: float = 0.0
    twice: float = 0.0
    late: float = 0.0


class FakePeers:
    """``calls.Peers`` of one broker."""

    def __init__(self, world: World, node_id: int) -> None:
        self._world = world
        self._node_id = node_id

    async def send(
        self,
        node_id: int,
        request: Any,
        version: int | None = None,
        *,
        lane: str = "",
        timeout_ms: int | None = None,
    ) -> Any:
        world, faults, rng = self._world, self._world.faults, self._world.rng
        world.sent[type(request).__name__] += 1
        world.lanes.add((node_id, lane))
        if node_id in world.cut or self._node_id in world.cut or rng.random() < faults.lost:
            raise KafkaError(ErrorCode.NETWORK_EXCEPTION, "not sent")
        if rng.random() < faults.twice and not getattr(request, "wait_ms", 0):
            world.later(self._served(node_id, request))
        if rng.random() < faults.late:
            for _ in range(rng.randrange(20)):
                await asyncio.sleep(0)
        answer = await self._served(node_id, request)
        if rng.random() < faults.answer_lost:
            raise KafkaError(ErrorCode.NETWORK_EXCEPTION, "not answered", ambiguous=True)
        return answer

    async def _served(self, node_id: int, request: Any) -> Any:
        member = self._world.members[node_id]
        asked = decode(type(request), encode(request, 0), 0)
        method = METHODS[request.API_KEY]
        api = member.own_api if request.API_KEY >= 500 else member.api
        answer = await getattr(api, method)(asked)
        return decode(response_class(request.API_KEY), encode(answer, 0), 0)


class LaggingPartition(FakePartition):
    """Followers get appended records some turns of the loop later, or never."""

    def __init__(self, rng: random.Random) -> None:
        super().__init__()
        self.isr = (0, 1, 2)
        self.held = True
        self._rng = rng

    def append(self, batches: Sequence[Batch], now_ms: int) -> None:
        super().append(batches, now_ms)
        self._replicate(self.log.log_end_offset, self.leader_epoch, self._rng.randrange(30))

    def _replicate(self, offset: int, epoch: int, turns: int) -> None:
        if epoch != self.leader_epoch:
            return  # its leader was replaced
        if turns:
            loop = asyncio.get_running_loop()
            loop.call_soon(self._replicate, offset, epoch, turns - 1)
        elif offset > self.log.high_watermark:
            self.commit(offset)

    def elect(self) -> None:
        """What was not replicated is lost."""
        self.leader_epoch += 1
        self.truncate(self.log.high_watermark)


@dataclass
class Member:
    """One broker."""

    world: World
    node_id: int
    home: Home
    cluster: ClusterCoordinators = field(init=False)
    plane: TopicPlane = field(init=False)
    api: DisklessApi = field(init=False)
    own_api: OwnApi = field(init=False)

    def __post_init__(self) -> None:
        world, local = self.world, self.home.coordinators
        self.home.rng = random.Random(self.node_id)  # no two brokers make the same keys
        peers = FakePeers(world, self.node_id)
        self.cluster = ClusterCoordinators(local, self, peers, world.rng)
        self.plane = TopicPlane(self.cluster, world.coordinator_of, world.rng)
        here = TopicPlane(local, world.coordinator_of, world.rng)
        self.api = DisklessApi(here, local, world.coordinator_of)
        self.own_api = OwnApi(local, InlineExecutor())

    # planes.cluster.Locations

    def coordinator_ids(self) -> list[int]:
        return sorted(self.world.leaders)

    def leader(self, coordinator_id: int) -> int | None:
        return self.world.leaders.get(coordinator_id)


class World:
    """Brokers 0, 1, …; ``leaders`` is what cluster metadata says."""

    def __init__(
        self,
        directory: Path,
        brokers: int,
        coordinator_of: CoordinatorOf,
        *,
        clock: ManualClock | None = None,
        settings: RuntimeSettings | None = None,
        seed: int = 0,
        lagging: bool = False,
    ) -> None:
        self.rng = random.Random(seed)
        self.coordinator_of = coordinator_of
        self.faults = Faults()
        self.leaders: dict[int, int] = {}
        self.partitions: dict[int, FakePartition] = {}
        self._lagging = lagging
        self.sent: Counter[str] = Counter()
        self.lanes: set[tuple[int, str]] = set()
        # Unreachable brokers.
        self.cut: set[int] = set()
        self._tasks: set[asyncio.Task[Any]] = set()
        self.clock = clock or ManualClock()
        self.members = [
            Member(
                self,
                node_id,
                Home(
                    directory / str(node_id),
                    self.clock,
                    settings or RuntimeSettings(),
                    in_memory=True,
                ),
            )
            for node_id in range(brokers)
        ]

    async def lead(self, coordinator_id: int, node_id: int) -> None:
        """Elect a broker; the previous leader is unloaded."""
        before = self.leaders.get(coordinator_id)
        partition = self.partitions.setdefault(coordinator_id, self._new_partition())
        if before is not None:
            self.members[before].home.coordinators.partition_resigned(coordinator_id)
            partition.elect()
        self.leaders[coordinator_id] = node_id
        self.members[node_id].home.coordinators.partition_led(coordinator_id, partition)
        for member in self.members:
            member.cluster.leaders_changed()
        for member in self.members:
            await member.home.coordinators.loaded()

    def _new_partition(self) -> FakePartition:
        return LaggingPartition(self.rng) if self._lagging else FakePartition()

    def later(self, work: Awaitable[Any]) -> None:
        """A delayed duplicate arrives after other messages."""

        async def wait() -> None:
            for _ in range(self.rng.randrange(60)):
                await asyncio.sleep(0)
            await work

        task = asyncio.ensure_future(wait())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def settled(self) -> None:
        """Wait until all messages have arrived."""
        while self._tasks:
            await asyncio.gather(*self._tasks, return_exceptions=True)

    async def close(self) -> None:
        await self.settled()
        for member in self.members:
            await member.cluster.close()


@asynccontextmanager
async def world(
    directory: Path, brokers: int, coordinator_of: CoordinatorOf, **more: Any
) -> AsyncIterator[World]:
    opened = World(directory, brokers, coordinator_of, **more)
    try:
        yield opened
    finally:
        opened.faults = Faults()
        await opened.close()


async def until_known(call: Callable[[], Awaitable[Any]], tries: int = 500) -> Any:
    """As the writer does: repeat until the outcome is known."""
    for _ in range(tries):
        try:
            return await call()
        except KafkaError as error:
            if not error.retriable:
                raise
        await asyncio.sleep(0)
    raise AssertionError("no answer")


class Everywhere:
    """The plane of one broker; the leaders' background work runs on all of them."""

    def __init__(self, members: Sequence[Member]) -> None:
        self._members = members

    def __getattr__(self, name: str) -> Any:
        return getattr(self._members[0].plane, name)

    async def start(self) -> None:
        for member in self._members:
            await member.plane.start()

    def owns(self, partition: TopicPartition) -> bool:
        return self._one(member.plane.owns(partition) for member in self._members)

    def is_caretaker(self) -> bool:
        return self._one(member.plane.is_caretaker() for member in self._members)

    def _one(self, answers: Iterable[bool]) -> bool:
        """Only one broker may do each piece of work."""
        count = sum(answers)
        assert count <= 1
        return count == 1

    def other_brokers(self) -> list[int]:
        """All of them have been asked."""
        mine, *others = self._members
        assert set(mine.plane.other_brokers()) <= {member.node_id for member in others}
        return []

    async def known_topics(self) -> list[Any]:
        known = [await member.plane.known_topics() for member in self._members]
        return list({topic for topics in known for topic in topics})

    async def files_to_delete(self, marked_before_ms: int, limit: int) -> list[str]:
        found: dict[str, None] = {}
        for _ in range(len(self._members)):  # a file may have to pass through all coordinators
            for member in self._members:
                free = await member.plane.files_to_delete(marked_before_ms, limit)
                found.update(dict.fromkeys(free))
        return list(found)[: limit or None]

    async def confirm_deleted(self, keys: Sequence[str]) -> None:
        for member in self._members:
            await member.plane.confirm_deleted(keys)

    async def enforce_retention(
        self, requests: Sequence[Any], max_batches: int
    ) -> list[RetentionResult]:
        return await self._by_leader("enforce_retention", requests, max_batches)

    async def _by_leader(self, method: str, requests: Sequence[Any], *more: Any) -> list[Any]:
        """Each item from the broker that does not answer NOT_COORDINATOR."""
        results: list[Any] = [None] * len(requests)
        for member in self._members:
            answers = await getattr(member.plane, method)(requests, *more)
            for place, answer in enumerate(answers):
                if results[place] is None or results[place].error is ErrorCode.NOT_COORDINATOR:
                    results[place] = answer
        return results

    async def list_files(self, after: str, limit: int) -> list[FileInfo]:
        pages = [await member.plane.list_files(after, limit) for member in self._members]
        return merged_pages(pages, limit)

    async def describe_coordinators(self) -> list[Any]:
        found = [await member.plane.describe_coordinators() for member in self._members]
        return sorted((one for infos in found for one in infos), key=lambda one: one.coordinator_id)
