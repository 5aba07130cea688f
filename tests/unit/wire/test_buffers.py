"""Buffers for reads."""

from __future__ import annotations

import pytest

from skylog.wire.buffers import room


@pytest.mark.parametrize("size", [0, 1, 511, 70_000])
def test_room_has_its_size_and_takes_bytes(size: int) -> None:
    made, other = room(size), room(size)
    assert type(made) is bytearray
    assert len(made) == size
    made[:] = b"\xff" * size
    other[:] = bytes(size)
    assert made == b"\xff" * size


def test_room_of_less_than_nothing_is_refused() -> None:
    with pytest.raises(SystemError):
        room(-1)
