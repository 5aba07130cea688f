"""Snapshot files."""

from __future__ import annotations

from pathlib import Path

import pytest

from skylog.kernel.errors import StorageError
from skylog.kernel.ids import Uuid
from skylog.log.files import Files
from skylog.quorum.control import QuorumRecords
from skylog.quorum.snapshots import (
    Snapshot,
    SnapshotId,
    encode_snapshot,
    parse_name,
    read_batches,
    read_header,
    read_snapshot,
    write_snapshot,
)
from skylog.quorum.voters import Endpoint, ReplicaKey, Voter, VoterSet
from tests.unit.quorum.support import NOW_MS, value

VOTERS = VoterSet(
    (
        Voter(ReplicaKey(1, Uuid(b"a" * 16)), (Endpoint("CONTROLLER", "one", 9093),)),
        Voter(ReplicaKey(2, Uuid(b"b" * 16)), ()),
    )
)
SNAPSHOT = Snapshot([value(n) for n in range(50)], QuorumRecords(1, VOTERS), NOW_MS - 5)


def write(path: Path, snapshot: Snapshot = SNAPSHOT, batch_bytes_max: int = 500) -> Path:
    write_snapshot(Files(4), path, encode_snapshot(3, snapshot, NOW_MS, batch_bytes_max))
    return path


def test_what_is_written_is_read(tmp_path: Path) -> None:
    path = write(tmp_path / SnapshotId(120, 3).file_name)
    assert path.name == "00000000000000000120-0000000003.checkpoint"
    assert read_snapshot(path) == SNAPSHOT
    assert [entry.name for entry in tmp_path.iterdir()] == [path.name]
    assert path.stat().st_mode & 0o777 == 0o400


def test_the_header_tells_all_but_the_records(tmp_path: Path) -> None:
    path = write(tmp_path / SnapshotId(120, 3).file_name)
    assert read_header(path) == Snapshot([], SNAPSHOT.quorum, SNAPSHOT.last_timestamp)


def test_batches_stay_below_their_limit_and_in_order(tmp_path: Path) -> None:
    path = write(tmp_path / SnapshotId(120, 3).file_name)
    batches = list(read_batches(path))
    assert len(batches) > 3
    assert all(batch.size <= 500 for batch in batches)
    assert [batch.base_offset for batch in batches[1:]] == [
        batch.next_offset for batch in batches[:-1]
    ]
    assert {batch.leader_epoch for batch in batches} == {3}


def test_a_record_larger_than_a_batch_has_its_own(tmp_path: Path) -> None:
    snapshot = Snapshot([value(1), value(2, size=900), value(3)], QuorumRecords(), -1)
    path = write(tmp_path / SnapshotId(1, 1).file_name, snapshot)
    assert read_snapshot(path) == snapshot


def test_what_a_crash_left_aside_is_written_over(tmp_path: Path) -> None:
    path = tmp_path / SnapshotId(120, 3).file_name
    partial = path.with_name(path.name + ".part")
    partial.write_bytes(b"half")
    partial.chmod(0o400)
    write(path)
    assert read_snapshot(path) == SNAPSHOT
    assert not partial.exists()


@pytest.mark.parametrize("cut", [1, 40, 75, 76, 200])
def test_a_short_file_is_damaged(tmp_path: Path, cut: int) -> None:
    path = write(tmp_path / SnapshotId(120, 3).file_name)
    content = path.read_bytes()
    path.chmod(0o600)
    path.write_bytes(content[:-cut])
    with pytest.raises(StorageError, match="is damaged"):
        read_snapshot(path)


def test_every_flipped_byte_that_matters_is_found(tmp_path: Path) -> None:
    path = write(tmp_path / SnapshotId(120, 3).file_name)
    content = path.read_bytes()
    path.chmod(0o600)
    for at in range(0, len(content), 7):
        path.write_bytes(content[:at] + bytes([content[at] ^ 0x20]) + content[at + 1 :])
        try:
            found = read_snapshot(path)
        except StorageError:
            continue
        # The checksum does not cover offsets and epochs, and they are not used.
        assert found == SNAPSHOT


@pytest.mark.parametrize(
    ("name", "parsed"),
    [
        ("00000000000000000120-0000000003.checkpoint", (SnapshotId(120, 3), ".checkpoint")),
        (
            "00000000000000000120-0000000003.checkpoint.deleted",
            (SnapshotId(120, 3), ".checkpoint.deleted"),
        ),
        (
            "00000000000000000120-0000000003-8123.checkpoint.part",
            (SnapshotId(120, 3), ".checkpoint.part"),
        ),
        ("00000000000000000120.log", None),
        ("bootstrap.checkpoint", None),
    ],
)
def test_names_are_told_apart(name: str, parsed: tuple[SnapshotId, str] | None) -> None:
    assert parse_name(name) == parsed
