"""Diskless topics over their tiers, on three brokers: local copy, tail, tiered segments, WAL."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from skylog.kernel.errors import ErrorCode
from skylog.testing.cluster import Cluster, ClusterNode
from tests.integration import tiers_by_hand as tiers
from tests.integration.broker_client import NOW
from tests.integration.racks_cluster import ZoneClient, described
from tests.integration.tiers_by_hand import MS_APART, PER_BATCH, StoreLog

LATEST, EARLIEST, MAX_TIMESTAMP, EARLIEST_LOCAL, LATEST_TIERED, PENDING = -1, -2, -3, -4, -5, -6
END = 5500
SIX = "six"


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with tiers.three_brokers(diskless_local_segments_enable="true") as running:
        yield running


@pytest.fixture(scope="module")
def stored() -> Iterator[StoreLog]:
    with tiers.store_log() as log:
        yield log


@pytest.fixture(scope="module")
def six(cluster: Cluster) -> str:
    """The six segments of the specification: tiered 0–2000, WAL 1000–5500, copied 4000–5500."""
    tiers.create(cluster, SIX, diskless_tiering_assembler="external")
    broker = cluster.brokers[0]
    tiers.fill(broker, SIX, 0, 4000)
    for one in tiers.replicas_of(cluster, SIX):
        tiers.copy_from(one, SIX, 4000)
    tiers.fill(broker, SIX, 4000, END)
    for one in tiers.replicas_of(cluster, SIX):
        tiers.until_copied(one, SIX, 4000, END)
    for start in (0, 1000):
        tiers.tier(cluster, SIX, start, start + 1000)
    tiers.prune(broker, SIX, 1000)
    return SIX


def assembled(broker: ClusterNode, topic: str) -> None:
    """What a leader puts together for its next tiered segment; no fetch may see these bytes."""
    folder = broker.directory / "diskless-tiering" / f"{topic}-0"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{2000:020}.log").write_bytes(b"not for consumers" * 1000)


_opened: list[list[str]] = []


@contextmanager
def opened_files() -> Iterator[list[str]]:
    """The names of the files that this process opens. Its hook stays, and does nothing then."""
    names: list[str] = []
    if not _opened:
        sys.addaudithook(_note_open)
    _opened.append(names)
    yield names
    _opened.append([])


def _note_open(event: str, given: tuple[object, ...]) -> None:
    if event == "open":
        _opened[-1].append(str(given[0]))


@pytest.mark.parametrize(
    ("offset", "source"),
    [
        (0, {"tiered"}),
        (999, {"tiered"}),
        (1000, {"tiered"}),
        (1500, {"tiered"}),
        (1999, {"tiered"}),
        (2000, {"wal"}),
        (3999, {"wal"}),
        (4000, set()),
        (END - 1, set()),
    ],
)
def test_each_region_is_read_from_its_own_tier(
    cluster: Cluster, six: str, stored: StoreLog, offset: int, source: set[str]
) -> None:
    # ENG-42, ENG-43, ENG-38, ENG-40 partly: one partition
    for broker in tiers.replicas_of(cluster, six):
        stored.clear()
        answer = tiers.fetch(broker, six, offset)
        assert answer.error_code == 0
        assert (answer.log_start_offset, answer.high_watermark) == (0, END)
        found = tiers.offsets_in(answer)
        assert offset in found
        assert found[0] == offset - offset % PER_BATCH
        assert stored.kinds(broker) == source, stored.keys(broker)
        # An answer ends with its segment at the latest; the WAL has everything from 1000 on.
        assert found[-1] == next(end for end in (1000, 2000, END) if offset < end) - 1


def test_a_fetch_at_the_end_waits_for_the_copy(
    cluster: Cluster, six: str, stored: StoreLog
) -> None:
    # ENG-42: above 5500 an in-sync replica waits for the background thread
    broker = tiers.leader_of(cluster, six)
    stored.clear()
    with ZoneClient(broker.bootstrap) as client:
        answer = client.fetch(six, END, wait_ms=50)
    assert (answer.error_code, answer.records or b"", answer.high_watermark) == (0, b"", END)
    assert stored.kinds(broker) == set()
    tiers.create(cluster, "tail", diskless_tiering_assembler="external")
    broker = tiers.leader_of(cluster, "tail")
    tiers.fill(broker, "tail", 0, 100)
    tiers.until_copied(broker, "tail", 0, 100)
    answers: list[Any] = []
    waits = threading.Thread(
        target=lambda: answers.append(tiers.fetch(broker, "tail", 100, wait_ms=60_000))
    )
    waits.start()
    tiers.fill(broker, "tail", 100, 200)
    waits.join()
    assert tiers.offsets_in(answers[0])[0] == 100


def test_nothing_is_missing_or_twice_at_the_edges(cluster: Cluster, six: str) -> None:
    # ENG-43
    for broker in cluster.brokers:
        tiers.read(broker, six, 0, END)
        for edge in (999, 1000, 1001, 1999, 2000, 2001, 3999, 4000, 4001):
            tiers.read(broker, six, edge, edge + 1)


def test_what_is_assembled_is_not_served(cluster: Cluster, six: str, stored: StoreLog) -> None:
    # ENG-45
    leader = tiers.leader_of(cluster, six)
    assembled(leader, six)
    stored.clear()
    with opened_files() as opened:
        answer = tiers.fetch(leader, six, 2500)
    assert tiers.offsets_in(answer)[0] == 2500
    assert stored.kinds(leader) == {"wal"}
    (key,) = stored.keys(leader)[:1]
    assert any(key.rpartition("/")[2] in name for name in opened), "files are not watched"
    assert [name for name in opened if name.endswith(f"{2000:020}.log")] == []


def test_one_fetch_over_four_branches(cluster: Cluster, six: str, stored: StoreLog) -> None:
    # ENG-40
    topic = "branches"
    tiers.create(cluster, topic, 4, diskless_tiering_assembler="external")
    leader = tiers.leader_of(cluster, topic)
    # Its other partitions are asked here, too: any broker serves them.
    local, tail, prefix, wal = range(4)
    for index in range(4):
        tiers.fill(leader, topic, 0, 400, index)
    tiers.tier(cluster, topic, 0, 200, prefix)
    tiers.prune(leader, topic, 200, prefix)
    for index in (prefix, wal):
        for broker in cluster.brokers:
            copies = broker.node._services.diskless.local.partitions
            broker.run(_unhost(copies, tiers.key_of(broker, topic, index)))
    broker = next(one for one in tiers.replicas_of(cluster, topic, prefix))
    parts = [(topic, tail, 400), (topic, prefix, 100), (topic, wal, 0), (topic, local, 300)]
    stored.clear()
    with ZoneClient(broker.bootstrap) as client:
        answers = {one.partition_index: one for one in _partitions(client.fetch_all(*parts))}
    found = {index: tiers.offsets_in(one) for index, one in answers.items()}
    assert found == {
        tail: [],
        prefix: list(range(100, 200)),
        wal: list(range(400)),
        local: list(range(300, 400)),
    }
    assert all((one.error_code, one.high_watermark) == (0, 400) for one in answers.values())
    assert stored.kinds(broker) == {"wal", "tiered"}
    # The budget goes to the first of the request.
    size = len(answers[prefix].records)
    for first in range(1, 4):
        order = [parts[(first + at) % 4] for at in range(4)]
        with ZoneClient(broker.bootstrap) as client:
            answer = client.fetch_all(*order, max_bytes=size)
        some = {one.partition_index: len(one.records or b"") for one in _partitions(answer)}
        expected = {index: size if index == order[0][1] else 0 for index in range(4)}
        assert some == expected, (order, broker.node_id)
    with ZoneClient(broker.bootstrap) as client:
        answer = client.fetch_all(*parts, max_bytes=2 * size)
    some = {one.partition_index: len(one.records or b"") for one in _partitions(answer)}
    assert (some[tail], some[prefix], some[wal] + some[local]) == (0, size, size)


async def _unhost(copies: Any, key: Any) -> None:
    copies.unhost(*key)


def _partitions(answer: Any) -> list[Any]:
    return [one for topic in answer.responses for one in topic.partitions]


def test_offsets_over_the_tiers(cluster: Cluster, six: str) -> None:
    for broker in cluster.brokers:
        with ZoneClient(broker.bootstrap) as client:
            found = {
                kind: client.offset(six, kind)
                for kind in (LATEST, EARLIEST, EARLIEST_LOCAL, LATEST_TIERED, PENDING)
            }
            assert {kind: (one.error_code, one.offset) for kind, one in found.items()} == {
                LATEST: (0, END),
                EARLIEST: (0, 0),
                EARLIEST_LOCAL: (0, 1000),
                LATEST_TIERED: (0, 1999),
                PENDING: (0, 2000),
            }
            assert {one.leader_epoch for one in found.values()} == {0}
            latest = client.offset(six, MAX_TIMESTAMP)
            assert (latest.offset, latest.timestamp) == (END - 1, NOW + MS_APART * (END - 1))
            for offset in (0, 1, 500, 999, 1000, 1500, 1999, 2000, 3333, 4000, END - 1):
                one = client.offset(six, NOW + MS_APART * offset - 3)
                assert (one.error_code, one.offset, one.timestamp) == (
                    0,
                    offset,
                    NOW + MS_APART * offset,
                )
            assert client.offset(six, NOW + MS_APART * END).offset == -1
            assert client.offset(six, -7).error_code == ErrorCode.UNSUPPORTED_VERSION


def test_a_broker_without_a_replica_serves_both_tiers(
    cluster: Cluster, six: str, stored: StoreLog
) -> None:
    # ENG-56
    broker = tiers.outsider(cluster, six)
    state = described(cluster, six)[0]
    assert broker.node_id not in [*state.replica_nodes, *state.isr_nodes]
    tiers.tiered(broker).prefixes.forget(tiers.key_of(broker, six))
    for offset, source in ((500, "tiered"), (2500, "wal"), (END - 1, "wal")):
        stored.clear()
        answer = tiers.fetch(broker, six, offset)
        assert offset in tiers.offsets_in(answer)
        assert source in stored.kinds(broker)
        assert (answer.log_start_offset, answer.high_watermark) == (0, END)
    # Now it knows the segments: what both tiers have comes from the tiered one.
    stored.clear()
    assert 1500 in tiers.offsets_in(tiers.fetch(broker, six, 1500))
    assert stored.kinds(broker) == {"tiered"}
    assert tiers.topic_directories(broker, six) == []
