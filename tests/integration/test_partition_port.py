"""All handlers serve a new kind of partition that none of them knows.

Only the factory knows it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from skylog.controller.image.topics import PartitionKind
from skylog.kernel.errors import ErrorCode
from skylog.testing import Broker
from skylog.wire.messages.delete_records_request import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from skylog.wire.messages.offset_for_leader_epoch_request import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from skylog.wire.messages.plan_ranges_request import PlanPartition, PlanRangesRequest, PlanTopic
from tests.integration.bounded_partitions import BoundedPartitions
from tests.integration.broker_client import NOW, Client, batch, told, values

BOUNDARY = 3
HYBRID = "hybrid"
BOTH = ((HYBRID, 0), (HYBRID, 1))


@pytest.fixture
def broker() -> Iterator[Broker]:
    with Broker({"log.level": "ERROR"}) as running:
        yield running


@pytest.fixture
def client(broker: Broker) -> Iterator[Client]:
    with Client(broker.bootstrap) as connected:
        connected.create(HYBRID, 2)
        connected.create("classic")
        connected.create("diskless", 1, {"diskless.enable": "true"})
        yield connected


@pytest.fixture
def bounded(broker: Broker, client: Client) -> BoundedPartitions:
    kinds = broker.node._services.partitions.kinds
    found = BoundedPartitions(kinds[PartitionKind.CLASSIC], {HYBRID}, BOUNDARY)
    kinds[PartitionKind.CLASSIC] = found
    return found


def fill(client: Client, count: int = 5) -> None:
    for number in range(count):
        parts = [(*place, batch(b"%d" % number, timestamp=NOW + number)) for place in BOTH]
        answers = client.produce_all(parts)
        assert [(one.error_code, one.base_offset) for one in answers.values()] == [(0, number)] * 2


def test_produce_goes_to_both_sides_of_the_boundary(
    client: Client, bounded: BoundedPartitions
) -> None:
    fill(client)
    # One call for all partitions of a request, and none below the boundary.
    assert bounded.calls == [("write", 2)] * 2
    mixed = [(HYBRID, 0, batch(b"h")), ("classic", 0, batch(b"c")), ("diskless", 0, batch(b"d"))]
    answers = client.produce_all(mixed)
    assert [one.error_code for one in answers.values()] == [0, 0, 0]
    assert [one.base_offset for one in answers.values()] == [5, 0, 0]


def test_a_fetch_reads_one_region_at_a_time(client: Client, bounded: BoundedPartitions) -> None:
    fill(client)
    bounded.calls.clear()
    below = client.fetch_all(*((*place, 1) for place in BOTH))
    assert [values(one.records) for one in told(below).values()] == [[b"1", b"2"]] * 2
    assert bounded.calls == []
    above = client.fetch_all(*((*place, BOUNDARY) for place in BOTH))
    assert [values(one.records) for one in told(above).values()] == [[b"3", b"4"]] * 2
    assert bounded.calls == [("read", 2)]
    across = client.fetch_all((HYBRID, 0, 0), (HYBRID, 1, 4))
    assert [values(one.records) for one in told(across).values()] == [[b"0", b"1", b"2"], [b"4"]]
    outside = client.fetch(HYBRID, 6)
    assert outside.error_code == ErrorCode.OFFSET_OUT_OF_RANGE


def test_a_fetch_of_all_kinds_is_one_answer_in_order(
    client: Client, bounded: BoundedPartitions
) -> None:
    fill(client)
    for topic in ("classic", "diskless"):
        assert client.produce(topic, topic.encode()).error_code == 0
    parts = [("diskless", 0, 0), (HYBRID, 1, 3), ("classic", 0, 0), (HYBRID, 0, 0)]
    answer = client.fetch_all(*parts)
    found = told(answer)
    assert list(found) == [(topic, index) for topic, index, _ in parts]
    assert [values(one.records) for one in found.values()] == [
        [b"diskless"],
        [b"3", b"4"],
        [b"classic"],
        [b"0", b"1", b"2"],
    ]


def test_a_fetch_waits_at_the_end(broker: Broker, client: Client, bounded: Any) -> None:
    fill(client)
    with Client(broker.bootstrap) as waiting:
        first = waiting.fetch_all((HYBRID, 0, 5), session=(0, 0))
        assert not told(first)[HYBRID, 0].records
        produced = client.produce(HYBRID, b"at last")
        assert produced.base_offset == 5
        later = waiting.fetch_all(session=(first.session_id, 1), wait_ms=60_000)
        assert values(told(later)[HYBRID, 0].records) == [b"at last"]


def test_offsets(client: Client, bounded: BoundedPartitions) -> None:
    fill(client)
    bounded.calls.clear()
    ends = [client.offset(HYBRID, which) for which in (-2, -1)]
    assert [(one.offset, one.leader_epoch) for one in ends] == [(0, 7), (5, 7)]
    assert bounded.calls == []
    found = client.offset(HYBRID, NOW + 4)
    assert (found.error_code, found.offset, found.timestamp) == (0, 4, NOW + 4)
    assert client.offset(HYBRID, NOW + 9).error_code == ErrorCode.KAFKA_STORAGE_ERROR
    assert bounded.calls == [("search", 1)] * 2


def test_records_are_deleted_on_both_sides(client: Client, bounded: BoundedPartitions) -> None:
    fill(client)
    bounded.calls.clear()
    for offset, calls in ((2, []), (4, [("delete", 2)])):
        parts = [DeleteRecordsPartition(index, offset) for index in (0, 1)]
        request = DeleteRecordsRequest([DeleteRecordsTopic(HYBRID, parts)], 30_000)
        answers = client.ask(request).topics[0].partitions
        assert [(one.error_code, one.low_watermark) for one in answers] == [(0, offset)] * 2
        assert bounded.calls == calls
        assert client.fetch(HYBRID, offset - 1).error_code == ErrorCode.OFFSET_OUT_OF_RANGE


def test_epochs(client: Client, bounded: BoundedPartitions) -> None:
    fill(client)
    bounded.calls.clear()
    for epoch, end, calls in ((6, BOUNDARY, 0), (7, 5, 1)):
        parts = [OffsetForLeaderPartition(index, -1, epoch) for index in (0, 1)]
        request = OffsetForLeaderEpochRequest(topics=[OffsetForLeaderTopic(HYBRID, parts)])
        answers = client.ask(request).topics[0].partitions
        assert [(one.leader_epoch, one.end_offset) for one in answers] == [(epoch, end)] * 2
        assert bounded.calls == [("end_epochs", 2)] * calls


def test_a_plan_is_cut_at_the_boundary(client: Client, bounded: BoundedPartitions) -> None:
    fill(client)
    bounded.calls.clear()
    topic = PlanTopic(HYBRID, [PlanPartition(index) for index in (0, 1)])
    answers = client.ask(PlanRangesRequest(50, [topic])).topics[0].partitions
    for one in answers:
        edges = [(split.start_offset, split.end_offset) for split in one.splits]
        assert (one.error_code, edges) == (0, [(0, BOUNDARY), (BOUNDARY, 5)])
    assert bounded.calls == [("plan", 2)] * 2
