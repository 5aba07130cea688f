"""What a follower asks and checks before it continues behind the remote log."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skylog.kernel.errors import ErrorCode, KafkaError
from skylog.kernel.limits import LOG_CHECKPOINT_BYTES_MAX
from skylog.log.checkpoints import encode_epochs, encode_snapshot
from skylog.log.epochs import LeaderEpochs
from skylog.log.producers import ProducerEntry, RememberedBatch
from skylog.replication.follower import EpochEnd
from skylog.replication.tier_state import (
    EARLIEST_LOCAL,
    EARLIEST_PENDING_UPLOAD,
    LeaderOffset,
    RemoteState,
    boundary_question,
    check_state,
    earlier_epoch,
    is_ahead,
    lacks_history,
    target_epoch,
)


def log(end: int, *, start: int = 0, epoch: int = -1, size: int = 0) -> Any:
    return SimpleNamespace(
        log_start_offset=start, log_end_offset=end, latest_epoch=epoch, size=size
    )


def entry(producer_id: int, last_offset: int, txn_first_offset: int = -1) -> ProducerEntry:
    batches = (RememberedBatch(5, last_offset, 0, 1),)
    return ProducerEntry(producer_id, 0, 0, 1, txn_first_offset, batches)


def downloaded(**changed: Any) -> RemoteState:
    epochs = encode_epochs([(0, 0), (2, 40), (5, 80)]).encode()
    state = RemoteState(50, 99, epochs, encode_snapshot([entry(7, 90)]))
    return state._replace(**changed)


def test_only_an_empty_log_above_its_start_without_epochs_lacks_its_history() -> None:
    assert lacks_history(log(10))
    assert not lacks_history(log(0))
    # All records were deleted.
    assert not lacks_history(log(10, start=10))
    assert not lacks_history(log(10, epoch=0))
    assert not lacks_history(log(10, size=100))


def test_only_an_empty_replica_skips_what_is_local_and_remote() -> None:
    def asked(of: Any, *, enabled: bool) -> int:
        return boundary_question(of, from_last_tiered_offset=enabled)

    assert asked(log(0), enabled=True) == EARLIEST_PENDING_UPLOAD
    # It was truncated to the leader's log start.
    assert asked(log(50), enabled=True) == EARLIEST_PENDING_UPLOAD
    assert asked(log(0), enabled=False) == EARLIEST_LOCAL
    assert asked(log(5, epoch=1, size=9), enabled=True) == EARLIEST_LOCAL
    assert asked(log(5, epoch=1), enabled=True) == EARLIEST_LOCAL


def test_a_log_that_has_come_further_meanwhile_is_kept() -> None:
    assert is_ahead(log(60, epoch=1, size=5), LeaderOffset(60, 1))
    assert not is_ahead(log(59, epoch=1, size=5), LeaderOffset(60, 1))
    assert not is_ahead(log(60), LeaderOffset(60, 1))


@pytest.mark.parametrize(
    ("boundary", "ends", "epoch"),
    [
        (LeaderOffset(90, 0), None, 0),
        # The record before the boundary is of the same epoch.
        (LeaderOffset(90, 3), EpochEnd(1, 85), 3),
        # The boundary begins its epoch; there is no epoch 2.
        (LeaderOffset(90, 3), EpochEnd(1, 90), 1),
        # The leader has no earlier epoch.
        (LeaderOffset(90, 3), EpochEnd(-1, -1), 3),
    ],
)
def test_the_epoch_of_the_record_before_the_boundary(
    boundary: LeaderOffset, ends: EpochEnd | None, epoch: int
) -> None:
    assert earlier_epoch(boundary) == (None if boundary.epoch == 0 else boundary.epoch - 1)
    assert target_epoch(boundary, ends) == epoch


@given(
    st.lists(st.tuples(st.integers(1, 3), st.integers(1, 9)), min_size=1, max_size=6),
    st.data(),
)
def test_the_target_epoch_is_that_of_the_leaders_log(
    steps: list[tuple[int, int]], data: st.DataObject
) -> None:
    """Whatever gaps its epochs have."""
    starts, epoch, end = [], -1, 0
    for more, records in steps:
        epoch += more
        starts.append((epoch, end))
        end += records
    leader = LeaderEpochs(starts)
    offset = data.draw(st.integers(1, end - 1)) if end > 1 else 1
    boundary = LeaderOffset(offset, leader.of(offset))
    asked = earlier_epoch(boundary)
    ends = None if asked is None else EpochEnd(*leader.end_of(asked, end))
    assert target_epoch(boundary, ends) == leader.of(offset - 1)


@pytest.mark.parametrize("boundary", [LeaderOffset(-1, 0), LeaderOffset(5, -1)])
def test_a_leader_that_does_not_know_its_start_is_asked_again(boundary: LeaderOffset) -> None:
    with pytest.raises(KafkaError) as raised:
        earlier_epoch(boundary)
    assert raised.value.code is ErrorCode.OFFSET_NOT_AVAILABLE


@pytest.mark.parametrize(("record", "epoch"), [(50, 2), (79, 2), (80, 5), (99, 5)])
def test_a_good_state_is_used(record: int, epoch: int) -> None:
    checked = check_state(downloaded(), LeaderOffset(record + 1, 9), epoch)
    assert checked.next_offset == 100
    assert checked.epochs == ((0, 0), (2, 40), (5, 80))
    assert [one.producer_id for one in checked.producers] == [7]


def bad_crc() -> bytes:
    data = bytearray(encode_snapshot([entry(7, 90)]))
    data[-1] ^= 1
    return bytes(data)


@pytest.mark.parametrize(
    ("changed", "why"),
    [
        ({"start_offset": 91}, "does not have 90"),
        ({"end_offset": 89}, "does not have 90"),
        ({"start_offset": -1}, "does not have 90"),
        ({"epochs": b""}, "not of epoch"),
        ({"epochs": b"\xff\xfe"}, "decode"),
        ({"epochs": b"0\n2\n0 0\n"}, "expected"),
        ({"epochs": b"9\n0\n"}, "unknown version"),
        ({"epochs": b"0\n1\nfive 0\n"}, "invalid literal"),
        ({"epochs": encode_epochs([(0, 0), (2, 40)]).encode()}, "not of epoch"),
        ({"epochs": encode_epochs([(2, 0), (2, 40), (5, 80)]).encode()}, "follows"),
        ({"epochs": encode_epochs([(0, 40), (2, 40), (5, 80)]).encode()}, "follows"),
        ({"epochs": encode_epochs([(-1, 0), (5, 80)]).encode()}, "follows"),
        ({"epochs": encode_epochs([(0, -1), (5, 80)]).encode()}, "follows"),
        ({"epochs": encode_epochs([(5, 80), (6, 100)]).encode()}, "behind"),
        ({"snapshot": b""}, "shorter"),
        ({"snapshot": bad_crc()}, "CRC"),
        ({"snapshot": encode_snapshot([entry(7, 90), entry(7, 91)])}, "twice"),
        ({"snapshot": encode_snapshot([entry(-1, 90)])}, "none"),
        ({"snapshot": encode_snapshot([entry(7, 100)])}, "written behind"),
        ({"snapshot": encode_snapshot([entry(7, 90, 100)])}, "written behind"),
    ],
)
def test_a_bad_state_is_refused(changed: dict[str, Any], why: str) -> None:
    with pytest.raises(KafkaError, match=why) as raised:
        check_state(downloaded(**changed), LeaderOffset(91, 9), 5)
    assert raised.value.code is ErrorCode.CORRUPT_MESSAGE


def test_a_state_that_is_too_large_is_not_decoded() -> None:
    class Huge(bytes):
        def __len__(self) -> int:
            return LOG_CHECKPOINT_BYTES_MAX + 1

    for field in ("epochs", "snapshot"):
        with pytest.raises(KafkaError, match="too large"):
            check_state(downloaded(**{field: Huge()}), LeaderOffset(91, 9), 5)


@given(st.binary(max_size=200), st.binary(max_size=200))
def test_whatever_the_bytes_only_one_error_is_raised(epochs: bytes, snapshot: bytes) -> None:
    for changed in ({"epochs": epochs}, {"snapshot": snapshot}):
        with pytest.raises(KafkaError):
            check_state(downloaded(**changed), LeaderOffset(91, 9), 5)
