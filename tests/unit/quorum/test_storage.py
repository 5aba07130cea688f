"""Formatting and opening directories."""

from __future__ import annotations

import os
import random
from pathlib import Path

import pytest

from skylog.kernel.errors import StorageError
from skylog.kernel.ids import Uuid
from skylog.log.locks import DirectoryLock
from skylog.quorum.bootstrap import DEFAULT_FEATURES, bootstrap_records
from skylog.quorum.meta_properties import MetaProperties, read_meta_properties
from skylog.quorum.snapshots import BOOTSTRAP_ID, read_snapshot
from skylog.quorum.storage import (
    METADATA_DIRECTORY,
    FormatPlan,
    format_directory,
    format_if_new,
    load_directory,
)
from skylog.quorum.voters import ReplicaKey, Voter
from skylog.wire.messages.feature_level_record import FeatureLevelRecord
from skylog.wire.metadata_records import decode_metadata
from tests.unit.quorum.support import CONTROLLER, NODE_ID, NOW_MS, open_storage, tree

CLUSTER = "5L6g3nShT-eMCtK--X86sw"


def plan(cluster_id: str = CLUSTER, node_id: int = NODE_ID) -> FormatPlan:
    return FormatPlan(node_id, cluster_id, CONTROLLER, bootstrap_records())


def format_here(*dirs: Path, **options: bool) -> None:
    format_directory(dirs, plan(), random.Random(len(dirs)), NOW_MS, **options)


def test_a_formatted_directory_names_cluster_node_and_directory(tmp_path: Path) -> None:
    directory = tmp_path / "new" / "data"
    format_here(directory)
    storage = load_directory([directory], NODE_ID)
    properties = read_meta_properties(directory)
    assert properties == MetaProperties(CLUSTER, NODE_ID, storage.directory_ids[directory])
    assert storage.cluster_id == CLUSTER
    assert storage.metadata_log == directory / METADATA_DIRECTORY


def test_the_bootstrap_snapshot_names_this_voter(tmp_path: Path) -> None:
    storage = open_storage(tmp_path)
    snapshot = read_snapshot(storage.metadata_log / BOOTSTRAP_ID.file_name)
    assert snapshot.records == []
    assert snapshot.quorum.kraft_version == 1
    assert snapshot.quorum.voters is not None
    assert snapshot.quorum.voters.voters == (Voter(storage.replica, (CONTROLLER,)),)
    assert storage.replica == ReplicaKey(NODE_ID, storage.directory_ids[tmp_path])


def test_the_bootstrap_records_are_kafkas_features(tmp_path: Path) -> None:
    records = [decode_metadata(value) for _, value in open_storage(tmp_path).bootstrap]
    assert all(isinstance(record, FeatureLevelRecord) for record in records)
    assert {record.name: record.feature_level for record in records} == DEFAULT_FEATURES
    assert records[0].name == "metadata.version"


def test_only_the_metadata_directory_gets_the_metadata_log(tmp_path: Path) -> None:
    first, second = tmp_path / "a", tmp_path / "b"
    format_here(first, second)
    assert (first / METADATA_DIRECTORY).exists()
    assert not (second / METADATA_DIRECTORY).exists()
    ids = load_directory([first, second], NODE_ID).directory_ids
    assert len(set(ids.values())) == 2


def test_formatting_twice_is_refused_and_changes_nothing(tmp_path: Path) -> None:
    format_here(tmp_path)
    before = tree(tmp_path)
    with pytest.raises(StorageError, match="already formatted"):
        format_here(tmp_path)
    assert tree(tmp_path) == before


def test_a_directory_added_later_is_formatted_for_the_same_cluster(tmp_path: Path) -> None:
    first, second = tmp_path / "a", tmp_path / "b"
    format_here(first)
    with pytest.raises(StorageError, match=r"No meta\.properties found in .*b"):
        load_directory([first, second], NODE_ID)
    assert not second.exists()
    format_here(first, second, ignore_formatted=True)
    assert load_directory([first, second], NODE_ID).cluster_id == CLUSTER


def test_a_new_directory_is_formatted_by_itself_and_only_once(tmp_path: Path) -> None:
    first = open_storage(tmp_path, seed=1)
    again = open_storage(tmp_path, seed=2)
    assert again == first


def test_what_a_stopped_formatting_left_is_formatted_again(tmp_path: Path) -> None:
    open_storage(tmp_path, seed=1)
    (tmp_path / "meta.properties").unlink()
    again = open_storage(tmp_path, seed=2)
    snapshot = read_snapshot(again.metadata_log / BOOTSTRAP_ID.file_name)
    assert snapshot.quorum.voters is not None
    assert again.replica in snapshot.quorum.voters


@pytest.mark.parametrize("left", ["topic-0", f"{METADATA_DIRECTORY}/00000000000000000000.log"])
def test_data_without_meta_properties_is_never_formatted_over(tmp_path: Path, left: str) -> None:
    path = tmp_path / left
    if path.suffix:
        path.parent.mkdir(parents=True)
        path.write_bytes(b"data")
    else:
        path.mkdir()
    before = tree(tmp_path)
    with pytest.raises(StorageError, match=r"No meta\.properties"):
        open_storage(tmp_path)
    assert tree(tmp_path) == before


@pytest.mark.parametrize(
    ("node_id", "cluster_id", "said"),
    [
        (2, None, "belongs to node 1, but node.id is 2"),
        (NODE_ID, "AAAAAAAAAAAAAAAAAAAAAg", f"belongs to cluster {CLUSTER}"),
    ],
)
def test_another_nodes_or_clusters_directory_is_refused(
    tmp_path: Path, node_id: int, cluster_id: str | None, said: str
) -> None:
    format_here(tmp_path)
    before = tree(tmp_path)
    with pytest.raises(StorageError, match=said):
        load_directory([tmp_path], node_id, cluster_id)
    with pytest.raises(StorageError, match=said):
        format_if_new(
            [tmp_path], node_id, CONTROLLER, random.Random(1), NOW_MS, cluster_id=cluster_id
        )
    assert tree(tmp_path) == before


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("version=1\nnode.id=1\n", "cluster.id is missing"),
        (f"version=1\ncluster.id={CLUSTER}\n", "node.id is missing"),
        (f"version=0\ncluster.id={CLUSTER}\nnode.id=1\n", "version is '0'"),
        (f"version=1\ncluster.id={CLUSTER}\nnode.id=one\n", "cannot be read"),
        (f"version=1\ncluster.id={CLUSTER}\nnode.id=1\n", "directory.id is missing"),
        (
            f"version=1\ncluster.id={CLUSTER}\nnode.id=1\ndirectory.id=AAAAAAAAAAAAAAAAAAAAAA\n",
            "reserved",
        ),
        ("x" * 70_000, "too large"),
    ],
)
def test_a_bad_meta_properties_is_named(tmp_path: Path, text: str, said: str) -> None:
    (tmp_path / "meta.properties").write_text(text)
    with pytest.raises(StorageError, match=said):
        load_directory([tmp_path], NODE_ID)


def test_one_directory_twice_under_another_name_is_refused(tmp_path: Path) -> None:
    first, second = tmp_path / "a", tmp_path / "b"
    format_here(first)
    second.mkdir()
    (second / "meta.properties").write_bytes((first / "meta.properties").read_bytes())
    with pytest.raises(StorageError, match=r"same directory\.id"):
        load_directory([first, second], NODE_ID)


def test_a_metadata_log_in_the_wrong_directory_is_refused(tmp_path: Path) -> None:
    first, second = tmp_path / "a", tmp_path / "b"
    format_here(first, second)
    with pytest.raises(StorageError, match="metadata log at"):
        load_directory([first, second], NODE_ID, metadata_dir=second)


def test_a_file_in_the_place_of_a_directory_is_refused(tmp_path: Path) -> None:
    (tmp_path / "data").write_text("mine")
    with pytest.raises(StorageError, match=r"not a directory|cannot be read"):
        open_storage(tmp_path / "data")


def test_a_read_only_directory_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    open_storage(tmp_path)
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    with pytest.raises(StorageError, match="read-only"):
        open_storage(tmp_path)


def test_a_directory_in_use_is_refused(tmp_path: Path) -> None:
    format_here(tmp_path)
    lock = DirectoryLock(str(tmp_path))
    try:
        with pytest.raises(StorageError, match="in use by another broker"):
            load_directory([tmp_path], NODE_ID)
        with pytest.raises(StorageError, match="in use by another broker"):
            format_here(tmp_path, ignore_formatted=True)
    finally:
        lock.release()
    assert load_directory([tmp_path], NODE_ID).cluster_id == CLUSTER


def test_a_damaged_bootstrap_file_is_named(tmp_path: Path) -> None:
    open_storage(tmp_path)
    path = tmp_path / "bootstrap.checkpoint"
    content = bytearray(path.read_bytes())
    content[120] ^= 1
    path.write_bytes(content)
    with pytest.raises(StorageError, match=r"bootstrap\.checkpoint is damaged"):
        open_storage(tmp_path)


def test_kafkas_meta_properties_is_read() -> None:
    text = (
        "#\n#Sun Nov 15 09:53:15 UTC 2026\nnode.id=1\ndirectory.id=d_YHR3mHSAqVnfwACqYwfw\n"
        "version=1\ncluster.id=5L6g3nShT-eMCtK--X86sw\n"
    )
    assert MetaProperties.from_text(text) == MetaProperties(
        CLUSTER, 1, Uuid.parse("d_YHR3mHSAqVnfwACqYwfw")
    )
