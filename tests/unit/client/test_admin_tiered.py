"""Remote logs, page by page."""

from __future__ import annotations

import pytest

from skylog.client.admin import Admin
from skylog.client.metadata import PartitionInfo, TopicInfo
from skylog.kernel.errors import ErrorCode, KafkaError
from skylog.kernel.ids import Uuid
from skylog.wire.apis import ApiKey
from skylog.wire.messages.describe_remote_log_response import (
    DescribedRemoteSegment,
    DescribeRemoteLogResponse,
)
from tests.unit.client.support import FakeBroker, cluster_of, running

TOPIC = TopicInfo("t", Uuid(b"t" * 16), False, {0: PartitionInfo(0, 1, 5, (1,), (1,))})
ASK = ApiKey.DESCRIBE_REMOTE_LOG


def page(*offsets: int, more: bool = False) -> DescribeRemoteLogResponse:
    return DescribeRemoteLogResponse(
        has_more=more,
        segments=[
            DescribedRemoteSegment(
                segment_id=Uuid(bytes([offset]) * 16), start_offset=offset, end_offset=offset + 9
            )
            for offset in offsets
        ],
    )


async def test_segments_are_read_page_by_page() -> None:
    broker = FakeBroker()
    broker.on(
        ASK,
        DescribeRemoteLogResponse(error_code=ErrorCode.NOT_LEADER_OR_FOLLOWER),  # asked again
        page(0, 10, more=True),
        page(20),
    )
    async with running(broker), cluster_of(broker) as cluster:
        found = await Admin(cluster).tiered.segments(TOPIC, 0)
    assert [segment.start_offset for segment in found] == [0, 10, 20]
    assert [(one.start_offset, one.after_segment_id) for one in broker.requests(ASK)] == [
        (0, Uuid(bytes(16))),
        (0, Uuid(bytes(16))),
        (10, Uuid(bytes([10]) * 16)),
    ]


async def test_a_page_without_segments_is_the_last_one() -> None:
    broker = FakeBroker()
    broker.on(ASK, page(0, more=True), page(more=True))
    async with running(broker), cluster_of(broker) as cluster:
        assert len(await Admin(cluster).tiered.segments(TOPIC, 0)) == 1


async def test_a_topic_that_is_not_remote_says_so() -> None:
    broker = FakeBroker()
    refused = DescribeRemoteLogResponse(
        error_code=ErrorCode.INVALID_REQUEST, error_message="not remote"
    )
    broker.on(ASK, refused)
    async with running(broker), cluster_of(broker) as cluster:
        with pytest.raises(KafkaError, match="not remote"):
            await Admin(cluster).tiered.segments(TOPIC, 0)
