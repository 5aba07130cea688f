"""Inspection of diskless topics: what a broker shows operators, on the clients' listener."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from skylog.kernel.errors import ErrorCode
from skylog.testing import Broker
from skylog.wire.messages.describe_diskless_coordinators_request import (
    DescribeDisklessCoordinatorsRequest,
)
from skylog.wire.messages.describe_diskless_coordinators_response import (
    DescribeDisklessCoordinatorsResponse,
)
from skylog.wire.messages.list_diskless_files_request import ListDisklessFilesRequest
from skylog.wire.messages.list_diskless_files_response import ListDisklessFilesResponse
from tests.integration.diskless_uploader import SETTINGS, Upload, deleted, new_topic
from tests.integration.wire_client import SECONDS_MAX, Wire

SETTINGS = {
    **SETTINGS,
    "diskless.metadata.topic.num.partitions": "2",
    "diskless.metadata.snapshot.bytes": "1",
}


def files(wire: Wire, after: str = "", limit: int = 1000) -> ListDisklessFilesResponse:
    answer: ListDisklessFilesResponse = wire.ask(ListDisklessFilesRequest(after, limit))
    return answer


def coordinators(wire: Wire) -> DescribeDisklessCoordinatorsResponse:
    answer: DescribeDisklessCoordinatorsResponse = wire.ask(DescribeDisklessCoordinatorsRequest())
    return answer


@pytest.fixture
def brokers(broker: Broker) -> Iterator[Wire]:
    with Wire(broker.address("BROKERS")) as wire:
        yield wire


@pytest.fixture
def client(broker: Broker) -> Iterator[Wire]:
    with Wire(broker.address("PLAINTEXT")) as wire:
        yield wire


def test_files_and_coordinators(brokers: Wire, client: Wire) -> None:
    topic_id = new_topic(brokers, "looked-at", 2)
    uploads = [Upload().add(topic_id, [b"a"]).add(topic_id, [b"b"], 1) for _ in range(3)]
    for upload in uploads:
        results = brokers.ask(upload.request(owner_ids=[1, 0])).batches
        assert {result.error_code for result in results} == {ErrorCode.NONE}
    keys = sorted(upload.key for upload in uploads)
    sizes = {upload.key: len(upload.data) for upload in uploads}

    listed = files(client)
    assert (listed.error_code, listed.has_more) == (ErrorCode.NONE, False)
    assert [file.object_key for file in listed.files] == keys
    for file in listed.files:
        assert file.size == sizes[file.object_key]
        assert (file.live_batches, file.live_bytes) == (2, file.size - 1)
        assert sorted(file.owner_ids) == [0, 1]
        assert file.marked_timestamp_ms == -1
        assert file.committed_timestamp_ms > 1_700_000_000_000

    pages = [files(client, limit=2), files(client, keys[1], 2), files(client, keys[2], 2)]
    assert [[f.object_key for f in page.files] for page in pages] == [keys[:2], keys[2:], []]
    assert [page.has_more for page in pages] == [True, False, False]

    deleted(brokers, topic_id, -1)
    half = files(client)
    assert {(file.live_batches, file.marked_timestamp_ms) for file in half.files} == {(1, -1)}

    deadline = time.monotonic() + SECONDS_MAX
    while any(one.snapshot_offset < 0 for one in coordinators(client).coordinators):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    told = coordinators(client)
    assert (told.error_code, told.control_plane) == (ErrorCode.NONE, "topic")
    assert told.has_all_coordinators
    assert told.storage_url.startswith("file:///")
    assert told.orphan_threshold_ms > 0
    assert [one.partition_index for one in told.coordinators] == [0, 1]
    for one in told.coordinators:
        assert (one.state, one.leader_id, one.pins) == ("active", 1, 0)
        assert one.log_start_offset <= one.snapshot_offset <= one.high_watermark
        assert one.applied_offset == one.high_watermark == one.log_end_offset
        assert one.snapshot_timestamp_ms > 1_700_000_000_000
        assert one.partitions == 1
    assert sorted(one.batches for one in told.coordinators) == [0, 3]
    assert sorted(one.live_files for one in told.coordinators) == [0, 3]
    assert sorted(one.free_files for one in told.coordinators) == [0, 3]


def test_invalid_pages(client: Wire) -> None:
    for after, limit in (("", 0), ("", -1), ("\0", 1), ("ключ", 1)):
        answer = files(client, after, limit)
        assert (answer.error_code, answer.files) == (ErrorCode.INVALID_REQUEST, [])
        assert answer.error_message
    assert files(client, "", 2**31 - 1).error_code == ErrorCode.NONE


def test_a_plane_without_coordinators() -> None:
    with (
        Broker({**SETTINGS, "diskless.control.plane": "memory"}) as broker,
        Wire(broker.address("BROKERS")) as wire,
    ):
        topic_id = new_topic(wire, "in-memory", 2)
        told = coordinators(wire)
        assert (told.control_plane, told.orphan_threshold_ms) == ("memory", -1)
        (one,) = told.coordinators
        assert (one.partition_index, one.leader_id, one.high_watermark) == (-1, -1, -1)
        assert (one.partitions, one.batches) == (2, 0)
        assert files(wire).files == []
        assert broker.node._services.diskless.coordination is None
        # As other brokers, with coordinators, would request it.
        (refused,) = wire.ask(Upload().add(topic_id, [b"a"]).request(owner_ids=[0])).batches
        assert refused.error_code == ErrorCode.NOT_COORDINATOR
