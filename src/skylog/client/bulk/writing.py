"""Staged objects: where to put them, pinning them, and committing them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from skylog.client.bulk.ask import code_of, request_of_ours, settled
from skylog.client.bulk.types import (
    CommitStagedResult,
    CommittedBatch,
    PinResult,
    StagedObject,
    StagingInfo,
)
from skylog.client.cluster import Cluster
from skylog.client.errors import check
from skylog.kernel.ids import Uuid
from skylog.kernel.limits import BULK_COMMIT_BATCHES_PER_REQUEST, BULK_COMMIT_BYTES_PER_REQUEST
from skylog.wire.messages import commit_staged_request as commit_request
from skylog.wire.messages import commit_staged_response as commit_response
from skylog.wire.messages import pin_staged_request as pin_request
from skylog.wire.messages import pin_staged_response as pin_response

# How long a broker may work on one request, in addition to the usual time-out.
_WORK_MS: Final = 60_000


async def staging_info(cluster: Cluster) -> StagingInfo:
    """Where this client's user may stage objects."""

    async def ask() -> StagingInfo:
        answer = await request_of_ours(cluster, -1, pin_request.PinStagedRequest(), 0)
        check(answer.error_code, answer.error_message)
        return StagingInfo(answer.storage_url, answer.staging_prefix)

    return await cluster.retry(ask)


async def pin_staged(
    cluster: Cluster,
    writer_id: str,
    epoch: int,
    objects: Sequence[StagedObject],
    lifetime_ms: int,
    *,
    release: bool = False,
) -> list[PinResult]:
    """Pin staged objects, so that they are kept and can be committed for this long; or unpin
    them."""

    async def ask(places: Sequence[int], results: list[PinResult | None]) -> None:
        for part in _parts(objects, places):
            request = pin_request.PinStagedRequest(
                writer_id,
                epoch,
                lifetime_ms,
                release,
                [_pin_object(objects[place]) for place in part],
                _WORK_MS,
            )
            answer: pin_response.PinStagedResponse = await request_of_ours(
                cluster, -1, request, _WORK_MS
            )
            check(answer.error_code, answer.error_message)
            for place, one in zip(part, answer.objects, strict=True):
                results[place] = PinResult(
                    code_of(one.error_code), one.error_message, one.expires_ms
                )

    return await settled(cluster, len(objects), ask)


def _pin_object(staged: StagedObject) -> pin_request.PinObject:
    topics: dict[tuple[str, Uuid], set[int]] = {}
    for batch in staged.batches:
        topics.setdefault((batch.topic, batch.topic_id), set()).add(batch.partition)
    return pin_request.PinObject(
        staged.key,
        [
            pin_request.PinTopic(name, topic_id, sorted(indexes))
            for (name, topic_id), indexes in topics.items()
        ],
    )


async def commit_staged(
    cluster: Cluster, writer_id: str, epoch: int, objects: Sequence[StagedObject]
) -> list[CommitStagedResult]:
    """Commit staged objects, which assigns offsets. Repeatable: the first result is returned
    again."""

    async def ask(places: Sequence[int], results: list[CommitStagedResult | None]) -> None:
        for part in _parts(objects, places):
            request = commit_request.CommitStagedRequest(
                writer_id, epoch, [_commit_object(objects[place]) for place in part], _WORK_MS
            )
            answer: commit_response.CommitStagedResponse = await request_of_ours(
                cluster, -1, request, _WORK_MS
            )
            check(answer.error_code, answer.error_message)
            for place, one in zip(part, answer.objects, strict=True):
                results[place] = _committed(one)

    return await settled(cluster, len(objects), ask)


def _commit_object(staged: StagedObject) -> commit_request.StagedObject:
    return commit_request.StagedObject(
        staged.key,
        staged.size,
        [
            commit_request.StagedBatch(
                batch.topic, batch.topic_id, batch.partition, batch.byte_offset, batch.byte_size
            )
            for batch in staged.batches
        ],
    )


def _committed(answer: commit_response.CommittedObject) -> CommitStagedResult:
    return CommitStagedResult(
        code_of(answer.error_code),
        answer.error_message,
        tuple(
            CommittedBatch(
                code_of(batch.error_code),
                batch.error_message,
                batch.base_offset,
                batch.log_append_timestamp,
                batch.duplicate,
            )
            for batch in answer.batches
        ),
    )


def _parts(objects: Sequence[StagedObject], places: Sequence[int]) -> Iterator[list[int]]:
    """Positions of objects for one request: not too many batches, not too many bytes."""
    part: list[int] = []
    batches = size = 0
    for place in places:
        batches += 1 + len(objects[place].batches)
        size += objects[place].size
        full = batches > BULK_COMMIT_BATCHES_PER_REQUEST or size > BULK_COMMIT_BYTES_PER_REQUEST
        if part and full:
            yield part
            part, batches, size = [], 1 + len(objects[place].batches), objects[place].size
        part.append(place)
    if part:
        yield part
