"""Kafka's tools check our directories, and we open theirs."""

from __future__ import annotations

import itertools
import json
import os
import random
import re
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from skylog.quorum.snapshots import BOOTSTRAP_ID, BOOTSTRAP_NAME, read_batches, read_snapshot
from skylog.quorum.storage import (
    METADATA_DIRECTORY,
    FormatPlan,
    format_directory,
    load_directory,
)
from skylog.quorum.voters import VoterSet
from skylog.wire.batch import Batch
from tests.ports import free_port
from tests.unit.quorum.data_dir import AFTER_SNAPSHOT, BEFORE_SNAPSHOT, encoded, make
from tests.unit.quorum.support import CONTROLLER, NODE_ID, NOW_MS, Rig, open_storage, started

pytestmark = pytest.mark.interop

CLUSTER = "5L6g3nShT-eMCtK--X86sw"


def java(main_class: str, *arguments: str) -> list[str]:
    cache = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache"))
    jars = os.environ.get("SKYLOG_KAFKA_JARS", str(cache / "skylog" / "kafka-4.3.1" / "lib"))
    level = "-Dorg.apache.logging.log4j.level=INFO"
    return ["java", "-Xmx256m", level, "-cp", f"{jars}/*", main_class, *arguments]


def tool(main_class: str, *arguments: str) -> str:
    command = java(main_class, *arguments)
    ran = subprocess.run(command, capture_output=True, text=True, timeout=100, check=False)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return ran.stdout


def dump(path: Path) -> str:
    found = tool(
        "org.apache.kafka.tools.DumpLogSegments", "--cluster-metadata-decoder", "--files", str(path)
    )
    assert "isvalid: false" not in found
    return found


def payloads(dumped: str) -> list[dict[str, object]]:
    """The metadata records as the tool decodes them."""
    return [json.loads(text) for text in re.findall(r"payload: (\{.*\})$", dumped, re.MULTILINE)]


def properties(tmp_path: Path, directory: Path, ports: tuple[int, int] = (9092, 9093)) -> str:
    path = tmp_path / "server.properties"
    path.write_text(
        "process.roles=broker,controller\n"
        f"node.id={NODE_ID}\n"
        f"listeners=PLAINTEXT://localhost:{ports[0]},CONTROLLER://localhost:{ports[1]}\n"
        "controller.listener.names=CONTROLLER\n"
        f"controller.quorum.bootstrap.servers=localhost:{ports[1]}\n"
        f"log.dirs={directory}\n"
    )
    return str(path)


def storage_tool(command: str, tmp_path: Path, directory: Path, *arguments: str) -> str:
    config = properties(tmp_path, directory)
    return tool("kafka.tools.StorageTool", command, *arguments, "-c", config)


@pytest.fixture(scope="module")
def kafkas(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory that Kafka formatted."""
    place = tmp_path_factory.mktemp("kafka")
    storage_tool("format", place, place / "data", "--standalone", "-t", CLUSTER)
    return place / "data"


def shape(batch: Batch) -> tuple[int, ...]:
    """A batch without its times, which differ, and the checksum over them."""
    return batch.base_offset, batch.size, batch.leader_epoch, batch.attributes, batch.record_count


def test_formatting_writes_what_kafka_writes(kafkas: Path, tmp_path: Path) -> None:
    ours = tmp_path / "data"
    plan = FormatPlan(NODE_ID, CLUSTER, CONTROLLER, load_directory([kafkas], NODE_ID).bootstrap)
    storage = format_directory([ours], plan, random.Random(1), NOW_MS)
    files = {str(path.relative_to(kafkas)) for path in kafkas.rglob("*")}
    assert {str(path.relative_to(ours)) for path in ours.rglob("*")} - {".lock"} == files
    expected, found = kafkas / BOOTSTRAP_NAME, ours / BOOTSTRAP_NAME
    for one, other in zip(read_batches(expected), read_batches(found), strict=True):
        assert shape(other) == shape(one)
        assert bytes(other.records()) == bytes(one.records())
    expected, found = (
        place / METADATA_DIRECTORY / BOOTSTRAP_ID.file_name for place in (kafkas, ours)
    )
    for one, other in zip(read_batches(expected), read_batches(found), strict=True):
        assert shape(other) == shape(one)
    voters = read_snapshot(expected).quorum.voters
    assert voters is not None
    renamed = VoterSet(tuple(replace(voter, key=storage.replica) for voter in voters.voters))
    assert read_snapshot(found).quorum.voters == renamed
    assert read_snapshot(found).quorum.kraft_version == read_snapshot(expected).quorum.kraft_version


def test_our_defaults_are_kafkas(kafkas: Path, tmp_path: Path) -> None:
    ours = open_storage(tmp_path)
    assert list(ours.bootstrap) == list(load_directory([kafkas], NODE_ID).bootstrap)


def test_kafka_finds_nothing_wrong_with_our_directory(tmp_path: Path) -> None:
    directory = tmp_path / "data"
    storage = open_storage(directory)
    told = storage_tool("info", tmp_path, directory)
    assert "Found problem" not in told
    assert f"cluster.id={storage.cluster_id}" in told
    assert f"node.id={NODE_ID}" in told
    assert f"directory.id={storage.replica.directory_id}" in told


async def test_kafkas_tool_reads_our_log_and_snapshot(tmp_path: Path) -> None:
    await make(tmp_path)
    log = tmp_path / METADATA_DIRECTORY
    first, second = (dump(path) for path in sorted(log.glob("*.log")))
    assert "LeaderChange:" in first
    assert "KRaftVersion" in first
    assert "KRaftVoters" in first
    named = [record["type"] for record in payloads(first) + payloads(second)]
    features = len(open_storage(tmp_path).bootstrap)
    assert named == (
        ["FEATURE_LEVEL_RECORD"] * features
        + ["TOPIC_RECORD", "PARTITION_RECORD"]
        + ["CONFIG_RECORD"] * len(AFTER_SNAPSHOT)
    )
    snapshot = dump(log / "00000000000000000011-0000000001.checkpoint")
    assert "SnapshotHeader" in snapshot
    assert "SnapshotFooter" in snapshot
    assert len(payloads(snapshot)) == features + len(BEFORE_SNAPSHOT)


async def test_kafkas_tool_accepts_our_indexes(tmp_path: Path) -> None:
    rig: Rig = await started(tmp_path)
    for _ in range(40):
        await rig.commit(encoded(BEFORE_SNAPSHOT) * 5)
    await rig.node.close()
    log = tmp_path / METADATA_DIRECTORY
    for suffix in (".index", ".timeindex"):
        path = log / f"{0:020d}{suffix}"
        assert path.stat().st_size > 0
        told = tool(
            "org.apache.kafka.tools.DumpLogSegments", "--index-sanity-check", "--files", str(path)
        )
        assert "passed sanity check" in told


async def test_a_directory_of_kafkas_is_opened_and_judged_by_it_again(
    kafkas: Path, tmp_path: Path
) -> None:
    directory = tmp_path / "data"
    shutil.copytree(kafkas, directory)
    rig: Rig = await started(directory)
    assert rig.storage.cluster_id == CLUSTER
    assert rig.node.epoch == 1
    await rig.commit(list(rig.storage.bootstrap))
    await rig.node.close()
    found = dump(directory / METADATA_DIRECTORY / f"{0:020d}.log")
    assert len(payloads(found)) == len(rig.storage.bootstrap)


def run_kafka(config: str) -> None:
    """Start a broker, and stop it as soon as it serves."""
    kafka = subprocess.Popen(java("kafka.Kafka", config), stdout=subprocess.PIPE, text=True)
    assert kafka.stdout is not None
    try:
        before = itertools.takewhile(lambda line: "Kafka Server started" not in line, kafka.stdout)
        said = "".join(before)
        assert kafka.poll() is None, said
    finally:
        kafka.terminate()
        kafka.communicate(timeout=60)


async def test_kafka_goes_on_where_we_stopped_and_we_where_it_did(tmp_path: Path) -> None:
    directory = tmp_path / "data"
    rig: Rig = await started(directory)
    await rig.commit(list(rig.storage.bootstrap))
    await rig.commit(encoded(BEFORE_SNAPSHOT))
    state = [*rig.storage.bootstrap, *encoded(BEFORE_SNAPSHOT)]
    await rig.node.write_snapshot(rig.node.end_offset, state)
    await rig.commit(encoded(AFTER_SNAPSHOT))
    await rig.node.close()
    before, end = [batch.records for batch in await rig.load()], rig.node.end_offset
    config = properties(tmp_path, directory, (free_port(), free_port()))
    run_kafka(config)
    rig = await started(directory)
    assert rig.node.epoch == 3
    assert rig.node.end_offset > end + 1
    after = [batch.records for batch in await rig.load()]
    assert after[: len(before)] == before
