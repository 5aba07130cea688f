"""Replicas of a log whose first part is in the object store only; each begins elsewhere locally."""

from __future__ import annotations

from pathlib import Path

import pytest

from skylog.kernel.errors import KafkaError
from skylog.kernel.ids import Uuid
from skylog.log.config import LogConfig
from skylog.log.fetched import check_fetched
from skylog.log.reader import MovedToRemote
from skylog.replication.partition import Partition
from tests.unit.log.support import NOW, batch, open_log
from tests.unit.replication.support import Host, state

REMOTE = LogConfig(segment_bytes=200, retention_ms=-1, local_retention_bytes=0, remote=True)
LEADER, OWN = 1, 2


def follower(path: Path, local_start: int, log_start: int = 0) -> Partition:
    """Empty behind its remote part."""
    log = open_log(path, REMOTE)
    log.truncate_fully_and_start_at(local_start, log_start)
    partition = Partition(Host(OWN), "t", 0, Uuid(b"t" * 16), log)
    partition.update(state(LEADER, 0, (LEADER, OWN)))
    return partition


def fetched(path: Path, base: int, *values: bytes) -> bytes:
    """A batch of a leader whose log has reached ``base``."""
    leader = open_log(path, REMOTE)
    leader.truncate_fully_and_start_at(base)
    leader.appender.append([batch(*values)], 0, NOW)
    return bytes(leader.reader.read(base, 1000, base + 9, min_one=True, block=True).buffer)


def starts(partition: Partition) -> tuple[int, int]:
    return partition.log.log_start_offset, partition.log.local_log_start_offset


@pytest.mark.parametrize(
    ("leader_start", "expected"), [(0, (4, 10)), (4, (4, 10)), (7, (7, 10)), (12, (12, 12))]
)
def test_the_leaders_log_start_below_and_above_the_local_one(
    tmp_path: Path, leader_start: int, expected: tuple[int, int]
) -> None:
    partition = follower(tmp_path / "f", 10, log_start=4)
    records = fetched(tmp_path / "l", 10, b"a", b"b", b"c")
    partition.append_fetched(check_fetched(records, 0), NOW)
    partition.follow(13, leader_start)
    assert starts(partition) == expected
    assert partition.log.high_watermark == 13


def test_a_log_start_that_is_not_committed_here_yet_follows_later(tmp_path: Path) -> None:
    partition = follower(tmp_path / "f", 10)
    partition.follow(30, 20)
    # Records before it may still be fetched, and then it moves.
    assert starts(partition) == (10, 10)


def test_a_batch_that_begins_before_the_local_log_keeps_the_log_start(tmp_path: Path) -> None:
    partition = follower(tmp_path / "f", 10, log_start=4)
    partition.append_fetched(check_fetched(fetched(tmp_path / "l", 8, b"a", b"b", b"c"), 0), NOW)
    assert starts(partition) == (4, 8)
    assert partition.log.log_end_offset == 11
    with pytest.raises(MovedToRemote):
        partition.log.reader.read(7, 100, 11, min_one=True, block=True)
    with pytest.raises(KafkaError):
        partition.append_fetched(
            check_fetched(fetched(tmp_path / "m", 9, b"a", b"b", b"c"), 0), NOW
        )


def test_unlike_records_below_the_local_start_are_fetched_anew(tmp_path: Path) -> None:
    """A new leader has not all that was copied."""
    partition = follower(tmp_path / "f", 10, log_start=4)
    partition.log.remote_moved(9, 10)
    partition.truncate_to(6)
    assert (starts(partition), partition.log.log_end_offset) == ((4, 6), 6)
    assert partition.log.remote_end == 6
    partition.append_fetched(check_fetched(fetched(tmp_path / "l", 6, b"x", b"y"), 0), NOW)
    partition.follow(8, 4)
    assert starts(partition) == (4, 6)


def test_settings_reach_the_log(tmp_path: Path) -> None:
    partition = follower(tmp_path / "f", 10, log_start=4)
    partition.configure(LogConfig())
    assert starts(partition) == (10, 10)


@pytest.mark.parametrize(("leader_start", "expected"), [(0, (0, 10)), (4, (4, 10)), (10, (10, 10))])
def test_a_follower_that_lost_its_log_start_learns_it_from_the_leader(
    tmp_path: Path, leader_start: int, expected: tuple[int, int]
) -> None:
    first = follower(tmp_path, 10, log_start=4)
    first.log.close()
    partition = Partition(Host(OWN), "t", 0, Uuid(b"t" * 16), open_log(tmp_path, REMOTE))
    partition.update(state(LEADER, 0, (LEADER, OWN)))
    assert (starts(partition), partition.log.knows_start) == ((10, 10), False)
    partition.follow(10, leader_start)
    assert (starts(partition), partition.log.knows_start) == (expected, True)
