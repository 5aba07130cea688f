"""``skylog dump`` of the metadata topic of tiered storage."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from skylog.kernel.ids import Uuid
from skylog.tiered.metadata.machine import RemoteLog
from skylog.tiered.metadata.snapshots import RemoteLogState, encode_snapshot
from skylog.tiered.segments import TopicIdPartition
from skylog.wire.metadata_records import encode_remote_log
from skylog.wire.records import encode_batch
from tests.integration.cli_support import invoke
from tests.unit.wire.test_remote_log_records import TOPIC, finished, marked, started

LOG = "00000000000000000000.log"


@pytest.fixture
def partition(tmp_path: Path) -> Path:
    directory = tmp_path / "__remote_log_metadata-12"
    directory.mkdir()
    values = [encode_remote_log(record) for record in (started(), finished(), marked())]
    values += [b"\x01\x09\x00", values[0][:-3], values[0] + b"x"]
    (directory / LOG).write_bytes(
        b"".join(
            encode_batch([(None, value)], timestamp=offset, base_offset=offset)
            for offset, value in enumerate(values)
        )
    )
    return directory


def test_records_are_decoded_and_damage_is_named(partition: Path) -> None:
    result = invoke("dump", str(partition / LOG), "--json")
    assert result.exit_code == 1
    rows = [json.loads(line) for line in result.stdout.splitlines()]
    records = [row for row in rows if row["kind"] == "record"]
    segment, update, deletion, unknown, cut, longer = records
    assert segment["type"] == "RemoteLogSegmentMetadataRecord"
    data = segment["data"]
    assert (data["start_offset"], data["end_offset"]) == (100, 1000)
    assert data["remote_log_segment_state"] == "COPY_SEGMENT_STARTED"
    assert data["remote_log_segment_id"]["id"] == "adh9f8BMS4anaUnD8KWfWg"
    assert update["data"]["remote_log_segment_state"] == "COPY_SEGMENT_FINISHED"
    assert deletion["data"]["remote_partition_delete_state"] == "DELETE_PARTITION_MARKED"
    assert "unknown type 9" in unknown["fault"]
    assert cut["fault"]
    assert "1 bytes after" in longer["fault"]


def test_a_copied_file_is_decoded_when_told_how(partition: Path, tmp_path: Path) -> None:
    copy = tmp_path / LOG
    copy.write_bytes((partition / LOG).read_bytes())
    result = invoke("dump", str(copy), "--decoder", "remote-log", "--json", "--max", "2")
    assert result.exit_code == 0
    assert "COPY_SEGMENT_STARTED" in result.stdout


def test_a_snapshot_of_remote_logs_is_decoded(tmp_path: Path) -> None:
    remote = RemoteLog(TopicIdPartition(TOPIC[1], TOPIC[2]), TOPIC[0])
    remote.apply(started(), 0)
    remote.apply(finished(), 1)
    data = encode_snapshot(Uuid(b"m" * 16), 7, 2, [RemoteLogState(*remote.snapshot())])
    path = tmp_path / "remote-log-metadata-7.snapshot"
    path.write_bytes(data)
    result = invoke("dump", str(path), "--json")
    assert result.exit_code == 0, result.output
    about, head, segment = [json.loads(line) for line in result.stdout.splitlines()]
    assert (about["partition"], about["offset"]) == (7, 2)
    assert head["data"]["topic"] == "topic1"
    assert segment["data"]["remote_log_segment_state"] == "COPY_SEGMENT_FINISHED"
    for broken in (data[:20], data[:-1], data[:-1] + b"x"):
        path.write_bytes(broken)
        assert invoke("dump", str(path)).exit_code == 1
