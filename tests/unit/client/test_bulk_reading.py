"""What brokers answer to bulk readers, also those of another release or of ill will."""

from __future__ import annotations

import pytest

from skylog.client.bulk import Located, Region, Split
from skylog.client.bulk.reading import _located, _planned
from skylog.kernel.errors import KafkaError
from skylog.kernel.ids import ZERO_UUID
from skylog.wire.messages import plan_ranges_response as planned
from skylog.wire.messages.locate_batches_response import (
    LocateBatchesResponse,
    LocatedBatch,
    LocatedRange,
)


def answer(*batches: LocatedBatch) -> Located:
    found = LocatedRange(next_offset=9, batches=list(batches))
    (located,) = _located(LocateBatchesResponse(0, ["a", "b"], [found], "s3://tiered"))
    assert isinstance(located, Located)
    return located


def test_regions_of_batches() -> None:
    found = answer(
        LocatedBatch(0),
        LocatedBatch(1, region=3, segment_size=7),
        LocatedBatch(-1, region=1),
        LocatedBatch(99, region=77),
    )
    assert [one.region for one in found.batches] == [
        Region.TOPIC,
        Region.TIERED,
        # One that only a later release knows: brokers read from it.
        Region.BROKER,
        Region.BROKER,
    ]
    assert [one.object_key for one in found.batches] == ["a", "b", "", ""]
    assert (found.tiered_url, found.batches[1].segment_size) == ("s3://tiered", 7)


@pytest.mark.parametrize("index", [-1, 2, 2**31 - 1])
def test_an_object_that_the_answer_does_not_name(index: int) -> None:
    with pytest.raises(KafkaError, match="of the answer"):
        answer(LocatedBatch(index))


@pytest.mark.parametrize(
    ("diskless", "region", "in_bucket"),
    [(True, 0, True), (False, 0, False), (True, 1, False), (True, 3, True), (True, 9, False)],
)
def test_where_a_split_is_read(diskless: bool, region: int, in_bucket: bool) -> None:
    splits = [planned.PlannedSplit(0, 5, 10, region)]
    topic = planned.PlannedTopic(
        "t", ZERO_UUID, diskless, partitions=[planned.PlannedPartition(splits=splits)]
    )
    (plan,) = _planned(planned.PlanRangesResponse(topics=[topic]))
    (split,) = plan.splits
    assert isinstance(split, Split)
    assert split.in_bucket == in_bucket
