"""A broker's parts without sockets and disks."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Sequence
from types import SimpleNamespace
from typing import Any

from skylog.broker.handlers.fetch import fetch
from skylog.broker.handlers.fetch_sessions import FetchSessions, FetchSessionSettings
from skylog.broker.net.quota_gate import QuotaGate
from skylog.broker.observe.traffic import Traffic
from skylog.broker.partitions.classic import ClassicPartitions
from skylog.broker.partitions.factory import Partitions
from skylog.controller.image.topics import PartitionKind
from skylog.kernel.clock import ManualClock
from skylog.kernel.errors import ErrorCode, KafkaError
from skylog.log.appender import AppendInfo
from skylog.log.config import LogConfig
from skylog.log.files import WouldBlock
from skylog.log.reader import ReadInfo
from skylog.replication.partition import Partition
from skylog.security.quotas import ClientQuotas
from skylog.wire.batch import Batch, split_batches
from skylog.wire.messages.fetch_response import FetchResponse
from skylog.wire.records import encode_batch
from tests.integration.broker_client import fetch_request
from tests.unit.replication.support import Host, state

NODE = 1
VERSION = 12


class MemoryLog:
    """The part of a log that a fetch needs; ``cold`` makes it wait for a disk."""

    def __init__(self) -> None:
        self.log_start_offset = 0
        # What is before it is in the object store only.
        self.local_start = 0
        self.high_watermark = 0
        self.cold = False
        self.epochs: list[int] = []
        self.config = LogConfig()
        self._batches: list[bytes] = []
        # Itself: it plays all parts of a log.
        self.reader = self.appender = self.companions = self.trimming = self

    @property
    def local_log_start_offset(self) -> int:
        return max(self.local_start, self.log_start_offset)

    @property
    def log_end_offset(self) -> int:
        return len(self._batches)

    @property
    def last_stable_offset(self) -> int:
        return self.high_watermark

    def assign_epoch(self, epoch: int) -> None:
        self.epochs.append(epoch)

    def epoch_end_offset(self, epoch: int) -> tuple[int, int]:
        return (epoch, self.log_end_offset) if epoch == self.epochs[-1] else (-1, -1)

    def append(
        self, batches: Sequence[Batch], epoch: int, now_ms: int, origin: object = None
    ) -> AppendInfo:
        first = self.log_end_offset
        self._batches += [bytes(batch.buffer) for batch in batches]
        return AppendInfo(first, self.log_end_offset - 1, self.log_start_offset, False, now_ms)

    def delete_records_before(self, offset: int) -> int:
        self.log_start_offset = max(offset, self.log_start_offset)
        return self.log_start_offset

    def read(
        self, offset: int, max_bytes: int, limit: int, *, min_one: bool, block: bool
    ) -> ReadInfo:
        if not self.log_start_offset <= offset <= self.log_end_offset:
            raise KafkaError(ErrorCode.OFFSET_OUT_OF_RANGE)
        if self.cold and not block:
            raise WouldBlock
        found = b""
        for batch in self._batches[offset:limit]:
            if len(found) + len(batch) > max_bytes and (found or not min_one):
                break
            found += batch
        return ReadInfo(memoryview(found))


class StepExecutor:
    """Runs work when the test says so; until then the loop goes on."""

    def __init__(self) -> None:
        self.entered = asyncio.Event()
        self.go_on = asyncio.Event()

    async def run(self, work: Callable[[], Any]) -> Any:
        self.entered.set()
        await self.go_on.wait()
        return work()


def classic_partitions(replicas: Any, image: Any, executor: Any) -> Partitions:
    """A factory that knows replicas only."""
    settings: Any = SimpleNamespace(
        node=SimpleNamespace(rack=None), replication=SimpleNamespace(selector=None)
    )
    quota: Any = None
    classic = ClassicPartitions(replicas, image, settings, quota, executor, Traffic())
    return Partitions(image, {PartitionKind.CLASSIC: classic})


class World:
    """Partitions of one broker and the sessions that fetch them."""

    def __init__(self, *, slots_max: int = 1000) -> None:
        self.clock = ManualClock()
        self.partitions: dict[tuple[str, int], Partition] = {}
        self.sessions = FetchSessions(FetchSessionSettings(slots_max), self.clock, random.Random(7))
        self.denied: set[str] = set()
        self.executor: Any = None
        self.quotas = ClientQuotas(11, 1, 11, 1)
        self.services: Any = SimpleNamespace(
            settings=SimpleNamespace(network=SimpleNamespace(fetch_bytes_max=10**9)),
            memory=SimpleNamespace(answers=SimpleNamespace(left=10**9)),
            quotas=QuotaGate(self.quotas, self.clock),
            fetch_sessions=self.sessions,
            image=SimpleNamespace(topic=self.topic, endpoints=self.endpoints),
            traffic=Traffic(),
        )
        self.services.partitions = classic_partitions(self, self.services.image, self)

    async def run(self, work: Callable[[], Any]) -> Any:
        """Work for a thread."""
        return await self.executor.run(work)

    # What a fetch needs of the image and the replica manager

    def get(self, topic: str, index: int) -> Partition | None:
        return self.partitions.get((topic, index))

    def topic(self, name: str) -> Any:
        """The metadata of a topic, as far as a fetch needs it."""
        state = SimpleNamespace(kind=PartitionKind.CLASSIC)
        found = {index: state for topic, index in self.partitions if topic == name}
        return SimpleNamespace(name=name, partitions=found) if found else None

    def endpoints(self, nodes: object, listener: str) -> list[Any]:
        return []

    # For tests

    def create(self, topic: str, index: int = 0) -> Partition:
        log: Any = MemoryLog()
        host = Host(NODE, self.clock)
        partition = Partition(host, topic, index, b"", log)  # type: ignore[arg-type]
        partition.update(state())
        self.partitions[topic, index] = partition
        return partition

    def delete(self, topic: str, index: int = 0) -> None:
        self.partitions.pop((topic, index)).mark_deleted()

    def append(self, topic: str, index: int = 0, value: bytes = b"x") -> None:
        batches = split_batches(encode_batch([(None, value)], timestamp=1))
        self.partitions[topic, index].append(list(batches), 1)

    def begin(self, *parts: tuple[str, int, int], **options: Any) -> Any:
        """The response to a fetch, or its awaitable."""
        context: Any = SimpleNamespace(
            services=self.services,
            version=VERSION,
            listener="PLAINTEXT",
            principal="User:ANONYMOUS",
            client_id="test",
            connection=SimpleNamespace(ended=False, when_ended=None),
            throttle_ms=0,
            allowed=lambda name: name not in self.denied,
        )
        return fetch(context, fetch_request(parts, **options))

    def fetch(self, *parts: tuple[str, int, int], **options: Any) -> FetchResponse:
        answer = self.begin(*parts, **options)
        assert isinstance(answer, FetchResponse)
        return answer

    @property
    def watchers(self) -> int:
        return sum(len(partition._watchers) for partition in self.partitions.values())


class FakeController:
    """Answers from a list; an exception in it is raised."""

    def __init__(self, *answers: Any) -> None:
        self.answers = list(answers)
        self.requests: list[Any] = []
        self.hold: asyncio.Event | None = None

    async def submit(self, request: Any, version: int) -> Any:
        self.requests.append(request)
        if self.hold is not None:
            await self.hold.wait()
        await asyncio.sleep(0)
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, BaseException):
            raise answer
        return answer


async def soon(work: Awaitable[Any]) -> Any:
    """The result of a coroutine that must not wait."""
    return await asyncio.wait_for(work, 10)
