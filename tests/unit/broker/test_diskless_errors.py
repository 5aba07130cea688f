"""Clients do not see errors of diskless coordinators: a consumer would fail."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from skylog.broker.handlers.offsets import list_offsets
from skylog.broker.observe.traffic import Traffic
from skylog.broker.partitions.factory import Partitions
from skylog.broker.partitions.port import Budget, Isolation, Reader, ServedPartition
from skylog.broker.partitions.pure import PurePartitions
from skylog.broker.partitions.questions import ask_all
from skylog.controller.image.topics import PartitionKind
from skylog.diskless.partitions import DisklessPartitions
from skylog.diskless.plane import DeleteRecordsResult, ListOffsetsResult, LogInfo
from skylog.diskless.reader import ReadResult
from skylog.kernel.errors import ErrorCode, KafkaError
from skylog.kernel.ids import Uuid
from skylog.wire.codec import encode_parts
from skylog.wire.messages.fetch_request import FetchPartition
from skylog.wire.messages.list_offsets_request import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)

TOPIC = Uuid(b"t" * 16)
AWAY = [
    ErrorCode.NOT_COORDINATOR,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
]
# Errors of a partition that Kafka's consumers retry.
AGAIN = ErrorCode.NOT_LEADER_OR_FOLLOWER


class Engine:
    """A plane whose coordinator is unavailable, or that has one offset for all."""

    def __init__(self, outcome: ErrorCode | KafkaError) -> None:
        self.outcome = outcome
        self.plane = self
        self.partitions = DisklessPartitions()
        self.partitions.assign("t", TOPIC, 0, 1, 0)

    @property
    def error(self) -> ErrorCode:
        if isinstance(self.outcome, KafkaError):
            raise self.outcome
        return self.outcome

    async def list_offsets(self, asked: Any) -> list[ListOffsetsResult]:
        return [ListOffsetsResult(self.error, offset=-1 if self.error else 7) for _ in asked]

    async def log_info(self, asked: Any) -> list[LogInfo]:
        return [LogInfo(self.error) for _ in asked]

    async def delete_records(self, asked: Any) -> list[DeleteRecordsResult]:
        return [DeleteRecordsResult(self.error) for _ in asked]

    async def fetch(self, asked: Any, left: int, *, min_one: bool) -> list[ReadResult]:
        return [ReadResult(self.error) for _ in asked]


def served(outcome: ErrorCode | KafkaError) -> Partitions:
    state = SimpleNamespace(kind=PartitionKind.PURE)
    topic = SimpleNamespace(name="t", topic_id=TOPIC, partitions={0: state})
    image: Any = SimpleNamespace(topic=lambda _: topic)
    engine: Any = Engine(outcome)
    router: Any = None
    pure = PurePartitions(engine, image, router, 1, Traffic())
    return Partitions(image, {PartitionKind.PURE: pure})


def partition(outcome: ErrorCode | KafkaError) -> ServedPartition:
    return served(outcome).find("t", 0)


async def told(question: Any, *more: object) -> ErrorCode:
    ((_, answer),) = await ask_all([(None, question)], *more)
    return answer.code if isinstance(answer, KafkaError) else answer.error


async def fetched(outcome: ErrorCode | KafkaError) -> ErrorCode:
    found = partition(outcome).read(FetchPartition(), Reader(), Budget(1000), is_new=True)
    return await told(found, Budget(1000))


@pytest.mark.parametrize("error", [*AWAY, ErrorCode.REQUEST_TIMED_OUT])
async def test_reads_are_retried(error: ErrorCode) -> None:
    assert await fetched(error) == AGAIN
    assert await fetched(KafkaError(error)) == AGAIN
    assert await told(partition(error).offset_for(-1, Isolation.UNCOMMITTED)) == AGAIN
    assert await told(partition(KafkaError(error)).offset_for(-1, Isolation.UNCOMMITTED)) == AGAIN
    assert await told(partition(error).epoch_end(0)) == AGAIN
    assert await told(partition(KafkaError(error)).epoch_end(0)) == AGAIN


@pytest.mark.parametrize("version", [1, 3, 4, 11])
async def test_old_clients_are_not_told_an_epoch(version: int) -> None:
    services = SimpleNamespace(partitions=served(ErrorCode.NONE))
    context: Any = SimpleNamespace(version=version, services=services, allowed=lambda _: True)
    wanted = ListOffsetsTopic("t", [ListOffsetsPartition(0, timestamp=-1)])
    response: Any = list_offsets(context, ListOffsetsRequest(-1, topics=[wanted]))
    response = await response
    (offset,) = response.topics[0].partitions
    assert (offset.offset, offset.leader_epoch) == (7, -1 if version < 4 else 0)
    encode_parts(response, version)


@pytest.mark.parametrize("error", [*AWAY, ErrorCode.REQUEST_TIMED_OUT])
async def test_deletions_are_retried_and_report_an_unknown_outcome(error: ErrorCode) -> None:
    expected = AGAIN if error in AWAY else error
    assert await told(partition(error).delete_before(5), 1.0) == expected
    assert await told(partition(KafkaError(error)).delete_before(5), 1.0) == expected


@pytest.mark.parametrize("error", [ErrorCode.OFFSET_OUT_OF_RANGE, ErrorCode.KAFKA_STORAGE_ERROR])
async def test_what_clients_know_is_told(error: ErrorCode) -> None:
    assert await fetched(error) == error
