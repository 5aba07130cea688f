"""Which WAL objects are read together, and where segments are cut."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from skylog.kernel.errors import ErrorCode
from skylog.log.config import LogConfig
from skylog.tiered.consolidation import plan
from skylog.tiered.consolidation.wal import Found, WalBatch

# For each object: which partitions have a batch in it, and of what size.
OBJECTS = st.lists(
    st.dictionaries(st.integers(0, 5), st.integers(1, 50), min_size=1, max_size=6),
    max_size=20,
)


def _found(
    objects: list[dict[int, int]], order: dict[int, list[int]] | None = None
) -> dict[int, list[WalBatch]]:
    """Batches by partition, in the order of the objects or, of some partitions, in another."""
    found: dict[int, list[WalBatch]] = {}
    for partition in range(6):
        offset = 0
        numbers = (order or {}).get(partition, list(range(len(objects))))
        for number in numbers:
            size = objects[number].get(partition)
            if size is not None:
                where = (partition, offset)
                one = WalBatch(f"o{number:03d}", number, offset, offset + 1, size, where)
                found.setdefault(partition, []).append(one)
                offset += 1
    return found


def _reads(steps: list[dict[int, list[WalBatch]]]) -> list[tuple[int, str]]:
    """What is read in each step: each object once."""
    return [
        (number, key)
        for number, step in enumerate(steps)
        for key in {batch.object_key for batches in step.values() for batch in batches}
    ]


@given(objects=OBJECTS, bytes_max=st.integers(1, 200), objects_max=st.integers(1, 5))
def test_each_object_is_read_once_for_all_partitions(
    objects: list[dict[int, int]], bytes_max: int, objects_max: int
) -> None:
    found = _found(objects)
    steps = plan.steps(found, bytes_max, objects_max)
    for partition, batches in found.items():
        assert [one for step in steps for one in step.get(partition, [])] == batches
    reads = _reads(steps)
    assert len(reads) == len({key for _, key in reads}) == len(objects)
    for number, step in enumerate(steps):
        keys = {key for at, key in reads if at == number}
        assert 0 < len(keys) <= objects_max
        size = sum(one.size for batches in step.values() for one in batches)
        assert size <= bytes_max or len(keys) == 1


@given(objects=OBJECTS, data=st.data(), bytes_max=st.integers(1, 200))
def test_a_partition_is_read_in_its_own_order(
    objects: list[dict[int, int]], data: st.DataObject, bytes_max: int
) -> None:
    """Coordinators commit independently: two may have two objects the other way round."""
    other = data.draw(st.permutations(range(len(objects))))
    found = _found(objects, {0: list(other)})
    steps = plan.steps(found, bytes_max)
    for partition, batches in found.items():
        assert [one for step in steps for one in step.get(partition, [])] == batches


@given(objects=OBJECTS, limit=st.integers(1, 4))
def test_an_object_is_read_again_only_where_a_round_ends(
    objects: list[dict[int, int]], limit: int
) -> None:
    """Partitions that are in few objects do not run ahead of those that are in all."""
    waiting = _found(objects)
    ends = {key: batches[-1].next_offset for key, batches in waiting.items()}
    reads = rounds = 0
    while waiting:
        found = {
            key: Found(ErrorCode.NONE, batches[:limit], 0, ends[key])
            for key, batches in waiting.items()
        }
        taken = plan.whole_objects(found)
        assert taken
        reads += len(_reads(plan.steps(taken)))
        rounds += 1
        for key, batches in taken.items():
            assert list(batches) == waiting[key][: len(batches)]
            waiting[key] = waiting[key][len(batches) :]
        waiting = {key: batches for key, batches in waiting.items() if batches}
    assert len(objects) <= reads <= len(objects) + max(rounds - 1, 0)


def test_a_round_keeps_a_bounded_number_of_batches() -> None:
    for partitions in (0, 1, 7, 1000, 10_000, 100_000):
        per_partition = plan.batches_per_partition(partitions)
        assert 1 <= per_partition <= plan.PARTITION_BATCHES_MAX
        assert per_partition == 1 or partitions * per_partition <= plan.ROUND_BATCHES_MAX


def test_a_segment_ends_before_the_batch_that_has_no_room() -> None:
    config = LogConfig(segment_bytes=100, segment_index_bytes=24)
    assert not plan.ends_before(90, 0, 0, 10, 5, config)
    assert plan.ends_before(90, 0, 0, 11, 5, config)
    assert plan.ends_before(10, 0, 0, 10, 2**31, config)
    assert not plan.ends_before(10, 12, 0, 10, 5, config)
    assert plan.ends_before(10, 13, 0, 10, 5, config)


@given(jitter=st.integers(0, 10_000), segment_ms=st.integers(1, 10_000), name=st.text())
def test_jitter_only_hastens_a_cut(jitter: int, segment_ms: int, name: str) -> None:
    config = LogConfig(segment_ms=segment_ms, segment_jitter_ms=jitter)
    due = plan.due_ms(1000, name, config)
    assert 1000 < due <= 1000 + segment_ms
    assert due == plan.due_ms(1000, name, config)
    assert plan.due_ms(1000, name, LogConfig(segment_ms=segment_ms)) == 1000 + segment_ms


@given(sizes=st.lists(st.integers(0, 100), max_size=20), closed=st.integers(0, 500))
def test_the_largest_are_cut_until_the_others_fit(sizes: list[int], closed: int) -> None:
    bytes_max = 400
    used = sum(sizes) + closed
    chosen = plan.to_cut(enumerate(sizes), used, bytes_max)
    left = [size for number, size in enumerate(sizes) if number not in chosen]
    assert all(size <= min(sizes[one] for one in chosen) for size in left) if chosen else True
    if used > bytes_max:
        assert sum(left) < bytes_max
    if sum(sizes) < bytes_max // 2:
        assert not chosen
    assert all(sizes[one] for one in chosen)
