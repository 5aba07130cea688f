"""Markers survive a round trip, and other forms of them are read as well."""

from __future__ import annotations

import pytest

from skylog.log.markers import marker_batch, marker_of
from skylog.log.producers import Marker, TransactionEnd
from skylog.wire.batch import Batch
from skylog.wire.control_records import ControlType, control_record, transaction_marker
from skylog.wire.messages.leader_change_message import LeaderChangeMessage
from skylog.wire.records import encode_batch

KEY, VALUE = transaction_marker(commit=True, coordinator_epoch=9)


def control_batch(key: bytes, value: bytes, **more: object) -> Batch:
    given = {"control": True, "transactional": True, "producer_id": 7, "producer_epoch": 3, **more}
    return Batch(encode_batch([(key, value)], timestamp=1, **given))  # type: ignore[arg-type]


@pytest.mark.parametrize("commits", [True, False])
@pytest.mark.parametrize("coordinator_epoch", [-1, 0, 5, 2**31 - 1])
def test_a_marker_comes_back(commits: bool, coordinator_epoch: int) -> None:
    marker = Marker(coordinator_epoch, commits)
    assert marker_of(marker_batch(TransactionEnd(7, 3, marker), 1_700_000_000_000)) == marker


def test_one_marker_for_all_partitions_is_a_copy_for_each() -> None:
    end = TransactionEnd(7, 3, Marker(9, True))
    first, second = (marker_batch(end, 1) for _ in range(2))
    assert isinstance(first.buffer, bytearray)
    first.buffer[0] = 0xFF
    assert bytes(second.buffer) == bytes(marker_batch(end, 1).buffer)


@pytest.mark.parametrize("codec", [0, 1, 4])
def test_other_shapes(codec: int) -> None:
    later = control_batch(KEY + b"more", VALUE + b"from a later version", codec=codec)
    assert marker_of(later) == Marker(9, True)
    assert marker_of(control_batch(KEY, VALUE, codec=codec)) == Marker(9, True)


def test_records_that_are_not_markers() -> None:
    leader = control_record(ControlType.LEADER_CHANGE, LeaderChangeMessage())
    assert marker_of(control_batch(*leader)) is None
    assert marker_of(control_batch(b"\x00\x00\x00\x09", VALUE)) is None
    assert marker_of(control_batch(KEY, b"")) is None
    assert marker_of(control_batch(b"", VALUE)) is None
    # As long as a marker, with another structure.
    assert marker_of(control_batch(KEY + b"\x00", VALUE[:-1])) is None
