"""A node whose settings do not fit its remote topics says so and changes nothing."""

from __future__ import annotations

import contextlib
import subprocess
from pathlib import Path

import pytest

from skylog.wire.messages.create_topics_request import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from tests.integration.processes import BrokerProcess, server_command
from tests.integration.test_bad_start import refused
from tests.integration.wire_client import Wire
from tests.waiting import until

ON = {"remote.log.storage.system.enable": "true"}
START_SECONDS_MAX = 60


def create_remote(node: BrokerProcess, name: str) -> None:
    with Wire(node.address) as wire:
        configs = [CreatableTopicConfig("remote.storage.enable", "true")]
        made = wire.ask(CreateTopicsRequest([CreatableTopic(name, 1, 1, [], configs)]))
        assert made.topics[0].error_code == 0, made


def test_remote_topics_need_the_system(tmp_path: Path) -> None:
    directory = tmp_path / "data"
    with BrokerProcess(directory, ON) as node:
        create_remote(node, "t")
        assert node.terminate() == 0
    logs = sorted(path.name for path in directory.iterdir())
    ended = subprocess.run(
        server_command(directory),
        capture_output=True,
        text=True,
        timeout=START_SECONDS_MAX,
        check=False,
    )
    assert ended.returncode == 1
    assert ended.stderr.splitlines()[-1] == (
        "skylog: You have to delete all topics with the property remote.storage.enable=true before "
        "disabling tiered storage cluster-wide"
    )
    assert sorted(path.name for path in directory.iterdir()) == logs
    with BrokerProcess(directory, ON):
        pass


AIVEN = "io.aiven.kafka.tieredstorage.RemoteStorageManager"
LOCAL = "org.apache.kafka.server.log.remote.storage.LocalTieredStorage"
CLASS = "remote.log.storage.manager.class.name"
BACKEND = {
    "rsm.config.storage.backend.class": (
        "io.aiven.kafka.tieredstorage.storage.filesystem.FileSystemStorage"
    ),
    "rsm.config.storage.root": "/tmp",
    "rsm.config.chunk.size": "4194304",
}
MISTAKES = {
    "unknown class": ({CLASS: "com.example.Mine"}, "com.example.Mine"),
    "typing error": (
        {CLASS: AIVEN, **BACKEND, "rsm.config.chunk.sise": "1"},
        "rsm.config.chunk.sise",
    ),
    "of another class": ({CLASS: LOCAL, "rsm.config.dir": "/tmp", "rsm.config.x": "1"}, "x"),
    "encryption": (
        {CLASS: AIVEN, **BACKEND, "rsm.config.encryption.enabled": "true"},
        "encryption",
    ),
    "compression": (
        {CLASS: AIVEN, **BACKEND, "rsm.config.compression.enabled": "true"},
        "compression",
    ),
    "no backend": ({CLASS: AIVEN, "rsm.config.chunk.size": "1"}, "storage.backend.class"),
    "no directory": ({CLASS: LOCAL}, "rsm.config.dir"),
    "no url": ({"tiered.storage.url": "ftp://x"}, "tiered.storage.url"),
    "metadata topic": (
        {"rlmm.config.remote.log.metadata.topic.min.isr": "0"},
        "remote.log.metadata.topic.min.isr",
    ),
    "local limit": (
        {"log.retention.bytes": "10", "log.local.retention.bytes": "11"},
        "Value must not be more than retention.bytes property value: 10",
    ),
}


@pytest.mark.parametrize(("settings", "named"), MISTAKES.values(), ids=MISTAKES)
def test_a_node_with_a_mistake_in_its_settings_says_so_and_writes_nothing(
    tmp_path: Path, settings: dict[str, str], named: str
) -> None:
    line = refused(server_command(tmp_path / "data", {**ON, **settings}), tmp_path)
    assert named in line


def test_a_store_of_another_cluster_is_left_alone(tmp_path: Path) -> None:
    bucket = tmp_path / "bucket"
    settings = {**ON, "tiered.storage.url": bucket.as_uri()}
    with BrokerProcess(tmp_path / "one", settings) as node:
        create_remote(node, "t")
    before = sorted(path.name for path in bucket.rglob("*"))
    ended = subprocess.run(
        server_command(tmp_path / "other", settings),
        capture_output=True,
        text=True,
        timeout=START_SECONDS_MAX,
        check=False,
    )
    assert ended.returncode == 1
    assert "belongs to cluster" in ended.stderr.splitlines()[-1]
    assert sorted(path.name for path in bucket.rglob("*")) == before


def test_another_number_of_metadata_partitions_stops_the_node(tmp_path: Path) -> None:
    count = "rlmm.config.remote.log.metadata.topic.num.partitions"
    directory = tmp_path / "data"
    with BrokerProcess(directory, {**ON, count: "3"}) as node:
        create_remote(node, "t")
        until((directory / "__remote_log_metadata-2").exists)
        assert node.terminate() == 0
    other = BrokerProcess(directory, {**ON, count: "5"})
    with contextlib.suppress(AssertionError):
        other.start()
    assert other.wait() == 1
    assert "3" in other.logged().splitlines()[-1] and "5" in other.logged().splitlines()[-1]
    with BrokerProcess(directory, {**ON, count: "3"}):
        pass
