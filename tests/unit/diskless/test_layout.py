"""The bytes of a WAL object."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skylog.diskless.layout import arrange, batches_of, check_version
from skylog.kernel.errors import ErrorCode, KafkaError
from skylog.kernel.rng import random_uuid
from tests.unit.diskless.engine import item

IDS = {name: random_uuid(random.Random(name)) for name in ("a", "b", "c")}


def test_first_byte_is_the_version_and_every_byte_is_accounted_for() -> None:
    # ENG-19, ENG-22
    layout = arrange([item(b"x"), item(b"yy", 1)])
    data = b"".join(layout.parts)
    assert data[0] == 0
    assert layout.pieces[0][1] == 1
    assert len(data) == layout.size == 1 + sum(len(piece.buffer) for piece, _ in layout.pieces)


@given(
    st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 11)), min_size=1, max_size=60),
)
def test_ordered_by_topic_partition_arrival_and_partitions_lie_together(
    arrivals: list[tuple[str, int]],
) -> None:
    # ENG-20, ENG-21
    items = [
        item(str(number).encode(), partition, topic=topic, topic_id=IDS[topic])
        for number, (topic, partition) in enumerate(arrivals)
    ]
    layout = arrange(items)
    order = [(piece.topic, piece.partition, items.index(piece)) for piece, _ in layout.pieces]
    assert order == sorted(order)
    data = b"".join(layout.parts)
    found = batches_of(data)
    assert [place for place, _ in found] == [byte_offset for _, byte_offset in layout.pieces]
    for (place, batch), (piece, _) in zip(found, layout.pieces, strict=True):
        assert bytes(batch.buffer) == bytes(piece.buffer)
        assert data[place : place + batch.size] == bytes(piece.buffer)


@pytest.mark.parametrize("data", [b"", b"\x01", b"\xff" + bytes(80)])
def test_an_unknown_version_cannot_be_read(data: bytes) -> None:
    with pytest.raises(KafkaError) as caught:
        check_version(data)
    assert caught.value.code is ErrorCode.KAFKA_STORAGE_ERROR
