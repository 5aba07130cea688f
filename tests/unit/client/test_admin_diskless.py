"""Inspection of diskless topics."""

from __future__ import annotations

import pytest

from skylog.client.admin import Admin
from skylog.kernel.errors import ErrorCode, KafkaError
from skylog.wire.apis import ApiKey
from skylog.wire.messages.describe_diskless_coordinators_response import (
    DescribedCoordinator,
    DescribeDisklessCoordinatorsResponse,
)
from skylog.wire.messages.list_diskless_files_response import (
    ListDisklessFilesResponse,
    ListedDisklessFile,
)
from tests.unit.client.support import HANG_UP, FakeBroker, cluster_of, running

LOADING = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS


def page(*keys: str, more: bool = False) -> ListDisklessFilesResponse:
    return ListDisklessFilesResponse(
        has_more=more, files=[ListedDisklessFile(object_key=key) for key in keys]
    )


async def test_files_are_read_page_by_page_up_to_the_end_of_the_prefix() -> None:
    broker = FakeBroker()
    broker.on(
        ApiKey.LIST_DISKLESS_FILES,
        ListDisklessFilesResponse(error_code=LOADING),  # asked again
        page("staging/a", "staging/b", more=True),
        page("staging/c", "wal/a", more=True),
    )
    async with running(broker), cluster_of(broker) as cluster:
        found = [file.object_key async for file in Admin(cluster).diskless.files("staging/", 2)]
    assert found == ["staging/a", "staging/b", "staging/c"]
    asked = broker.requests(ApiKey.LIST_DISKLESS_FILES)
    assert [(one.after, one.limit) for one in asked] == [
        ("staging/", 2),
        ("staging/", 2),
        ("staging/b", 2),
    ]


async def test_the_last_page_ends_the_list() -> None:
    broker = FakeBroker()
    broker.on(ApiKey.LIST_DISKLESS_FILES, page("wal/a", more=True), page())
    async with running(broker), cluster_of(broker) as cluster:
        assert len([one async for one in Admin(cluster).diskless.files("wal/")]) == 1


async def test_every_broker_is_asked_for_its_coordinators() -> None:
    brokers = [FakeBroker(1), FakeBroker(2)]
    for number, one in enumerate(brokers):
        described = [DescribedCoordinator(partition_index=number)]
        one.on(
            ApiKey.DESCRIBE_DISKLESS_COORDINATORS,
            DescribeDisklessCoordinatorsResponse(coordinators=described),
        )
    async with running(*brokers), cluster_of(brokers[0]) as cluster:
        answers = await Admin(cluster).diskless.describe()
    assert [one.partition_index for a in answers for one in a.coordinators] == [0, 1]


async def test_what_is_not_skylog_is_told_as_such() -> None:
    broker = FakeBroker()
    broker.on(ApiKey.DESCRIBE_DISKLESS_COORDINATORS, HANG_UP)
    async with running(broker), cluster_of(broker) as cluster:
        with pytest.raises(KafkaError, match="is this skylog") as told:
            await Admin(cluster).diskless.describe_any()
    assert told.value.code is ErrorCode.UNSUPPORTED_VERSION


async def test_a_refusal_is_told_with_the_brokers_words() -> None:
    broker = FakeBroker()
    denied = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    broker.on(
        ApiKey.LIST_DISKLESS_FILES,
        ListDisklessFilesResponse(error_code=denied, error_message="not you"),
    )
    async with running(broker), cluster_of(broker) as cluster:
        with pytest.raises(KafkaError, match="not you"):
            await anext(Admin(cluster).diskless.files("wal/"))
