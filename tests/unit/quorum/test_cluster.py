"""Several quorum nodes over sockets: elections, replication, fail-over, snapshots, new voters."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any, TypeVar

import pytest

from skylog.kernel.clock import SystemClock
from skylog.kernel.errors import ErrorCode
from skylog.kernel.executor import ThreadExecutor
from skylog.log.files import Files
from skylog.quorum.election_file import ElectionFile
from skylog.quorum.log import MetadataLogConfig
from skylog.quorum.messages import VoteRequest
from skylog.quorum.retention import Retention
from skylog.replicated.runtime import Runtime
from skylog.replicated.timers import LoopTimers
from skylog.wire.messages.add_raft_voter_request import AddRaftVoterRequest, Listener
from skylog.wire.messages.remove_raft_voter_request import RemoveRaftVoterRequest
from tests.ports import free_port
from tests.unit.quorum.cluster import Cluster
from tests.unit.quorum.support import value
from tests.unit.quorum.test_runtime_on_quorum import KIND
from tests.unit.replicated.support import Add, IntCodec

T = TypeVar("T")


@pytest.fixture(params=["dynamic", "static"])
async def cluster(tmp_path: Path, request: Any) -> AsyncIterator[Cluster]:
    found = Cluster(tmp_path, [free_port() for _ in range(3)], static=request.param == "static")
    found.format(initial=3)
    for member in found.members.values():
        await member.start()
    yield found
    await found.close()


class Gated(ThreadExecutor):
    """Starts no work while its gate is closed."""

    def __init__(self) -> None:
        super().__init__(4, "gated")
        self.gate = asyncio.Event()
        self.gate.set()
        self.held = 0

    async def run(self, work: Callable[[], T]) -> T:
        if not self.gate.is_set():
            self.held += 1
            await self.gate.wait()
        return await super().run(work)


async def test_a_vote_is_saved_though_the_candidate_hangs_up(tmp_path: Path) -> None:
    cluster = Cluster(tmp_path, [free_port() for _ in range(3)])
    cluster.executor.close()
    cluster.executor = executor = Gated()
    cluster.format(initial=3)
    voter, candidate = cluster.members[1], cluster.keys[2]
    await voter.start()
    driver = voter.node.driver
    executor.gate.clear()
    request = VoteRequest(candidate, 5, 4, 1_000_000, pre_vote=False)
    asking = asyncio.ensure_future(driver.receive(request, 1))
    await cluster.until(lambda: executor.held)
    asking.cancel()
    await asyncio.gather(asking, return_exceptions=True)
    executor.gate.set()
    assert (await driver.receive(request, 1)).granted
    saved = ElectionFile(Files(4), voter.storage.metadata_log).read()
    assert saved is not None
    assert (saved.epoch, saved.voted) == (5, candidate)
    await cluster.close()


async def test_three_elect_one_and_agree(cluster: Cluster) -> None:
    await cluster.commit(value(1), value(2), value(3))
    await cluster.agree([value(1), value(2), value(3)])
    leader = await cluster.until(cluster.leader)
    partition = leader.node.describe().topics[0].partitions[0]
    assert sorted(voter.replica_id for voter in partition.current_voters) == [1, 2, 3]
    assert partition.leader_id == leader.node_id


@pytest.mark.parametrize("kill", [True, False])
async def test_another_leads_when_the_leader_goes(cluster: Cluster, kill: bool) -> None:
    await cluster.commit(value(1))
    first = await cluster.until(cluster.leader)
    epoch = first.node.epoch
    told: list[bool] = []
    first.node.on_leadership(told.append)
    await first.stop(kill=kill)
    assert kill or told == [False]
    await cluster.commit(value(2))
    second = await cluster.until(cluster.leader)
    assert second.node.epoch > epoch
    await first.start()
    await cluster.commit(value(3))
    await cluster.agree([value(1), value(2), value(3)])


async def test_a_minority_commits_nothing(cluster: Cluster) -> None:
    await cluster.commit(value(1))
    leader = await cluster.until(cluster.leader)
    for member in cluster.members.values():
        if member is not leader:
            await member.stop(kill=True)
    end_offset = leader.node.append([value(2)])
    await cluster.until(lambda: not leader.node.is_leader)
    assert leader.node.high_watermark < end_offset
    for member in cluster.members.values():
        if member is not leader:
            await member.start()
    await cluster.commit(value(3))
    final = leader.seen
    await cluster.until(lambda: value(3) in leader.seen)
    assert final[0] == value(1)
    await cluster.agree(list(leader.seen))


async def test_a_follower_offline_for_too_long_takes_a_snapshot(tmp_path: Path) -> None:
    cluster = Cluster(tmp_path, [free_port() for _ in range(3)])
    cluster.format(initial=3)
    small = MetadataLogConfig(segment_bytes=2000, retention=Retention(1000, -1))
    for member in cluster.members.values():
        await member.start(small)
    try:
        await cluster.commit(value(0))
        leader = await cluster.until(cluster.leader)
        away = next(member for member in cluster.members.values() if member is not leader)
        await away.stop(kill=True)
        values = [value(0)]
        for number in range(1, 4):
            batch = [value(100 * number + n, size=60) for n in range(20)]
            leader.node.append(batch)
            values += batch
            await cluster.until(lambda: leader.seen == values)  # noqa: B023 — awaited
            await leader.node.write_snapshot(leader.node.end_offset, list(values))
        assert leader.node._log.start_offset > 0
        await away.start(small)
        await cluster.until(lambda: away.seen == values)
        assert away.node is not None
        assert away.node._log.start_offset > 0
        await cluster.commit(value(7))
        await cluster.agree([*values, value(7)])
    finally:
        await cluster.close()


async def test_followers_write_snapshots_too(tmp_path: Path) -> None:
    cluster = Cluster(tmp_path, [free_port() for _ in range(3)])
    cluster.format(initial=3)
    small = MetadataLogConfig(
        segment_bytes=300, snapshot_after_bytes=600, retention=Retention(400, -1)
    )
    try:
        for member in cluster.members.values():
            await member.start(small)
        leader = await cluster.until(cluster.leader)
        runtimes = {
            number: Runtime(KIND, member.node, SystemClock(), LoopTimers(), member.failures.append)
            for number, member in cluster.members.items()
            if member.node is not None
        }
        active = runtimes[leader.node_id]
        await active.load()
        for amount in range(20):
            await active.submit(Add(amount, 2))
        follower = next(member for member in cluster.members.values() if member is not leader)
        await cluster.until(lambda: len(follower.seen) == len(leader.seen))
        assert await runtimes[follower.node_id].snapshot_standby_if_due()
        assert follower.node is not None
        found = [batch async for batch in follower.node.read_all()]
        assert found[0].from_snapshot
        assert active.machine is not None
        expected = [IntCodec().encode(record) for record in active.machine.snapshot()]
        assert list(found[0].records) == expected
    finally:
        await cluster.close()


async def test_a_single_node_grows_into_a_cluster_and_shrinks(tmp_path: Path) -> None:
    cluster = Cluster(tmp_path, [free_port() for _ in range(3)])
    cluster.format(initial=1)
    members = cluster.members
    try:
        await members[1].start()
        await cluster.commit(value(1))
        for number in (2, 3):
            await members[number].start()
            await cluster.until(lambda: value(1) in members[number].seen)  # noqa: B023 — awaited
            member = members[number]
            listener = Listener("CONTROLLER", member.endpoint.host, member.endpoint.port)
            key = cluster.keys[number]
            request = AddRaftVoterRequest(
                cluster.cluster_id, 1000, number, key.directory_id, [listener]
            )
            leader = await cluster.until(cluster.leader)
            assert (await leader.node.serve(request, 1)).error_code == ErrorCode.NONE
            assert (await leader.node.serve(request, 1)).error_code == ErrorCode.DUPLICATE_VOTER
        await cluster.commit(value(2))
        await cluster.agree([value(1), value(2)])
        # The first node leaves, although it leads.
        leader = await cluster.until(cluster.leader)
        key = cluster.keys[leader.node_id]
        gone = RemoveRaftVoterRequest(cluster.cluster_id, key.id, key.directory_id)
        assert (await leader.node.serve(gone, 0)).error_code == ErrorCode.NONE
        other = await cluster.until(
            lambda: (found := cluster.leader()) and found is not leader and found
        )
        assert sorted(key.id for key in other.node.voters.keys) == sorted(
            {1, 2, 3} - {leader.node_id}
        )
        await cluster.commit(value(3))
        await cluster.agree([value(1), value(2), value(3)])
    finally:
        await cluster.close()


async def test_another_cluster_is_refused(cluster: Cluster) -> None:
    leader = await cluster.until(cluster.leader)
    request = RemoveRaftVoterRequest("AAAAAAAAAAAAAAAAAAAAAA", 1, cluster.keys[1].directory_id)
    with pytest.raises(Exception, match="INCONSISTENT_CLUSTER_ID"):
        await leader.node.serve(request, 0)
