"""Clients hear nothing of diskless coordinators: a consumer would give up."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from skylog.broker.handlers.diskless_offsets import (
    delete_diskless_records,
    end_of_epochs,
    list_diskless_offsets,
)
from skylog.broker.handlers.fetch_remote import read_remote
from skylog.diskless.plane import DeleteRecordsResult, ListOffsetsResult, LogInfo
from skylog.diskless.reader import ReadResult
from skylog.kernel.errors import ErrorCode, KafkaError
from skylog.kernel.ids import Uuid
from skylog.wire.codec import encode_parts
from skylog.wire.messages.delete_records_response import DeleteRecordsPartitionResult
from skylog.wire.messages.fetch_request import FetchPartition
from skylog.wire.messages.list_offsets_response import (
    ListOffsetsPartitionResponse,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from skylog.wire.messages.offset_for_leader_epoch_response import EpochEndOffset

PLACE = (Uuid(b"t" * 16), 0)
AWAY = [
    ErrorCode.NOT_COORDINATOR,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
]
# What Kafka's consumers ask again after, for a partition.
AGAIN = ErrorCode.NOT_LEADER_OR_FOLLOWER


def engine(error: ErrorCode) -> Any:
    """A plane whose coordinator is away, or has one offset for all."""

    async def list_offsets(asked: Any) -> list[ListOffsetsResult]:
        return [ListOffsetsResult(error, offset=-1 if error else 7) for _ in asked]

    async def log_info(asked: Any) -> list[LogInfo]:
        return [LogInfo(error) for _ in asked]

    async def delete_records(asked: Any) -> list[DeleteRecordsResult]:
        return [DeleteRecordsResult(error) for _ in asked]

    plane = SimpleNamespace(
        list_offsets=list_offsets, log_info=log_info, delete_records=delete_records
    )
    return SimpleNamespace(plane=plane)


def asked_in(version: int, engine: Any) -> Any:
    return SimpleNamespace(version=version, services=SimpleNamespace(diskless=engine))


def fetched(outcome: ReadResult | KafkaError) -> int:
    found: Any = SimpleNamespace(topic_id=PLACE[0], index=0)
    work = read_remote([(FetchPartition(), found)], 1000, min_one=True, read_committed=False)
    next(work)
    try:
        work.throw(outcome) if isinstance(outcome, KafkaError) else work.send([outcome])
    except StopIteration as end:
        return int(end.value[0].error_code)
    raise AssertionError


@pytest.mark.parametrize("error", [*AWAY, ErrorCode.REQUEST_TIMED_OUT])
async def test_whoever_reads_asks_again(error: ErrorCode) -> None:
    assert fetched(ReadResult(error)) == AGAIN
    assert fetched(KafkaError(error)) == AGAIN
    offset = ListOffsetsPartitionResponse()
    await list_diskless_offsets(asked_in(11, engine(error)), [(offset, PLACE, -1)])
    epoch = EpochEndOffset()
    await end_of_epochs(engine(error), [(epoch, PLACE, 0)])
    assert (offset.error_code, epoch.error_code) == (AGAIN, AGAIN)


@pytest.mark.parametrize("version", [1, 3, 4, 11])
async def test_old_clients_are_not_told_an_epoch(version: int) -> None:
    offset = ListOffsetsPartitionResponse(0)
    await list_diskless_offsets(asked_in(version, engine(ErrorCode.NONE)), [(offset, PLACE, -1)])
    assert (offset.offset, offset.leader_epoch) == (7, -1 if version < 4 else 0)
    encode_parts(ListOffsetsResponse(topics=[ListOffsetsTopicResponse("t", [offset])]), version)


@pytest.mark.parametrize("error", [*AWAY, ErrorCode.REQUEST_TIMED_OUT])
async def test_whoever_deletes_asks_again_and_hears_of_doubt(error: ErrorCode) -> None:
    answer = DeleteRecordsPartitionResult()
    await delete_diskless_records(engine(error), [(answer, PLACE, 5)])
    assert answer.error_code == (AGAIN if error in AWAY else error)


@pytest.mark.parametrize("error", [ErrorCode.OFFSET_OUT_OF_RANGE, ErrorCode.KAFKA_STORAGE_ERROR])
def test_what_clients_know_is_told(error: ErrorCode) -> None:
    assert fetched(ReadResult(error)) == error
