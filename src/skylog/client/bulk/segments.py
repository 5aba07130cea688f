"""Segments of diskless topics that a job assembles (APIs 510 and 511)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, TypeVar

from skylog.client.bulk.ask import code_of, leader_of, request_of_ours, settled
from skylog.client.cluster import Cluster
from skylog.client.errors import check
from skylog.client.metadata import TopicPartition
from skylog.kernel.errors import ErrorCode
from skylog.kernel.ids import Uuid
from skylog.wire.messages import finish_segments_request as finish_request
from skylog.wire.messages import finish_segments_response as finish_response
from skylog.wire.messages import start_segments_request as start_request
from skylog.wire.messages import start_segments_response as start_response

# How long a broker may work on one request, in addition to the usual time-out.
_WORK_MS: Final = 60_000
# A request for many partitions would exceed that.
_PARTITIONS_PER_REQUEST: Final = 200
_SEGMENTS_PER_REQUEST: Final = 32
AskedT = TypeVar("AskedT", bound="Run | FinishedRun")
AnswerT = TypeVar("AnswerT", bound="GrantedRun | FinishedResult")


@dataclass(frozen=True, slots=True)
class SegmentRange:
    """``end_offset`` is inclusive."""

    id: Uuid
    start_offset: int
    end_offset: int


@dataclass(frozen=True, slots=True)
class Run:
    """Segments of a partition, one behind the other. None: only ask where they would begin."""

    key: TopicPartition
    topic_id: Uuid
    leader_epoch: int = -1
    segments: tuple[SegmentRange, ...] = ()


@dataclass(frozen=True, slots=True)
class SegmentStore:
    """Where the objects of segments are put, and what their manifests need."""

    url: str | None
    chunk_size: int
    broker_id: int


@dataclass(frozen=True, slots=True)
class GrantedSegment:
    id: Uuid
    start_offset: int
    end_offset: int
    size: int
    max_timestamp_ms: int
    event_timestamp_ms: int
    lease_ms: int


@dataclass(frozen=True, slots=True)
class GrantedRun:
    """What the leader granted, or its error."""

    key: TopicPartition
    error: ErrorCode
    message: str | None
    store: SegmentStore
    leader_epoch: int = -1
    next_offset: int = -1
    high_watermark: int = -1
    producer_snapshot: bytes | None = None
    segments: tuple[GrantedSegment, ...] = ()


@dataclass(frozen=True, slots=True)
class FinishedRun:
    """Segments of a partition to be finished in their order, or to be given up."""

    key: TopicPartition
    topic_id: Uuid
    leader_epoch: int
    segments: tuple[Uuid, ...]
    give_up: bool = False


@dataclass(frozen=True, slots=True)
class FinishedResult:
    """The error of the first segment that was not finished, if there is one."""

    key: TopicPartition
    error: ErrorCode
    message: str | None
    finished: frozenset[Uuid] = field(default_factory=frozenset)


async def start_segments(
    cluster: Cluster, job_id: Uuid, runs: Sequence[Run], *, take_over: bool = False
) -> list[GrantedRun]:
    """Ask the leaders for segments. Repeatable: the first result is returned again."""

    async def ask(node_id: int, part: Sequence[Run]) -> Iterator[GrantedRun]:
        request = start_request.StartSegmentsRequest(
            job_id, take_over, _WORK_MS, [_start_partition(run) for run in part]
        )
        answer = await request_of_ours(cluster, node_id, request, _WORK_MS)
        check(answer.error_code, answer.error_message)
        return _granted(part, answer)

    return await _asked(cluster, runs, ask)


def _start_partition(run: Run) -> start_request.StartPartition:
    return start_request.StartPartition(
        run.topic_id,
        run.key.partition,
        run.leader_epoch,
        [
            start_request.StartSegment(one.id, one.start_offset, one.end_offset)
            for one in run.segments
        ],
    )


def _granted(
    runs: Sequence[Run], answer: start_response.StartSegmentsResponse
) -> Iterator[GrantedRun]:
    store = SegmentStore(answer.storage_url, answer.chunk_size, answer.broker_id)
    for run, found in zip(runs, answer.partitions, strict=True):
        yield GrantedRun(
            run.key,
            code_of(found.error_code),
            found.error_message,
            store,
            found.leader_epoch,
            found.next_offset,
            found.high_watermark,
            found.producer_snapshot,
            tuple(
                GrantedSegment(
                    one.segment_id,
                    one.start_offset,
                    one.end_offset,
                    one.size_in_bytes,
                    one.max_timestamp_ms,
                    one.event_timestamp_ms,
                    one.lease_ms,
                )
                for one in found.segments
            ),
        )


async def finish_segments(
    cluster: Cluster, job_id: Uuid, runs: Sequence[FinishedRun]
) -> list[FinishedResult]:
    """Report segments whose objects are put. Repeatable: what is finished stays so."""

    async def ask(node_id: int, part: Sequence[FinishedRun]) -> Iterator[FinishedResult]:
        request = finish_request.FinishSegmentsRequest(
            job_id, _WORK_MS, [_finish_partition(run) for run in part]
        )
        answer = await request_of_ours(cluster, node_id, request, _WORK_MS)
        check(answer.error_code, answer.error_message)
        return _finished(part, answer)

    return await _asked(cluster, runs, ask)


def _finish_partition(run: FinishedRun) -> finish_request.FinishPartition:
    return finish_request.FinishPartition(
        run.topic_id,
        run.key.partition,
        run.leader_epoch,
        [finish_request.FinishSegment(one, run.give_up) for one in run.segments],
    )


def _finished(
    runs: Sequence[FinishedRun], answer: finish_response.FinishSegmentsResponse
) -> Iterator[FinishedResult]:
    for run, found in zip(runs, answer.partitions, strict=True):
        failed = next((one for one in found.segments if one.error_code), None)
        done = frozenset(one.segment_id for one in found.segments if not one.error_code)
        if failed is None:
            yield FinishedResult(run.key, ErrorCode.NONE, None, done)
        else:
            yield FinishedResult(run.key, code_of(failed.error_code), failed.error_message, done)


async def _asked(
    cluster: Cluster,
    runs: Sequence[AskedT],
    ask: Callable[[int, Sequence[AskedT]], Awaitable[Iterator[AnswerT]]],
) -> list[AnswerT]:
    """The leaders' answers, in the order of the runs."""

    async def round_of(places: Sequence[int], results: list[Any]) -> None:
        by_leader: dict[int, list[int]] = {}
        for place in places:
            by_leader.setdefault(await leader_of(cluster, runs[place].key), []).append(place)
        for node_id, held in by_leader.items():
            for part in _parts(runs, held):
                answers = await ask(node_id, [runs[place] for place in part])
                for place, answer in zip(part, answers, strict=True):
                    results[place] = answer
                    if answer.error is ErrorCode.NOT_LEADER_OR_FOLLOWER:
                        cluster.metadata.forget(runs[place].key.topic)

    return await settled(cluster, len(runs), round_of)


def _parts(runs: Sequence[Run | FinishedRun], places: Sequence[int]) -> Iterator[list[int]]:
    """Some partitions with some segments: not more than a broker does in time."""
    part: list[int] = []
    segments = 0
    for place in places:
        segments += len(runs[place].segments)
        if part and (len(part) == _PARTITIONS_PER_REQUEST or segments > _SEGMENTS_PER_REQUEST):
            yield part
            part, segments = [], len(runs[place].segments)
        part.append(place)
    if part:
        yield part
