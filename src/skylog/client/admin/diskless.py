"""Inspection of diskless topics, with skylog's own APIs 504 and 505."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

from skylog.client.bulk.ask import request_of_ours
from skylog.client.cluster import Cluster
from skylog.client.errors import check
from skylog.kernel.limits import DISKLESS_FILES_LISTED_MAX
from skylog.wire.messages.describe_diskless_coordinators_request import (
    DescribeDisklessCoordinatorsRequest,
)
from skylog.wire.messages.describe_diskless_coordinators_response import (
    DescribeDisklessCoordinatorsResponse,
)
from skylog.wire.messages.list_diskless_files_request import ListDisklessFilesRequest
from skylog.wire.messages.list_diskless_files_response import (
    ListDisklessFilesResponse,
    ListedDisklessFile,
)
from skylog.wire.schema import Message


class DisklessAdmin:
    """Files and coordinators, as the brokers of a cluster know them."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster

    async def describe(self) -> list[DescribeDisklessCoordinatorsResponse]:
        """Of every broker: its store, its control plane and the coordinators that it leads."""
        nodes = sorted(self._cluster.metadata.brokers)
        request = DescribeDisklessCoordinatorsRequest(only_here=True)
        return [await self._ask(node, request) for node in nodes]

    async def describe_any(self) -> DescribeDisklessCoordinatorsResponse:
        """Of all brokers, according to one of them."""
        answer: DescribeDisklessCoordinatorsResponse = await self._ask(
            -1, DescribeDisklessCoordinatorsRequest()
        )
        return answer

    async def files(
        self, prefix: str, page: int = DISKLESS_FILES_LISTED_MAX
    ) -> AsyncIterator[ListedDisklessFile]:
        """The files whose keys begin with ``prefix``, by key; fetched lazily."""
        after = prefix
        while True:
            answer: ListDisklessFilesResponse = await self._ask(
                -1, ListDisklessFilesRequest(after, page)
            )
            for file in answer.files:
                if not file.object_key.startswith(prefix):
                    return
                yield file
            if not answer.has_more or not answer.files:
                return
            after = answer.files[-1].object_key

    async def _ask(self, node_id: int, request: Message) -> Any:
        async def ask() -> Any:
            answer = await request_of_ours(self._cluster, node_id, request, 0)
            check(answer.error_code, answer.error_message)
            return answer

        return await self._cluster.retry(ask)
