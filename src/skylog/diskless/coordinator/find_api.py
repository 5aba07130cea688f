"""FindBatches (98): where batches are stored, and waiting until there are more."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Final

from skylog.diskless.coordinator import requests as ask
from skylog.diskless.coordinator.outcomes import items, outcome_of
from skylog.diskless.coordinator.registry import DisklessCoordinators
from skylog.diskless.coordinator.wire import found_partition
from skylog.diskless.plane import (
    ControlPlane,
    CoordinatorOf,
    FindRequest,
    FindResult,
    LogInfo,
    TopicPartition,
)
from skylog.kernel.errors import ErrorCode, KafkaError
from skylog.kernel.ids import Uuid
from skylog.kernel.limits import DISKLESS_WAIT_MS_MAX
from skylog.wire.messages import diskless_find_batches_request as find_request
from skylog.wire.messages import diskless_find_batches_response as find_response

_NO_INFO: Final = LogInfo(ErrorCode.NONE)


class FindApi:
    """All calls come from the event loop."""

    def __init__(
        self,
        plane: ControlPlane,
        coordinators: DisklessCoordinators,
        coordinator_of: CoordinatorOf,
    ) -> None:
        self._plane = plane
        self._coordinators = coordinators
        self._coordinator_of = coordinator_of

    async def find_batches(
        self, request: find_request.DisklessFindBatchesRequest
    ) -> find_response.DisklessFindBatchesResponse:
        if request.coordinator_id >= 0:
            return await self._wait(request)
        asked = [
            FindRequest(
                topic.topic_id,
                partition.partition_index,
                partition.offset,
                partition.max_partition_fetch_bytes,
            )
            for topic in request.topics
            for partition in topic.partitions
        ]
        outcome = await outcome_of(self._find(request, asked), request.timeout_ms)
        results = items(outcome, len(asked), lambda code, _: FindResult(code))
        infos = await self._infos(asked, results, request)
        found = iter(zip(results, infos, strict=True))
        response = find_response.DisklessFindBatchesResponse()
        for topic in request.topics:
            parts = [found_partition(one.partition_index, *next(found)) for one in topic.partitions]
            response.topics.append(
                find_response.DisklessFindBatchesTopicResult(topic.topic_id, parts)
            )
        return response

    async def _infos(
        self,
        asked: Sequence[FindRequest],
        results: Sequence[FindResult],
        request: find_request.DisklessFindBatchesRequest,
    ) -> list[LogInfo]:
        """What WAL objects have of the logs, for requests that want no batches."""
        unknown = [_NO_INFO] * len(asked)
        if request.fetch_max_bytes or all(result.high_watermark < 0 for result in results):
            return unknown
        infos = await outcome_of(
            self._plane.log_info([(one.topic_id, one.partition) for one in asked]),
            request.timeout_ms,
        )
        return unknown if isinstance(infos, KafkaError) else infos

    async def _wait(
        self, request: find_request.DisklessFindBatchesRequest
    ) -> find_response.DisklessFindBatchesResponse:
        """Wait until a coordinator commits something; the response has only high watermarks."""
        seconds = min(max(request.wait_ms, 0), DISKLESS_WAIT_MS_MAX) / 1000
        waited = self._coordinators.wait(request.coordinator_id, request.since, seconds)
        outcome = await outcome_of(waited, request.timeout_ms)
        if isinstance(outcome, KafkaError):
            return find_response.DisklessFindBatchesResponse(error_code=outcome.code)
        moved, until = outcome
        topics: dict[Uuid, find_response.DisklessFindBatchesTopicResult] = {}
        for (topic_id, index), high_watermark in moved.items():
            topic = topics.setdefault(
                topic_id, find_response.DisklessFindBatchesTopicResult(topic_id)
            )
            topic.partitions.append(
                find_response.DisklessFindBatchesPartitionResult(
                    index, high_watermark=high_watermark
                )
            )
        return find_response.DisklessFindBatchesResponse(topics=list(topics.values()), until=until)

    async def _find(
        self, request: find_request.DisklessFindBatchesRequest, asked: Sequence[FindRequest]
    ) -> list[FindResult]:
        """With ``wait_ms``, an empty result waits until a commit brings something."""
        limits = (request.fetch_max_bytes, request.max_batches_per_partition)
        if request.allow_follower:
            return await self._find_behind(asked, limits)
        wanted = {(one.topic_id, one.partition) for one in asked}
        moved = asyncio.Event()

        def listen(partition: TopicPartition, _high_watermark: int) -> None:
            if partition in wanted:
                moved.set()

        unsubscribe = self._coordinators.watch(listen) if request.wait_ms > 0 else None
        try:
            found = await self._plane.find_batches(asked, *limits)
            if unsubscribe is None or any(one.error or one.batches for one in found):
                return found
            try:
                async with asyncio.timeout(request.wait_ms / 1000):
                    await moved.wait()
            except TimeoutError:
                return found
            return await self._plane.find_batches(asked, *limits)
        finally:
            if unsubscribe is not None:
                unsubscribe()

    async def _find_behind(
        self, asked: Sequence[FindRequest], limits: tuple[int, int]
    ) -> list[FindResult]:
        """From coordinators led here, else from their standbys, which may be slightly behind."""
        results = await self._plane.find_batches(asked, *limits)
        for place, (one, result) in enumerate(zip(asked, results, strict=True)):
            coordinator_id = self._coordinator_of((one.topic_id, one.partition))
            if result.error is not ErrorCode.NOT_COORDINATOR or coordinator_id is None:
                continue
            try:
                found = await self._coordinators.find_behind(
                    coordinator_id, ask.FindBatches([one], *limits)
                )
            except KafkaError:
                continue
            results[place] = found[0]
        return results
