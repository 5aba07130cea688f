"""Bulk reads of topics that are partly in tiered segments: nobody notices where bytes lay."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from skylog.bulk.errors import DataLossError
from skylog.client import bulk
from skylog.client.bulk import PartitionRange, Region, Regions, Split
from skylog.kernel.errors import ErrorCode, KafkaError
from skylog.testing import Broker
from skylog.wire.messages.locate_batches_request import LocateBatchesRequest, LocateRange
from skylog.wire.messages.plan_ranges_request import PlanPartition, PlanRangesRequest, PlanTopic
from tests.consolidating import CONSOLIDATING, consolidating_broker
from tests.integration import tiers_by_hand as by_hand
from tests.integration.broker_client import Client
from tests.integration.bulk_support import cluster
from tests.integration.bulk_tiers import (
    LAYOUTS,
    TOPIC,
    key_of,
    only_buckets,
    prune,
    still_broker,
    tier,
    tier_and_prune,
    without_wal,
)
from tests.integration.frames_support import (
    BASE_MS,
    PARTITIONS,
    consumed,
    create,
    produce,
    read,
    rows_of,
)
from tests.integration.tiered_topics import delete_records, fill

COUNT = 900
EACH = COUNT // PARTITIONS
# Of three partitions: much is tiered alone, a little, nothing.
TIERS = {0: [100, 180, 250], 1: [60, 90]}


@pytest.fixture
def node(tmp_path: Path) -> Iterator[Broker]:
    with still_broker(tmp_path) as running:
        yield running


def filled(broker: Broker, topic: str = "tiers", **configs: str) -> str:
    more = {name.replace("_", "."): text for name, text in configs.items()}
    create(broker, topic, **{**TOPIC, **more})
    for codec in ("none", "zstd", "lz4"):
        produce(broker, topic, COUNT // 3, **{"compression.type": codec})
    return topic


# --- Rows -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("kind", ["CreateTime", "LogAppendTime"])
def test_rows_are_those_of_a_consumer_wherever_they_are(
    tmp_path: Path, layout: str, kind: str
) -> None:
    with still_broker(tmp_path, layout) as broker:
        topic = filled(broker, message_timestamp_type=kind)
        before = rows_of(read(broker, topic).to_arrow())
        assert len(before) == COUNT
        starts = tier_and_prune(broker, topic, TIERS)
        assert all(start > 0 for start in starts.values())
        with only_buckets():
            assert rows_of(read(broker, topic).to_arrow()) == before
            assert rows_of(read(broker, topic, threads=1).to_arrow()) == before
        assert rows_of(read(broker, topic, via="broker").to_arrow()) == before
        assert consumed(broker, topic) == before
        frame = read(broker, topic).to_pandas()
        assert list(frame["offset"]) == [row["offset"] for row in before]
        # Any range, across the edges of segments and tiers.
        with only_buckets():
            for start, end in ((0, 1), (99, 101), (starts[0] - 1, starts[0] + 1), (3, EACH)):
                part = read(broker, topic, partitions=[0], start=start, end=end)
                found = rows_of(part.to_arrow())
                assert found == [
                    row for row in before if row["partition"] == 0 and start <= row["offset"] < end
                ]


def test_a_read_planned_before_a_prune_is_carried_out_after_it(
    tmp_path: Path, node: Broker
) -> None:
    topic = filled(node)
    planned = read(node, topic)
    before = rows_of(planned.to_arrow())
    for index in range(PARTITIONS):
        assert tier(node, topic, index, 0, EACH).end_offset == EACH - 1
        prune(node, topic, index, EACH)
    without_wal(tmp_path)
    with only_buckets():
        assert rows_of(planned.to_arrow()) == before
        assert rows_of(read(node, topic).to_arrow()) == before


def test_a_damaged_or_missing_log_is_left_to_the_brokers(tmp_path: Path, node: Broker) -> None:
    """They may have it in the WAL; if they have not, the read fails and says why."""
    topic = filled(node)
    before = rows_of(read(node, topic).to_arrow())
    segment = tier(node, topic, 0, 0, 200)
    logs = list((tmp_path / "segments").rglob("*.log"))
    assert len(logs) == 1
    whole = logs[0].read_bytes()
    logs[0].write_bytes(whole[:500] + b"\xff" + whole[501:])
    assert rows_of(read(node, topic).to_arrow()) == before
    logs[0].unlink()
    assert rows_of(read(node, topic).to_arrow()) == before
    prune(node, topic, 0, segment.end_offset + 1)
    logs[0].write_bytes(whole)
    with only_buckets():
        assert rows_of(read(node, topic).to_arrow()) == before


def test_a_reader_from_the_start_while_tiers_move(tmp_path: Path, node: Broker) -> None:
    """Segments, prunes and deletions come in any order beside it: every record once."""
    topic = filled(node)
    before = rows_of(read(node, topic).to_arrow())
    ended = threading.Event()
    failures: list[BaseException] = []
    rounds: list[int] = []

    def read_on() -> None:
        try:
            while not (ended.is_set() and rounds):
                rows = rows_of(read(node, topic, threads=1, progress=False).to_arrow())
                assert rows == before
                rounds.append(len(rows))
        except BaseException as error:  # noqa: BLE001 - raised by the test
            failures.append(error)

    reader = threading.Thread(target=read_on)
    reader.start()
    try:
        ends = [0] * PARTITIONS
        for step in range(50, EACH + 1, 50):
            for index in range(PARTITIONS):
                ends[index] = tier(node, topic, index, ends[index], step).end_offset + 1
                prune(node, topic, index, ends[index])
    finally:
        ended.set()
        reader.join(60)
    assert not failures, failures
    assert rounds
    with Client(node.bootstrap) as client:
        assert delete_records(client, topic, 77) == 77
    rows = rows_of(read(node, topic).to_arrow())
    assert rows == [row for row in before if row["partition"] or row["offset"] >= 77]
    with pytest.raises(DataLossError):
        read(node, topic, partitions=[0], start=5)


def test_a_reader_from_the_start_while_the_broker_moves_and_deletes(tmp_path: Path) -> None:
    """With its own assembler, pruner and expiry: no gap, no wrong record, no early end."""
    topic, partition = "moving", 0
    with consolidating_broker(tmp_path) as broker, Client(broker.bootstrap) as client:
        small = {**CONSOLIDATING, "retention.bytes": "3000"}
        client.create(topic, configs=small)
        parts: Any = broker.node._services
        key = key_of(broker, topic, partition)

        def info() -> Any:
            return broker.run(parts.diskless.plane.log_info([key]))[0]

        end, tiered_alone = 0, 0
        while (found := info()).log_start_offset < 100:
            tiered_alone += found.wal_start_offset > found.log_start_offset
            fill(client, topic, end, end + 20)
            end += 20
            rows = rows_of(read(broker, topic, fail_on_data_loss=False).to_arrow())
            offsets = [row["offset"] for row in rows]
            # Retention may be ahead of the read, and takes nothing but its beginning.
            assert offsets == list(range(end - len(offsets), end))
            assert [row["value"] for row in rows] == [b"%06d" % offset for offset in offsets]
            assert offsets[0] >= found.log_start_offset
        assert tiered_alone


# --- The APIs -------------------------------------------------------------------------------------


async def planned(
    broker: Broker, *ranges: PartitionRange, split_bytes: int = 1 << 30, **more: Any
) -> bulk.Plan:
    async with cluster(broker.bootstrap) as opened:
        return await bulk.plan_ranges(opened, ranges, split_bytes, **more)


async def test_plans_are_cut_by_bytes_in_both_tiers(node: Broker) -> None:
    topic = filled(node)
    starts = tier_and_prune(node, topic, TIERS)
    key = key_of(node, topic, 0)
    segments = list(node.node._services.tiered.logs.get(key).all())  # type: ignore[union-attr]
    covered = segments[-1].end_offset + 1
    assert covered > starts[0]
    plan = await planned(node, PartitionRange(topic, 0), split_bytes=1500)
    (found,) = plan.partitions
    assert (found.error, found.diskless, found.log_start_offset) == (0, True, 0)
    edges = [split.start_offset for split in found.splits] + [EACH]
    assert edges == [0] + [split.end_offset for split in found.splits]
    in_segments = [split for split in found.splits if split.region is Region.TIERED]
    # What is in both is read from segments: they are large, and no prune takes them away.
    assert in_segments[-1].end_offset == covered
    assert all(split.region is Region.TOPIC for split in found.splits[len(in_segments) :])
    sizes = [split.bytes for split in in_segments]
    assert max(sizes) < 2 * 1000
    assert min(sizes[:-1]) > 1000
    assert abs(sum(sizes) - sum(one.size for one in segments)) < 10 * len(sizes)
    # One that is small needs no more splits than there are tiers.
    (whole,) = (await planned(node, PartitionRange(topic, 0))).partitions
    assert [split.region for split in whole.splits] == [Region.TIERED, Region.TOPIC]
    # What is only in the WAL, for audits.
    (wal,) = (await planned(node, PartitionRange(topic, 0), regions=Regions.WAL)).partitions
    assert [(s.start_offset, s.end_offset) for s in wal.splits] == [(starts[0], EACH)]
    async with cluster(node.bootstrap) as opened:
        page = await bulk.locate_batches(opened, whole.splits[0], regions=Regions.WAL)
    assert page.batches[0].base_offset == starts[0]
    # For such a reader the log begins there: what was pruned since its plan is no gap.
    assert page.log_start_offset == starts[0]
    assert {batch.region for batch in page.batches} == {Region.TOPIC}


async def test_segments_that_are_too_old_are_skipped(node: Broker) -> None:
    create(node, "dated", **TOPIC)
    produce(node, "dated", COUNT, **{"batch.num.messages": 5})
    ends = []
    start = 0
    for end in (60, 150, 210):
        segment = tier(node, "dated", 0, start, end)
        start = segment.end_offset + 1
        ends.append(segment)
    prune(node, "dated", 0, start)
    young = ends[0].max_timestamp_ms + 1
    assert young > BASE_MS
    asked = PartitionRange("dated", 0, min_timestamp=young)
    (found,) = (await planned(node, asked)).partitions
    assert found.skipped_bytes == ends[0].size
    assert found.splits[0].start_offset == ends[0].end_offset + 1
    whole = Split("dated", found.topic_id, 0, 0, EACH, 0, True)
    async with cluster(node.bootstrap) as opened:
        page = await bulk.locate_batches(opened, whole, min_timestamp=young)
    assert page.batches[0].base_offset == ends[0].end_offset + 1
    assert page.next_offset == EACH


async def test_pages_of_locations_follow_each_other(node: Broker) -> None:
    topic = filled(node)
    tier_and_prune(node, topic, TIERS)
    async with cluster(node.bootstrap) as opened:
        plan = await bulk.plan_ranges(opened, [PartitionRange(topic, 0)], 1 << 30)
        whole = Split(topic, plan.partitions[0].topic_id, 0, 0, EACH, 0, True)
        for most in (1, 2, 7, 10_000):
            at, regions = 0, []
            while at < EACH:
                page = await bulk.locate_batches(opened, whole, start_offset=at, max_batches=most)
                assert 0 < len(page.batches) <= most
                assert page.batches[0].base_offset <= at
                regions += [batch.region for batch in page.batches]
                at = page.next_offset
            assert regions.count(Region.TIERED) == len(TIERS[0])
            assert regions == sorted(regions, reverse=True)
        wanted = [(Split(topic, whole.topic_id, index, 0, EACH, 0, True), 0) for index in range(3)]
        found = await bulk.locate_many(opened, wanted)
        assert [one.next_offset for one in found if isinstance(one, bulk.Located)] == [EACH] * 3
        outside = Split(topic, whole.topic_id, 0, 0, EACH + 1, 0, True)
        with pytest.raises(KafkaError) as refused:
            await bulk.locate_batches(opened, outside)
        assert refused.value.code is ErrorCode.OFFSET_OUT_OF_RANGE


def test_an_older_client_is_sent_to_the_brokers(node: Broker) -> None:
    """It knows of no regions: whatever it may believe must be true."""
    topic = filled(node)
    tier_and_prune(node, topic, TIERS)
    with Client(node.bootstrap) as client:
        entries = [PlanTopic(topic, [PlanPartition(index)]) for index in range(3)]
        answer = client.ask(PlanRangesRequest(1 << 20, entries))
        assert [one.diskless for one in answer.topics] == [False, False, True]
        for one in answer.topics:
            (partition,) = one.partitions
            assert partition.error_code == 0
            assert [split.region for split in partition.splits] == [0] * len(partition.splits)
            assert partition.splits[0].start_offset == 0
            assert partition.splits[-1].end_offset == EACH
        topic_id = key_of(node, topic, 0).topic_id
        pruned = LocateRange(topic, topic_id, 0, 0, EACH)
        (refused,) = client.ask(LocateBatchesRequest(100, [pruned])).ranges
        assert refused.error_code == ErrorCode.OFFSET_MOVED_TO_TIERED_STORAGE
        assert not refused.batches


def test_a_broker_without_a_replica_learns_what_is_tiered() -> None:
    with by_hand.three_brokers() as brokers:
        by_hand.create(brokers, "far")
        leader = by_hand.leader_of(brokers, "far")
        by_hand.fill(leader, "far", 0, 500)
        by_hand.tier(brokers, "far", 0, 300)
        by_hand.prune(leader, "far", 200)
        outsider = by_hand.outsider(brokers, "far")
        topic_id = by_hand.key_of(leader, "far").topic_id
        with Client(outsider.bootstrap) as client:
            asked = LocateBatchesRequest(
                100, [LocateRange("far", topic_id, 0, 0, 500)], Regions.ALL
            )
            located = client.ask(asked)
            entries = [PlanTopic("far", [PlanPartition(0)])]
            answer = client.ask(PlanRangesRequest(1 << 30, entries, Regions.ALL))
        (found,) = located.ranges
        assert (found.error_code, found.next_offset) == (0, 500)
        offsets = [(batch.base_offset, batch.last_offset) for batch in found.batches]
        assert offsets == [(0, 299), (300, 399), (400, 499)]
        assert located.tiered_url is not None
        (plan,) = answer.topics[0].partitions
        splits = [(one.start_offset, one.end_offset, one.region) for one in plan.splits]
        assert splits == [(0, 300, Region.TIERED), (300, 500, Region.TOPIC)]
