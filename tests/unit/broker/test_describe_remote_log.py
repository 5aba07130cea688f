"""DescribeRemoteLog: pages of segments, and who may ask."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from skylog.broker.handlers.tiered import describe_remote_log
from skylog.kernel.errors import ErrorCode, KafkaError
from skylog.kernel.ids import ZERO_UUID
from skylog.log.config import LogConfig
from skylog.tiered.segments import SegmentState
from skylog.wire.codec import decode, encode
from skylog.wire.messages.describe_remote_log_request import DescribeRemoteLogRequest
from skylog.wire.messages.describe_remote_log_response import DescribeRemoteLogResponse
from tests.unit.tiered.remote_records import PARTITION, TOPIC, TOPIC_ID, History, segment


def context(
    history: History | None,
    *,
    known: bool = True,
    allowed: bool = True,
    remote: bool = True,
    broker: bool = False,
) -> Any:
    logs = {} if history is None else {PARTITION: history.log}
    return SimpleNamespace(
        services=SimpleNamespace(
            tiered=SimpleNamespace(logs=logs),
            configs=SimpleNamespace(log_config=lambda _: LogConfig(remote=remote)),
            image=SimpleNamespace(topic_name=lambda _: TOPIC if known else None),
        ),
        allowed=lambda name: allowed and name == TOPIC,
        authorize_cluster=lambda operation, audit: broker,
    )


def ask(world: Any, **more: Any) -> DescribeRemoteLogResponse:
    request = DescribeRemoteLogRequest(TOPIC_ID, 0, **({"limit": 100} | more))
    answer = describe_remote_log(world, request)
    return decode(DescribeRemoteLogResponse, encode(answer, 0), 0)


@pytest.fixture
def history() -> History:
    made = History()
    for number in range(5):
        made.started(segment(number, number // 2 * 10, 99, copier_epoch=3), log_start=7)
    made.finished(segment(2, 10, 99), epoch=3)
    return made


def test_pages_follow_each_other_without_gap_or_repetition(history: History) -> None:
    world, seen = context(history), []
    start, after, more = 0, ZERO_UUID, True
    while more:
        answer = ask(world, start_offset=start, after_segment_id=after, limit=2)
        seen += [one.segment_id for one in answer.segments]
        start, after = answer.segments[-1].start_offset, answer.segments[-1].segment_id
        more = answer.has_more
    # The first one has the zero id, which no segment has in earnest.
    assert seen == [segment(number, 0, 0).id for number in range(1, 5)]


def test_an_answer_says_what_it_stands_for(history: History) -> None:
    answer = ask(context(history))
    assert (answer.topic, answer.fence, answer.log_start_offset) == (TOPIC, 3, 7)
    assert answer.metadata_offset == 6
    assert [(one.leader_epoch, one.offset) for one in answer.highest_offsets] == [(0, 99)]
    finished = ask(context(history), finished_only=True).segments
    assert [one.remote_log_segment_state for one in finished] == [SegmentState.COPY_FINISHED]


def test_what_is_left_of_a_disabled_topic_is_described(history: History) -> None:
    assert len(ask(context(history, remote=False)).segments) == 4


def test_a_deleted_topic_is_described_while_it_is_followed(history: History) -> None:
    assert ask(context(history, known=False)).topic == TOPIC


@pytest.mark.parametrize(
    ("world", "code"),
    [
        (context(None), ErrorCode.REPLICA_NOT_AVAILABLE),
        # Clients would ask for it again and again, until they give up.
        (context(None, remote=False), ErrorCode.INVALID_REQUEST),
        (context(None, known=False), ErrorCode.UNKNOWN_TOPIC_ID),
        (context(History(), allowed=False), ErrorCode.TOPIC_AUTHORIZATION_FAILED),
    ],
)
def test_refusals(world: Any, code: ErrorCode) -> None:
    with pytest.raises(KafkaError) as raised:
        ask(world)
    assert raised.value.code is code


def test_a_limit_must_be_positive(history: History) -> None:
    with pytest.raises(KafkaError):
        ask(context(history), limit=0)


def test_brokers_may_ask_for_any_topic(history: History) -> None:
    """One without a replica reads the segments for its clients."""
    assert ask(context(history, allowed=False, broker=True)).topic == TOPIC
