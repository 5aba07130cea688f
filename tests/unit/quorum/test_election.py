"""The stored election state of a node."""

from __future__ import annotations

from pathlib import Path

import pytest

from skylog.kernel.errors import StorageError
from skylog.kernel.ids import Uuid
from skylog.log.files import Files
from skylog.quorum.election import ElectionState
from skylog.quorum.election_file import ElectionFile
from skylog.quorum.voters import ReplicaKey

DIRECTORY_ID = Uuid.parse("J8aAPcfLQt2bqs1JT_rMgQ")


@pytest.mark.parametrize(
    ("state", "text"),
    [
        (
            ElectionState(1, 1),
            (
                '{"leaderId":1,"leaderEpoch":1,"votedId":-1,'
                '"votedDirectoryId":"AAAAAAAAAAAAAAAAAAAAAA","data_version":1}'
            ),
        ),
        (
            ElectionState(2, None, ReplicaKey(1, DIRECTORY_ID)),
            (
                '{"leaderId":-1,"leaderEpoch":2,"votedId":1,'
                '"votedDirectoryId":"J8aAPcfLQt2bqs1JT_rMgQ","data_version":1}'
            ),
        ),
    ],
)
def test_the_text_is_kafkas(state: ElectionState, text: str) -> None:
    assert state.to_json() == text
    assert ElectionState.from_json(text) == state


def test_version_0_is_read() -> None:
    text = (
        '{"clusterId":"","leaderId":1,"leaderEpoch":2,"votedId":-1,"appliedOffset":0,'
        '"currentVoters":[],"data_version":0}'
    )
    assert ElectionState.from_json(text) == ElectionState(2, 1)


def test_nothing_was_written_yet(tmp_path: Path) -> None:
    assert ElectionFile(Files(4), tmp_path).read() is None


def test_what_was_written_is_read(tmp_path: Path) -> None:
    file = ElectionFile(Files(4), tmp_path)
    file.write(ElectionState(1, 1))
    file.write(ElectionState(7, None, ReplicaKey(3, DIRECTORY_ID)))
    assert file.read() == ElectionState(7, None, ReplicaKey(3, DIRECTORY_ID))
    assert [path.name for path in tmp_path.iterdir()] == ["quorum-state"]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "{}",
        '{"data_version":1}',
        '{"leaderId":1,"leaderEpoch":"2","votedId":-1,"data_version":0}',
        '{"leaderId":1,"leaderEpoch":2,"votedId":-1,"data_version":2}',
        '{"leaderId":1,"leaderEpoch":2,"votedId":-1,"data_version":1}',
        " " * 70_000,
    ],
)
def test_a_damaged_file_is_named(tmp_path: Path, text: str) -> None:
    (tmp_path / "quorum-state").write_text(text)
    with pytest.raises(StorageError, match="quorum-state is not a valid quorum state"):
        ElectionFile(Files(4), tmp_path).read()
