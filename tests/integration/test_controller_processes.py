"""Three controllers as processes: elections, kill -9 of the leader, and DescribeQuorum."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from skylog.client.connection import open_connection
from skylog.client.settings import Address, ClientSettings
from skylog.kernel.errors import ErrorCode, KafkaError
from skylog.kernel.system import real_system
from skylog.wire.messages.describe_quorum_request import (
    DescribeQuorumRequest,
    PartitionData,
    TopicData,
)
from skylog.wire.messages.describe_quorum_response import PartitionData as Described
from tests.integration.processes import MAIN, BrokerProcess
from tests.ports import free_port

CLUSTER_ID = "MkU3OEVBNTcwNTJENDM2Qg"
PATIENCE_SECONDS = 90


def settings(number: int, ports: list[int]) -> dict[str, str]:
    voters = ",".join(f"{n}@127.0.0.1:{port}" for n, port in enumerate(ports, start=1))
    return {
        "process.roles": "controller",
        "node.id": str(number),
        "controller.quorum.voters": voters,
        "controller.listener.names": "CONTROLLER",
        "listeners": f"CONTROLLER://127.0.0.1:{ports[number - 1]}",
        "listener.security.protocol.map": "CONTROLLER:PLAINTEXT",
    }


def format_directory(directory: Path, given: dict[str, str]) -> None:
    chosen = {**given, "log.dirs": str(directory)}
    overrides = [part for key, value in chosen.items() for part in ("--override", f"{key}={value}")]
    subprocess.run(
        [sys.executable, "-c", MAIN, "format", "--cluster-id", CLUSTER_ID, *overrides],
        check=True,
        capture_output=True,
    )


@pytest.fixture
def controllers(tmp_path: Path) -> Iterator[list[BrokerProcess]]:
    ports = [free_port() for _ in range(3)]
    processes = []
    for number in (1, 2, 3):
        given = settings(number, ports)
        format_directory(tmp_path / str(number), given)
        processes.append(BrokerProcess(tmp_path / str(number), given))
    try:
        for process in processes:
            process.start()
        yield processes
    finally:
        for process in processes:
            process.kill()


async def describe(process: BrokerProcess) -> Described | None:
    """The leader's response; None from other nodes."""
    asked = DescribeQuorumRequest([TopicData("__cluster_metadata", [PartitionData(0)])])
    host, _, port = process.address.rpartition(":")
    try:
        connection = await open_connection(
            Address(host, int(port)), ClientSettings(()), real_system()
        )
    except KafkaError:
        return None
    try:
        answer = await connection.request(asked)
    except KafkaError:
        return None
    finally:
        await connection.close()
    found: Described = answer.topics[0].partitions[0]
    return found if found.error_code == ErrorCode.NONE else None


async def wait_for_leader(
    processes: list[BrokerProcess], *, after: int = 0, caught_up: int = 0
) -> tuple[BrokerProcess, Described]:
    """A leader of a later epoch, with ``caught_up`` voters at the high watermark."""
    async with asyncio.timeout(PATIENCE_SECONDS):
        while True:
            for process in processes:
                found = await describe(process)
                if found is None or found.leader_epoch <= after or found.high_watermark < 0:
                    continue
                ends = [each.log_end_offset for each in found.current_voters]
                if sum(end >= found.high_watermark for end in ends) >= caught_up:
                    return process, found
            await asyncio.sleep(0.1)


async def test_a_killed_leader_is_replaced_and_comes_back(
    controllers: list[BrokerProcess],
) -> None:
    leader, first = await wait_for_leader(controllers, caught_up=3)
    assert sorted(each.replica_id for each in first.current_voters) == [1, 2, 3]
    leader.kill()
    others = [process for process in controllers if process is not leader]
    _, second = await wait_for_leader(others, after=first.leader_epoch, caught_up=2)
    assert second.leader_id != first.leader_id
    assert second.high_watermark > first.high_watermark
    leader.start()
    _, third = await wait_for_leader(controllers, caught_up=3)
    assert third.high_watermark >= second.high_watermark
