"""A node whose settings do not fit its remote topics says so and changes nothing."""

from __future__ import annotations

import subprocess
from pathlib import Path

from skylog.wire.messages.create_topics_request import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from tests.integration.processes import BrokerProcess, server_command
from tests.integration.wire_client import Wire

ON = {"remote.log.storage.system.enable": "true"}
START_SECONDS_MAX = 60


def test_remote_topics_need_the_system(tmp_path: Path) -> None:
    directory = tmp_path / "data"
    with BrokerProcess(directory, ON) as node:
        with Wire(node.address) as wire:
            configs = [CreatableTopicConfig("remote.storage.enable", "true")]
            made = wire.ask(CreateTopicsRequest([CreatableTopic("t", 1, 1, [], configs)]))
            assert made.topics[0].error_code == 0, made
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
