"""The plan of a job: every batch once, in order, from objects that are read as seldom as can be."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from random import Random

from hypothesis import given
from hypothesis import strategies as st

from skylog.client.bulk import BatchLocation, Split
from skylog.client.metadata import TopicPartition
from skylog.kernel.ids import ZERO_UUID
from skylog.spark.jobs.segment_plan import (
    EXTENT_BYTES_MAX,
    GAP_BYTES_MAX,
    SLICES_MAX,
    Read,
    Run,
    extents,
    in_order,
    only,
    round_ends,
    slices,
)

MEGABYTE = 1024 * 1024
Backlog = Mapping[TopicPartition, Sequence[BatchLocation]]


def batch(key: str, at: int, offset: int, size: int = 100) -> BatchLocation:
    return BatchLocation(key, at, size, offset, offset, -1, 0, 0)


def backlog(objects: Sequence[Sequence[int]], size: int = 100) -> Backlog:
    """The partitions that have a batch in each object, in the order of commits."""
    found: dict[TopicPartition, list[BatchLocation]] = {}
    for number, partitions in enumerate(objects):
        for place, index in enumerate(partitions):
            batches = found.setdefault(TopicPartition("t", index), [])
            batches.append(batch(f"wal/{number:04}", place * size, len(batches), size))
    return found


def taken(reads: Sequence[Read]) -> dict[TopicPartition, list[BatchLocation]]:
    found: dict[TopicPartition, list[BatchLocation]] = {}
    for read in reads:
        for run in read.runs:
            assert all(one.object_key == read.object_key for one in run.batches)
            found.setdefault(run.key, []).extend(run.batches)
    return found


objects_of_commits = st.lists(st.lists(st.integers(0, 5), min_size=1, max_size=8), max_size=30)


@given(objects_of_commits)
def test_an_object_of_one_coordinator_is_read_once(objects: list[list[int]]) -> None:
    given_ = backlog(objects)
    reads = in_order(given_)
    assert taken(reads) == {key: list(found) for key, found in given_.items()}
    assert len(reads) == len(objects)


@given(objects_of_commits, st.randoms(use_true_random=False))
def test_batches_stay_in_order_whatever_the_order_of_objects(
    objects: list[list[int]], random: Random
) -> None:
    """Partitions of several coordinators, which see objects in different orders."""
    given_ = {}
    for key, found in backlog(objects).items():
        names = [one.object_key for one in found]
        random.shuffle(names)
        given_[key] = [batch(name, 0, at) for at, name in enumerate(names)]
    assert taken(in_order(given_)) == given_


def test_two_orders_of_two_objects_cost_one_more_read() -> None:
    one, other = TopicPartition("t", 0), TopicPartition("t", 1)
    given_ = {
        one: [batch("wal/a", 0, 0), batch("wal/b", 0, 1)],
        other: [batch("wal/b", 100, 0), batch("wal/a", 100, 1)],
    }
    assert len(in_order(given_)) == 3


@given(objects_of_commits, st.integers(1, 5), st.integers(1, 40), st.integers(1, 8))
def test_slices_make_one_run_of_segments(
    objects: list[list[int]], megabytes: int, segment_megabytes: int, cores: int
) -> None:
    given_ = backlog(objects, megabytes * MEGABYTE)
    reads = in_order(given_)
    parts = slices(reads, segment_megabytes * MEGABYTE, cores)
    assert [read for part in parts for read in part.reads] == reads
    assert len(parts) <= SLICES_MAX + 1
    position = dict.fromkeys(given_, 0)
    for part in parts:
        for segment in part.segments:
            assert segment.start_offset == position[segment.key]
            count = segment.end_offset - segment.start_offset + 1
            assert segment.bytes == count * megabytes * MEGABYTE
            # A batch may be larger than a segment should be.
            assert segment.bytes <= 2 * max(segment_megabytes, megabytes) * MEGABYTE
            position[segment.key] = segment.end_offset + 1
    assert position == {key: len(found) for key, found in given_.items()}


def test_all_cores_work_if_segments_stay_worth_it() -> None:
    large = backlog([[0, 1]] * 40, MEGABYTE)
    assert len(slices(in_order(large), 128 * MEGABYTE, 2)) == 2
    small = backlog([[0, 1]] * 40, 1000)
    assert len(slices(in_order(small), 128 * MEGABYTE, 2)) == 1
    assert slices([], MEGABYTE, 2) == []


def test_a_slice_without_some_partitions() -> None:
    (part,) = slices(in_order(backlog([[0, 1], [1], [0]])), MEGABYTE, 1)
    key = TopicPartition("t", 0)
    kept = only(part, {key})
    assert [read.object_key for read in kept.reads] == ["wal/0000", "wal/0002"]
    assert {segment.key for segment in kept.segments} == {key}


def read_of(*places: tuple[int, int]) -> Read:
    batches = tuple(batch("wal/a", at, number, size) for number, (at, size) in enumerate(places))
    return Read("wal/a", (Run(TopicPartition("t", 0), batches),))


def test_an_object_is_read_with_one_request_unless_little_of_it_is_wanted() -> None:
    assert [(one.start, one.end) for one in extents(read_of((0, 10), (GAP_BYTES_MAX, 10)))] == [
        (0, GAP_BYTES_MAX + 10)
    ]
    far = GAP_BYTES_MAX + 11
    assert [(one.start, one.end) for one in extents(read_of((far, 10), (0, 10)))] == [
        (0, 10),
        (far, far + 10),
    ]
    huge = extents(read_of((0, EXTENT_BYTES_MAX), (EXTENT_BYTES_MAX, 5)))
    assert [one.end - one.start for one in huge] == [EXTENT_BYTES_MAX, 5]


def split(index: int, start: int, size: int) -> Split:
    return Split("t", ZERO_UUID, index, start, start + 10, size, True)


def test_a_round_takes_the_same_share_of_every_partition() -> None:
    large = [split(0, at * 10, 100) for at in range(10)]
    small = [split(1, at * 10, 50) for at in range(10)]
    given_ = {TopicPartition("t", 0): large, TopicPartition("t", 1): small}
    assert list(round_ends(given_, 10_000).values()) == [100, 100]
    assert list(round_ends(given_, 500).values()) == [50, 50]
    # At least something, or it would never end.
    assert list(round_ends(given_, 1).values()) == [10, 10]
