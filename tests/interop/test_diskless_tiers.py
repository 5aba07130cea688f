"""Kafka's own consumer and tools over the tiers of a diskless topic."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from skylog.testing.cluster import Cluster
from tests.integration import tiers_by_hand as tiers
from tests.integration.broker_client import NOW
from tests.integration.tiers_by_hand import MS_APART
from tests.interop.clients import Program, Record, java_client
from tests.interop.support import JavaTools
from tests.waiting import until

pytestmark = [pytest.mark.interop, pytest.mark.timeout(180)]

TOPIC = "tiers"
END = 3000


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    """Tiered 0–2000, WAL 1000–3000."""
    with tiers.three_brokers() as running:
        tiers.create(running, TOPIC, diskless_tiering_assembler="external")
        tiers.fill(running.brokers[0], TOPIC, 0, END)
        for start in (0, 1000):
            tiers.tier(running, TOPIC, start, start + 1000)
        tiers.prune(running.brokers[0], TOPIC, 1000)
        yield running


@pytest.fixture(scope="module")
def consumer(cluster: Cluster) -> Iterator[Program]:
    program = java_client(cluster.bootstrap)
    yield program
    program.close()


def test_the_tool_for_offsets(cluster: Cluster, tmp_path: Path) -> None:
    tool = JavaTools(cluster.bootstrap, tmp_path / "log")
    expected = {
        "earliest": 0,
        "latest": END,
        "max-timestamp": END - 1,
        "earliest-local": 1000,
        "latest-tiered": 1999,
        "earliest-pending-upload": 2000,
        str(NOW + MS_APART * 700): 700,
        str(NOW + MS_APART * 2500): 2500,
    }
    try:
        for time, offset in expected.items():
            found = tool("get-offsets", "--topic", TOPIC, "--time", time).lines
            assert found == [f"{TOPIC}:0:{offset}"], time
    finally:
        tool.close()


def is_everything(found: list[Record], start: int) -> None:
    assert [one.offset for one in found] == list(range(start, END))
    assert [one.value for one in found] == [tiers.value(offset) for offset in range(start, END)]


def test_a_consumer_reads_everything_once(cluster: Cluster, consumer: Program) -> None:
    is_everything(consumer.consume(TOPIC, END), 0)
    # Sought by time, within a tiered segment and within the WAL.
    for start in (700, 2500):
        is_everything(consumer.consume(TOPIC, END - start, NOW + MS_APART * start), start)


def test_a_consumer_waits_for_a_store_that_fails(cluster: Cluster, consumer: Program) -> None:
    (path,) = (cluster.directory / "objects").rglob(f"{TOPIC}-*/0/{0:020}-*.log")
    whole = path.read_bytes()
    path.write_bytes(b"\0" * len(whole))
    found: list[Record] = []
    reading = threading.Thread(target=lambda: found.extend(consumer.consume(TOPIC, END)))
    reading.start()

    def errors() -> int:
        brokers = cluster.brokers
        return sum(tiers.tiered(one).counts.of(TOPIC).fetch_errors for one in brokers)

    try:
        until(lambda: errors() >= 3, "it asks again")
    finally:
        path.write_bytes(whole)
        reading.join()
    # Had it started over, or gone on elsewhere, records would be missing or there twice.
    is_everything(found, 0)
