"""What finds and ListOffsets must answer, on every plane."""

from __future__ import annotations

from skylog.diskless.batch import LOG_APPEND_TIME
from skylog.diskless.plane import (
    EARLIEST,
    EARLIEST_LOCAL,
    EARLIEST_PENDING_UPLOAD,
    LATEST,
    LATEST_TIERED,
    MAX_TIMESTAMP,
    FindRequest,
)
from skylog.kernel.errors import ErrorCode
from tests.contract.support import (
    B0,
    NONE,
    OUT_OF_RANGE,
    PLENTY,
    STRANGER,
    T0,
    T1,
    TIERED,
    TOPIC,
    UNKNOWN,
    Scene,
    batch,
    check,
)


@check
async def a_find_tells_where_batches_lie(scene: Scene) -> None:
    """DC-17, DC-13: every field."""
    key = scene.key()
    await scene.commit(batch(count=3, size=70, batch_max_timestamp=55), batch(T1, 2, 80), key=key)
    (found,) = await scene.find((T0, 0))
    assert (found.error, found.log_start_offset, found.high_watermark) == (NONE, 0, 3)
    (one,) = found.batches
    assert one.extent == (key, 1, 70)
    assert (one.stamp.base_offset, one.stamp.last_offset, one.stamp.magic) == (0, 2, 2)
    assert (one.stamp.batch_max_timestamp, one.stamp.timestamp_type) == (55, 0)
    assert one.stamp.log_append_timestamp == scene.now
    (other,) = (await scene.find((T1, 0)))[0].batches
    assert (*other.extent[1:], other.stamp.last_offset) == (71, 80, 1)
    assert other.batch_id != one.batch_id


@check
async def a_find_starts_with_the_batch_that_holds_the_offset(scene: Scene) -> None:
    for _ in range(3):
        await scene.commit(batch(count=10))
    assert await scene.bases(T0, 0) == [0, 10, 20]
    assert await scene.bases(T0, 9) == [0, 10, 20]
    assert await scene.bases(T0, 10) == [10, 20]
    assert await scene.bases(T0, 29) == [20]


@check
async def the_high_watermark_is_empty_and_above_it_is_out_of_range(scene: Scene) -> None:
    """Design rule 4."""
    await scene.commit(batch(count=4))
    at, above = await scene.find((T0, 4), (T0, 5))
    assert (at.error, list(at.batches), at.high_watermark) == (NONE, [], 4)
    assert (above.error, above.log_start_offset, above.high_watermark) == (OUT_OF_RANGE, 0, 4)


@check
async def a_partition_without_commits(scene: Scene) -> None:
    at, above = await scene.find((T0, 0), (T0, 1))
    assert (at.error, list(at.batches), at.log_start_offset, at.high_watermark) == (NONE, [], 0, 0)
    assert above.error == OUT_OF_RANGE


@check
async def below_the_log_start_is_out_of_range(scene: Scene) -> None:
    """Also inside a batch that is still there; negative offsets too."""
    await scene.commit(batch(count=4), batch(count=4))
    await scene.plane.delete_records([(*T0, 2)])
    inside, start, negative = await scene.find((T0, 1), (T0, 2), (T0, -1))
    assert (inside.error, inside.log_start_offset, inside.high_watermark) == (OUT_OF_RANGE, 2, 8)
    assert [b.stamp.base_offset for b in start.batches] == [0, 4]
    assert negative.error == OUT_OF_RANGE


@check
async def unknown_partitions_concern_only_themselves(scene: Scene) -> None:
    await scene.commit(batch())
    strange, known, beyond = await scene.find(((STRANGER, 0), 0), (T0, 0), ((TOPIC, 2), 0))
    assert (strange.error, strange.log_start_offset, strange.high_watermark) == (UNKNOWN, -1, -1)
    assert beyond.error == UNKNOWN
    assert (known.error, len(known.batches)) == (NONE, 1)


@check
async def the_same_partition_may_be_asked_twice(scene: Scene) -> None:
    await scene.commit(batch(count=2), batch(count=2))
    first, second = await scene.find((T0, 2), (T0, 0))
    assert [b.stamp.base_offset for b in first.batches] == [2]
    assert [b.stamp.base_offset for b in second.batches] == [0, 2]
    assert await scene.find() == []


async def _ten_each(scene: Scene) -> None:
    """Ten batches of 100 bytes in each partition, one record each."""
    for partition in (T0, T1, B0):
        await scene.commit(*[batch(partition) for _ in range(10)])


@check
async def one_budget_in_request_order(scene: Scene) -> None:
    """Design rule 3: partitions after the budget is spent are empty, with their real high
    watermark."""
    await _ten_each(scene)
    found = await scene.find((T1, 0), (T0, 2), (B0, 0), fetch_bytes=1250)
    assert [len(f.batches) for f in found] == [10, 2, 0]
    assert [(f.error, f.high_watermark) for f in found] == [(NONE, 10)] * 3
    rotated = await scene.find((B0, 0), (T1, 0), (T0, 2), fetch_bytes=1250)
    assert [len(f.batches) for f in rotated] == [10, 2, 0]
    exact = await scene.find((T0, 0), (T1, 0), fetch_bytes=1000)
    assert [len(f.batches) for f in exact] == [10, 0]


@check
async def the_partition_limit_cuts(scene: Scene) -> None:
    await _ten_each(scene)
    found = await scene.find((T0, 0), (T1, 0), partition_bytes=250)
    assert [len(f.batches) for f in found] == [2, 2]
    found = await scene.find((T0, 0), (T1, 0), partition_bytes=200)
    assert [len(f.batches) for f in found] == [2, 2]


@check
async def the_count_limit_cuts(scene: Scene) -> None:
    """Q25: 0 is no limit."""
    await _ten_each(scene)
    found = await scene.find((T0, 0), (T1, 9), (B0, 0), batches=2)
    assert [len(f.batches) for f in found] == [2, 1, 2]
    found = await scene.find((T0, 0), (T1, 9), batches=1)
    assert [len(f.batches) for f in found] == [1, 1]


@check
async def the_first_batch_is_always_granted(scene: Scene) -> None:
    """The first of the request, not of each partition; empty partitions do not count."""
    await _ten_each(scene)
    found = await scene.find((T0, 0), (T1, 0), fetch_bytes=1)
    assert [len(f.batches) for f in found] == [1, 0]
    found = await scene.find((T0, 0), (T1, 0), fetch_bytes=0)
    assert [len(f.batches) for f in found] == [1, 0]
    found = await scene.find((T0, 10), (T0, 11), ((STRANGER, 0), 0), (T1, 0), fetch_bytes=0)
    assert [len(f.batches) for f in found] == [0, 0, 0, 1]
    assert found[1].error == OUT_OF_RANGE
    requests = [FindRequest(*T0, 0, 0), FindRequest(*T1, 0, 0), FindRequest(*B0, 0, 1)]
    found = await scene.plane.find_batches(requests, PLENTY)
    assert [len(f.batches) for f in found] == [1, 0, 0]


@check
async def a_batch_that_does_not_fit_leaves_the_rest_to_others(scene: Scene) -> None:
    """As in Kafka: only the first batch of a response may exceed the limit."""
    await scene.commit(*[batch(T0, size=5070) for _ in range(3)], batch(T1, size=900))
    (found,) = await scene.find((T0, 1), partition_bytes=6000)
    assert [b.stamp.base_offset for b in found.batches] == [1]
    found, other = await scene.find((T0, 0), (T1, 0), fetch_bytes=6000)
    assert [len(f.batches) for f in (found, other)] == [1, 1]
    first, large, small = await scene.find((T1, 0), (T0, 0), (T1, 0), fetch_bytes=2000)
    assert [len(f.batches) for f in (first, large, small)] == [1, 0, 1]


@check
async def rotated_requests_are_fair(scene: Scene) -> None:
    """A consumer moves served partitions to the end, so all get the same in the long run."""
    await _ten_each(scene)
    order = [T0, T1, B0]
    got = dict.fromkeys(order, 0)
    for _ in range(9):
        found = await scene.find(*[(tp, got[tp]) for tp in order], fetch_bytes=250)
        served = [tp for tp, one in zip(order, found, strict=True) if one.batches]
        for tp, one in zip(order, found, strict=True):
            got[tp] += len(one.batches)
        order = [tp for tp in order if tp not in served] + served
    assert sorted(got.values()) == [6, 6, 6]


# --- ListOffsets ----------------------------------------------------------------------------------


@check
async def named_offsets(scene: Scene) -> None:
    """DC-15, Q29."""
    await scene.commit(batch(count=4), batch(count=4))
    await scene.plane.delete_records([(*T0, 2)])
    assert await scene.listed(EARLIEST) == (-1, 2)
    assert await scene.listed(EARLIEST_LOCAL) == (-1, 2)
    assert await scene.listed(LATEST) == (-1, 8)
    assert await scene.listed(LATEST_TIERED) == (-1, -1)
    assert await scene.listed(EARLIEST_PENDING_UPLOAD) == (-1, -1)


@check
async def offsets_of_a_partition_without_records(scene: Scene) -> None:
    for timestamp in (EARLIEST, EARLIEST_LOCAL, LATEST):
        assert await scene.listed(timestamp) == (-1, 0)
    for timestamp in (MAX_TIMESTAMP, 0, scene.now):
        assert await scene.listed(timestamp) == (-1, -1)


@check
async def listing_fails_by_partition(scene: Scene) -> None:
    """Results are in the order of the request."""
    asked = [(STRANGER, 0, LATEST), (*T0, -99), (*T1, LATEST), (TOPIC, 2, 0)]
    results = await scene.plane.list_offsets(asked)
    assert [r.error for r in results] == [
        UNKNOWN,
        ErrorCode.UNSUPPORTED_VERSION,
        NONE,
        UNKNOWN,
    ]
    assert [(r.timestamp, r.offset) for r in results] == [(-1, -1), (-1, -1), (-1, 0), (-1, -1)]


async def _dated(scene: Scene, *timestamps: int, kind: int = 0) -> None:
    """Batches of ten records with these largest timestamps."""
    for timestamp in timestamps:
        await scene.commit(batch(count=10, batch_max_timestamp=timestamp, timestamp_type=kind))


@check
async def the_first_batch_at_or_after_a_time(scene: Scene) -> None:
    """The first by offset, not by time; with the batch that holds the record (design rule 6)."""
    await _dated(scene, 100, 300, 200, 400)
    assert await scene.listed(0) == (100, 0)
    assert await scene.listed(100) == (100, 0)
    assert await scene.listed(101) == (300, 10)
    assert await scene.listed(301) == (400, 30)
    assert await scene.listed(401) == (-1, -1)
    (result,) = await scene.plane.list_offsets([(*T0, 101)])
    assert result.coordinate is not None
    assert (result.coordinate.stamp.base_offset, result.coordinate.stamp.last_offset) == (10, 19)
    assert result.coordinate == (await scene.find((T0, 10)))[0].batches[0]
    assert await scene.listed(201, from_offset=20) == (400, 30)
    assert await scene.listed(101, from_offset=19) == (300, 10)


@check
async def the_largest_timestamp(scene: Scene) -> None:
    """The first batch that has it; the caller finds the record in it."""
    await _dated(scene, 100, 300, 300, 200)
    assert await scene.listed(MAX_TIMESTAMP) == (300, 19)
    (result,) = await scene.plane.list_offsets([(*T0, MAX_TIMESTAMP)])
    assert result.coordinate is not None
    assert result.coordinate.stamp.base_offset == 10


@check
async def times_of_log_append_time(scene: Scene) -> None:
    """The commit's time counts, not the producer's."""
    start = scene.now
    for _ in range(3):
        await _dated(scene, start * 2, kind=LOG_APPEND_TIME)
        scene.clock.advance(100)
    assert await scene.listed(0) == (start, 0)
    assert await scene.listed(start + 1) == (start + 100, 10)
    assert await scene.listed(start + 201) == (-1, -1)
    assert await scene.listed(MAX_TIMESTAMP) == (start + 200, 29)


@check
async def times_of_mixed_types(scene: Scene) -> None:
    start = scene.now
    await _dated(scene, start + 500)
    await _dated(scene, 1, kind=LOG_APPEND_TIME)
    assert await scene.listed(start) == (start + 500, 0)
    assert await scene.listed(MAX_TIMESTAMP) == (start + 500, 9)
    assert await scene.listed(start, from_offset=10) == (start, 10)


@check
async def deleted_records_are_not_listed(scene: Scene) -> None:
    await _dated(scene, 300, 200, 100)
    await scene.plane.delete_records([(*T0, 14)])
    assert await scene.listed(0) == (200, 14)
    assert await scene.listed(250) == (-1, -1)
    assert await scene.listed(MAX_TIMESTAMP) == (200, 19)


@check
async def pruned_batches_are_in_tiered_storage(scene: Scene) -> None:
    """Q30, ENG decision 12: the log start that users see stays."""
    await _dated(scene, 100, 200, 300)
    (result,) = await scene.plane.prune_to([(*T0, 15)])
    assert tuple(result) == (NONE, 15)
    assert await scene.info() == (0, 30, 200)
    assert (await scene.wal_start(), await scene.wal_start(T1)) == (15, 0)
    moved, held = await scene.find((T0, 14), (T0, 15))
    assert (moved.error, moved.log_start_offset, moved.high_watermark) == (TIERED, 0, 30)
    assert [b.stamp.base_offset for b in held.batches] == [10, 20]
    assert await scene.listed(EARLIEST) == (-1, 0)
    assert await scene.listed(EARLIEST_LOCAL) == (-1, 15)
    assert await scene.listed(0) == (200, 15)
    # Forward only; beyond the end is refused.
    results = await scene.plane.prune_to([(*T0, 3), (*T0, 31), (STRANGER, 0, 0)])
    assert [tuple(r) for r in results] == [(NONE, 15), (OUT_OF_RANGE, -1), (UNKNOWN, -1)]
    (commit,) = await scene.commit(batch())
    assert (commit.assigned_base_offset, commit.log_start_offset) == (30, 0)
