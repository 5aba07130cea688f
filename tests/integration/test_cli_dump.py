"""``skylog dump`` on files that a broker wrote, whole and damaged."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from skylog.testing import Broker
from skylog.wire.control_records import transaction_marker
from skylog.wire.records import encode_batch
from tests.integration.cli_support import Cli, invoke

LOG = "00000000000000000000.log"
INDEX = "00000000000000000000.index"


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The directory of a broker that has stopped."""
    directory = tmp_path_factory.mktemp("data")
    with Broker({"diskless.metadata.snapshot.bytes": "1"}, directory=directory) as broker:
        cli = Cli(broker)
        cli.ok("topics", "create", "remote", "--config", "diskless.enable=true")
        cli.ok("produce", "remote", text="a\n")
        cli.ok("topics", "create", "small", "--config", "index.interval.bytes=0")
        for number in range(3):
            options = ("-k", ":", "-H", "h=1", "--compression", "zstd")
            cli.ok("produce", "small", *options, text=f"k{number}:v{number}\n")
        cli.ok("consume", "small", "--group", "g", "--from-beginning", "--exit-at-end")
        cli.ok("configs", "set", "--topic", "small", "retention.ms=60000")
    yield directory


@pytest.fixture
def partition(written: Path, tmp_path: Path) -> Path:
    """A copy of a partition's directory that a test may damage."""
    return Path(shutil.copytree(written / "small-0", tmp_path / "small-0"))


def rows(*paths: Path, more: tuple[str, ...] = (), code: int = 0) -> list[dict[str, Any]]:
    result = invoke("dump", *map(str, paths), "--json", *more)
    assert result.exit_code == code, result.output
    return [json.loads(line) for line in result.stdout.splitlines()]


def faults(*paths: Path) -> list[str]:
    return [row["fault"] for row in rows(*paths, code=1) if "fault" in row]


def test_batches_and_records(partition: Path) -> None:
    found = rows(partition / LOG)
    assert [row["kind"] for row in found] == ["batch", "record"] * 3
    batch, record = found[2:4]
    assert batch["base_offset"] == batch["last_offset"] == 1
    assert (batch["compression"], batch["records"], batch["base_sequence"]) == ("zstd", 1, 0)
    assert (record["offset"], record["key"], record["value"]) == (1, "k1", "v1")
    assert record["headers"] == [{"name": "h", "value": "1"}]


def test_a_part_of_a_log(partition: Path) -> None:
    only = rows(partition / LOG, more=("--batches-only", "--from-offset", "1"))
    assert [(row["kind"], row["base_offset"]) for row in only] == [("batch", 1), ("batch", 2)]
    assert len(rows(partition / LOG, more=("--max", "3"))) == 3


def test_text_output(partition: Path) -> None:
    lines = invoke("dump", str(partition / LOG)).stdout.splitlines()
    assert lines[0].startswith("batch: base_offset=0 last_offset=0 records=1 position=0 ")
    assert lines[1].startswith("  record: offset=0 timestamp=2")
    assert 'key=k0 value=v0 headers=[{"name": "h", "value": "1"}]' in lines[1]


def test_all_files_of_a_partition(partition: Path) -> None:
    found = rows(partition)
    kinds = {(Path(row["file"]).name, row["kind"]) for row in found}
    assert (INDEX, "index") in kinds
    assert ("00000000000000000000.timeindex", "time_index") in kinds
    assert ("leader-epoch-checkpoint", "leader_epoch") in kinds
    assert ("partition.metadata", "line") in kinds
    producers = [row for row in found if row["kind"] == "producer"]
    assert [row["last_offset"] for row in producers] == [0, 1, 2]


def test_metadata_is_decoded(written: Path) -> None:
    found = rows(written / "__cluster_metadata-0")
    types = {row.get("type") for row in found}
    assert {"LEADER_CHANGE", "RegisterBrokerRecord", "TopicRecord", "PartitionRecord"} <= types
    assert {"SNAPSHOT_HEADER", "SNAPSHOT_FOOTER"} <= types
    configs = [row["data"] for row in found if row.get("type") == "ConfigRecord"]
    assert {"name": "retention.ms", "value": "60000"}.items() <= configs[-1].items()


def test_coordinators_of_diskless_topics_are_decoded(written: Path) -> None:
    (folder,) = (written / "diskless-coordinators").iterdir()
    snapshots = list(folder.glob("*.checkpoint"))
    assert snapshots
    in_log, in_snapshots = rows(written / "__diskless_metadata-0"), rows(*snapshots)
    created = [row for row in in_snapshots if row.get("type") == "PartitionCreatedRecord"]
    assert {row["data"]["name"] for row in created} == {"remote"}
    # Records before the snapshot may be deleted from the log.
    types = {row.get("type") for row in (*in_log, *in_snapshots)}
    assert "FileCommittedRecord" in types
    assert not [row for row in (*in_log, *in_snapshots) if "value_base64" in row]


def test_committed_offsets_are_decoded(written: Path) -> None:
    found = [row for path in written.glob("__consumer_offsets-*") for row in rows(path)]
    (commit,) = [
        row for row in found if row.get("type") == "OffsetCommit" and row["key"]["topic"] == "small"
    ][-1:]
    assert commit["key"] == {"group": "g", "topic": "small", "partition": 0}
    assert commit["value"]["offset"] == 3
    members = [
        member
        for row in found
        if row.get("type") == "GroupMetadata"
        for member in row["value"]["members"]
    ]
    assert members[0]["assignment"] == ["small-0"]
    raw = [
        row
        for path in written.glob("__consumer_offsets-*")
        for row in rows(path, more=("--decoder", "raw"))
    ]
    assert not any("type" in row for row in raw if row["kind"] == "record")


def test_small_files_of_a_log_directory(written: Path) -> None:
    (offset, *_) = [
        row for row in rows(written / "recovery-point-offset-checkpoint") if row["topic"] == "small"
    ]
    assert (offset["partition"], offset["offset"]) == (0, 3)
    assert any("node.id=1" in row["text"] for row in rows(written / "meta.properties"))


def test_secrets_stay_hidden(tmp_path: Path) -> None:
    with Broker(directory=tmp_path) as broker:
        cli = Cli(broker)
        names = [
            "listener.name.plaintext.ssl.key.password",
            "listener.name.plaintext.plain.sasl.jaas.config",
        ]
        cli.ok("configs", "set", "--broker", "1", *(f"{name}=geheim" for name in names))
    found = rows(tmp_path / "__cluster_metadata-0" / LOG)
    data = [row["data"] for row in found if row.get("type") == "ConfigRecord"]
    assert [row["value"] for row in data if row["name"] in names] == ["[hidden]"] * 2
    assert "geheim" not in invoke("dump", str(tmp_path / "__cluster_metadata-0")).output
    assert "geheim" not in json.dumps(found)


def test_transaction_markers_and_aborted_transactions(tmp_path: Path) -> None:
    directory = tmp_path / "t-0"
    directory.mkdir()
    marker = encode_batch(
        [transaction_marker(False, 7)],
        timestamp=1,
        producer_id=5,
        producer_epoch=0,
        control=True,
        transactional=True,
    )
    (directory / LOG).write_bytes(marker)
    aborted = b"".join(n.to_bytes(s, "big") for n, s in ((0, 2), (5, 8), (1, 8), (2, 8), (3, 8)))
    (directory / "00000000000000000000.txnindex").write_bytes(aborted)
    found = rows(directory)
    (record,) = [row for row in found if row["kind"] == "record"]
    assert (record["type"], record["data"]["coordinator_epoch"]) == ("ABORT", 7)
    (entry,) = [row for row in found if row["kind"] == "aborted_transaction"]
    assert (entry["producer_id"], entry["first_offset"], entry["last_offset"]) == (5, 1, 2)


def test_a_wrong_checksum(partition: Path) -> None:
    data = bytearray((partition / LOG).read_bytes())
    data[-1] ^= 1
    (partition / LOG).write_bytes(data)
    assert "the checksum of the batch at offset 2 is wrong" in faults(partition / LOG)


@pytest.mark.parametrize("cut", [1, 40, 70])
def test_a_log_that_was_cut(partition: Path, cut: int) -> None:
    data = (partition / LOG).read_bytes()
    (partition / LOG).write_bytes(data[:-cut])
    (fault,) = faults(partition / LOG)
    assert "bytes" in fault
    found = rows(partition / LOG, code=1)
    assert [row["offset"] for row in found if row["kind"] == "record"][:2] == [0, 1]


@pytest.mark.parametrize("size", [0, -1, 2**31 - 1])
def test_an_impossible_length(partition: Path, size: int) -> None:
    data = bytearray((partition / LOG).read_bytes())
    data[8:12] = size.to_bytes(4, "big", signed=True)
    (partition / LOG).write_bytes(data)
    (fault,) = faults(partition / LOG)
    assert "a batch claims" in fault


def test_decreasing_offsets(partition: Path) -> None:
    data = (partition / LOG).read_bytes()
    (partition / LOG).write_bytes(data + data)
    assert faults(partition / LOG) == ["offset 0 after 2"]


def test_reserved_space_is_not_a_fault(partition: Path) -> None:
    for name in (LOG, INDEX, "00000000000000000000.timeindex"):
        with (partition / name).open("ab") as file:
            file.write(bytes(4096))
    assert len(rows(partition / LOG)) == 6
    assert len(rows(partition / INDEX)) == 2


def test_an_index_that_points_elsewhere(partition: Path) -> None:
    data = bytearray((partition / INDEX).read_bytes())
    data[-4:] = (10**6).to_bytes(4, "big")
    (partition / INDEX).write_bytes(data)
    assert faults(partition / INDEX) == ["points beyond the end of the segment"]
    (partition / INDEX).write_bytes(data[:8] + data[:8])
    assert "is not after the entry before it" in faults(partition / INDEX)


def test_a_snapshot_without_its_footer(written: Path, tmp_path: Path) -> None:
    (source,) = (written / "__cluster_metadata-0").glob("*-0000000000.checkpoint")
    data = source.read_bytes()
    first = int.from_bytes(data[8:12], "big") + 12
    (tmp_path / source.name).write_bytes(data[:first])
    assert faults(tmp_path / source.name) == ["the snapshot has no footer: it is incomplete"]


@pytest.mark.parametrize("name", ["00000000000000000003.snapshot", "leader-epoch-checkpoint"])
def test_small_files_that_are_damaged(partition: Path, name: str) -> None:
    (partition / name).write_bytes(b"nonsense")
    assert len(faults(partition / name)) == 1


def test_what_cannot_be_dumped(written: Path, tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("x")
    for path, said in (
        (tmp_path / "none.log", "does not exist"),
        (tmp_path / "notes.txt", "is not a known kind of file"),
        (tmp_path, "has no log files"),
        (written, "name a partition's directory in it"),
    ):
        result = invoke("dump", str(path))
        assert result.exit_code == 1
        assert said in result.stderr
