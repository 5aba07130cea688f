"""Permissions and listeners of the coordinators' APIs."""

from __future__ import annotations

from typing import Any

import pytest

from skylog.kernel.acl import AclOperation, ResourceType
from skylog.kernel.errors import ErrorCode
from skylog.kernel.ids import Uuid
from skylog.testing import Broker
from skylog.wire.apis import ApiKey
from skylog.wire.messages import diskless_create_partitions_request as create
from skylog.wire.messages import diskless_delete_records_request as delete
from skylog.wire.messages import diskless_delete_topics_request as topics
from skylog.wire.messages import diskless_describe_files_request as describe
from skylog.wire.messages import diskless_find_batches_request as find
from skylog.wire.messages import diskless_list_offsets_request as offsets
from skylog.wire.messages.api_versions_request import ApiVersionsRequest
from skylog.wire.messages.find_coordinator_request import FindCoordinatorRequest
from skylog.wire.schema import Message
from tests.integration.auth_world import ALICE, World
from tests.integration.auth_world import SETTINGS as AUTHORIZED
from tests.integration.diskless_uploader import (
    COORDINATOR_TYPE,
    Upload,
    found,
    new_key,
    new_topic,
)
from tests.integration.diskless_uploader import SETTINGS as BROKERS
from tests.integration.wire_client import Closed, Wire

SETTINGS = BROKERS
DISKLESS_KEYS = [ApiKey(number) for number in (93, 94, 95, 96, 97, 98, 100)]


def test_api_versions_does_not_list_them(broker: Broker) -> None:
    # DC-02, Q1
    for listener in ("PLAINTEXT", "BROKERS"):
        with Wire(broker.address(listener)) as connection:
            offered = {api.api_key for api in connection.ask(ApiVersionsRequest()).api_keys}
        assert offered.isdisjoint(DISKLESS_KEYS)


def requests(topic_id: Uuid) -> dict[ApiKey, Message]:
    part = find.DisklessFindBatchesPartition(0, 0, 1)
    return {
        ApiKey.DISKLESS_CREATE_PARTITIONS: create.DisklessCreatePartitionsRequest(
            [create.DisklessCreatableTopic(topic_id, "t", 1)]
        ),
        ApiKey.DISKLESS_DELETE_TOPICS: topics.DisklessDeleteTopicsRequest(
            [topics.DisklessDeletableTopic(topic_id)]
        ),
        ApiKey.DISKLESS_COMMIT_FILE: Upload().add(topic_id, [b"v"]).request(owner_ids=[0, 1]),
        ApiKey.DISKLESS_DELETE_RECORDS: delete.DisklessDeleteRecordsRequest(
            [
                delete.DisklessDeleteRecordsTopic(
                    topic_id, [delete.DisklessDeleteRecordsPartition(0, -1)]
                )
            ]
        ),
        ApiKey.DISKLESS_LIST_OFFSETS: offsets.DisklessListOffsetsRequest(
            [
                offsets.DisklessListOffsetsTopic(
                    topic_id, [offsets.DisklessListOffsetsPartition(0, -1)]
                )
            ]
        ),
        ApiKey.DISKLESS_FIND_BATCHES: find.DisklessFindBatchesRequest(
            1, 1, [find.DisklessFindBatchesTopic(topic_id, [part])]
        ),
        ApiKey.DISKLESS_DESCRIBE_FILES: describe.DisklessDescribeFilesRequest(
            [describe.DisklessFile(new_key())]
        ),
    }


@pytest.mark.parametrize("listener", ["PLAINTEXT", "CONTROLLER"])
@pytest.mark.parametrize("key", DISKLESS_KEYS, ids=lambda key: key.name)
def test_other_listeners_do_not_serve_them(broker: Broker, key: ApiKey, listener: str) -> None:
    # DC-03, Q1
    with Wire(broker.address(listener)) as connection, pytest.raises(Closed):
        connection.ask(requests(Uuid(b"never-created---"))[key])


def codes_of(answer: Any) -> list[int]:
    """The error codes of all items of a response."""
    found: list[int] = []
    for field in ("topics", "responses", "batches", "files"):
        for one in getattr(answer, field, []):
            if hasattr(one, "error_code"):
                found.append(one.error_code)
            else:
                found += [part.error_code for part in one.partitions]
    return found


def test_they_need_cluster_action() -> None:
    # DC-03
    settings = {
        **AUTHORIZED,
        "listeners": (
            "PLAINTEXT://127.0.0.1:0,SASL_PLAINTEXT://127.0.0.1:0,CONTROLLER://127.0.0.1:0"
        ),
        "diskless.metadata.topic.num.partitions": "1",
    }
    with Broker(settings) as broker:
        listeners = ("PLAINTEXT", "SASL_PLAINTEXT", "CONTROLLER")
        world = World(*(broker.address(listener) for listener in listeners))
        topic_id = new_topic(world.admin, "t")
        coordinator = FindCoordinatorRequest(key_type=COORDINATOR_TYPE, coordinator_keys=["0"])
        with world.connect(ALICE) as alice:
            for key, request in requests(topic_id).items():
                answer = alice.ask(request)
                assert codes_of(answer) == [ErrorCode.CLUSTER_AUTHORIZATION_FAILED], key
            answer = alice.ask(coordinator).coordinators[0]
            assert answer.error_code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED
            # Nothing happened.
            assert found(world.admin, topic_id).high_watermark == 0
            cluster = (AclOperation.CLUSTER_ACTION, ResourceType.CLUSTER, "kafka-cluster")
            world.change_acls(f"User:{ALICE}", [cluster])
            answer = alice.ask(requests(topic_id)[ApiKey.DISKLESS_COMMIT_FILE])
            assert codes_of(answer) == [0]
            assert alice.ask(coordinator).coordinators[0].error_code == 0
        assert found(world.admin, topic_id).high_watermark == 1
        world.close()
