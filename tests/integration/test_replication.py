"""Classic topics on three brokers: replicas, elections, reassignments, and follower fetching."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from skylog.kernel.errors import ErrorCode
from skylog.testing.cluster import Cluster
from skylog.wire.batch import split_batches
from skylog.wire.messages.create_partitions_request import (
    CreatePartitionsAssignment,
    CreatePartitionsRequest,
    CreatePartitionsTopic,
)
from skylog.wire.messages.delete_records_request import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from skylog.wire.messages.elect_leaders_request import ElectLeadersRequest, TopicPartitions
from skylog.wire.messages.fetch_request import (
    FetchPartition,
    FetchRequest,
    FetchTopic,
    ReplicaState,
)
from skylog.wire.messages.incremental_alter_configs_request import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from skylog.wire.messages.list_partition_reassignments_request import (
    ListPartitionReassignmentsRequest,
)
from skylog.wire.records import decode_records
from tests.integration.racks_cluster import (
    ZoneClient,
    ask,
    described,
    metrics_of,
    reassign,
    set_for_all,
)
from tests.integration.replicated_cluster import (
    CALM,
    QUICK,
    create,
    followers,
    in_sync,
    led,
    produce,
    replica,
    same_bytes,
    send,
    settled,
    stop_fetching,
)
from tests.waiting import until

SELECTOR = "org.apache.kafka.common.replica.RackAwareReplicaSelector"
FETCH_BY_ID = 17
TOPIC = 2
pytestmark = pytest.mark.timeout(300)


def fetch(
    broker: Any,
    topic_id: Any,
    offset: int = 0,
    *,
    rack: str = "",
    replica_state: ReplicaState | None = None,
    **wanted: int,
) -> Any:
    asked = FetchPartition(0, fetch_offset=offset, partition_max_bytes=1 << 20, **wanted)
    request = FetchRequest(
        max_wait_ms=0,
        max_bytes=1 << 20,
        topics=[FetchTopic("", topic_id, [asked])],
        rack_id=rack,
        replica_state=replica_state or ReplicaState(),
    )
    with ZoneClient(broker.bootstrap) as client:
        return client.ask(request, FETCH_BY_ID).responses[0].partitions[0]


def values_of(records: Any) -> list[bytes]:
    return [r.value for b in split_batches(records or b"") for r in decode_records(b) if r.value]


def topic_id(cluster: Cluster, topic: str) -> Any:
    copy = replica(led(cluster, topic), topic)
    assert copy is not None
    return copy.topic_id


def test_every_replica_has_the_same_bytes(tmp_path: Path) -> None:
    """Batches of all sizes, small segments, several partitions, leaders that change."""
    with Cluster(3, 1, settings=CALM, directory=tmp_path) as cluster:
        create(cluster, "t", partitions=3, segment_bytes="1048576")
        for index in range(3):
            produce(cluster, "t", [b"v" * size for size in (1, 100, 70_000)], index=index)
        for broker in cluster.brokers:  # each in turn, with a clean shutdown
            broker.stop()
            for index in range(3):
                produce(cluster, "t", [b"w" * 400_000] * 3, index=index)
            broker.start()
            for index in range(3):
                settled(cluster, "t", index)
    for index in range(3):
        same_bytes(cluster, "t", index)


def test_a_killed_leader_loses_nothing(tmp_path: Path) -> None:
    """The leader is killed three times; acknowledged records are there at the end."""
    settings = {**QUICK, "min.insync.replicas": "2"}
    sent: list[bytes] = []
    with Cluster(3, 1, settings=settings, directory=tmp_path) as cluster:
        create(cluster, "t")
        for turn in range(3):
            sent += (values := [b"%d before %d" % (turn, n) for n in range(20)])
            produce(cluster, "t", values)
            gone = led(cluster, "t")
            gone.kill()
            until(lambda dead=gone: led(cluster, "t") is not dead, "another one leads")
            sent += (values := [b"%d after %d" % (turn, n) for n in range(20)])
            produce(cluster, "t", values)
            gone.start()
            settled(cluster, "t")
        found = fetch(led(cluster, "t"), topic_id(cluster, "t"))
        assert values_of(found.records) == sent
    same_bytes(cluster, "t")


def test_records_only_on_a_dead_leader_are_truncated(tmp_path: Path) -> None:
    with Cluster(3, 1, settings=QUICK, directory=tmp_path) as cluster:
        create(cluster, "t")
        produce(cluster, "t", [b"kept"])
        settled(cluster, "t")
        old = led(cluster, "t")
        others = followers(cluster, "t")
        for other in others:
            stop_fetching(other)
        for number in range(5):
            answer = send(old, "t", [b"lost %d" % number], acks=1)
            assert answer.error_code == 0
        old.kill()
        until(lambda: led(cluster, "t") in others, "a follower leads")
        new = led(cluster, "t")
        (idle,) = (each for each in others if each is not new)
        idle.stop()
        idle.start()
        produce(cluster, "t", [b"instead"])
        old.start()
        settled(cluster, "t")
        for broker in cluster.brokers:
            found = fetch(broker, topic_id(cluster, "t"))
            assert values_of(found.records) == [b"kept", b"instead"]
    same_bytes(cluster, "t")


def test_a_lagging_follower_leaves_the_isr_and_returns() -> None:
    settings = {
        **CALM,
        "replica.lag.time.max.ms": "5000",
        "replica.fetch.wait.max.ms": "200",
        "http.listener": "127.0.0.1:0",
    }
    with Cluster(3, 1, settings=settings) as cluster:
        create(cluster, "t", min_insync_replicas="3")
        produce(cluster, "t", [b"one"])
        leader, slow = led(cluster, "t"), followers(cluster, "t")[0]
        under = "kafka_server_replicamanager_underreplicatedpartitions"
        assert metrics_of(leader)[under] == 0
        stop_fetching(slow)
        assert send(leader, "t", [b"two"], acks=1).error_code == 0
        until(lambda: in_sync(cluster, "t") == {1, 2, 3} - {slow.node_id}, "it leaves")
        refused = send(leader, "t", [b"three"])
        assert refused.error_code == ErrorCode.NOT_ENOUGH_REPLICAS
        assert send(leader, "t", [b"three"], acks=1).error_code == 0
        until(lambda: metrics_of(leader)[under] == 1, "it is counted")
        found = metrics_of(leader)
        assert found["kafka_server_replicamanager_underminisrpartitioncount"] == 1
        assert found["kafka_server_replicamanager_isrshrinks_total"] == 1
        assert found["kafka_server_replicamanager_partitionswithlatetransactionscount"] == 0
        # Records with acks=1 are not visible while too few replicas are in sync.
        assert values_of(fetch(leader, topic_id(cluster, "t")).records) == [b"one"]
        slow.stop()
        slow.start()
        until(lambda: in_sync(cluster, "t") == {1, 2, 3}, "it comes back")
        settled(cluster, "t")
        assert send(leader, "t", [b"four"]).error_code == 0
        values = values_of(fetch(leader, topic_id(cluster, "t")).records)
        assert values == [b"one", b"two", b"three", b"four"]
        assert metrics_of(leader)[under] == 0


def test_consumers_read_from_the_replica_in_their_rack() -> None:
    settings = {**CALM, "replica.selector.class": SELECTOR}
    with Cluster(3, 1, racks=("a", "b", "c"), settings=settings) as cluster:
        create(cluster, "t")
        produce(cluster, "t", [b"one", b"two"])
        settled(cluster, "t")
        leader, near = led(cluster, "t"), followers(cluster, "t")[0]
        racks = dict(zip((1, 2, 3), "abc", strict=True))
        number = topic_id(cluster, "t")
        there = fetch(leader, number, rack=racks[near.node_id])
        assert there.preferred_read_replica == near.node_id
        assert not there.records
        assert there.high_watermark == 2
        here = fetch(near, number, rack=racks[near.node_id])
        assert (values_of(here.records), here.preferred_read_replica) == ([b"one", b"two"], -1)
        for rack in ("", "nowhere", racks[leader.node_id]):
            found = fetch(leader, number, rack=rack)
            assert (len(values_of(found.records)), found.preferred_read_replica) == (2, -1)
        # Beyond what a follower has, the leader serves.
        assert fetch(leader, number, 3, rack=racks[near.node_id]).error_code == (
            ErrorCode.OFFSET_OUT_OF_RANGE
        )


def test_a_partition_moves_to_other_brokers() -> None:
    with Cluster(3, 1, settings=CALM) as cluster:
        create(cluster, "t", factor=1)
        produce(cluster, "t", [b"one", b"two"])
        old = led(cluster, "t")
        target = [n for n in (1, 2, 3) if n != old.node_id]
        assert reassign(cluster, "t", target).error_code == 0
        until(lambda: described(cluster, "t")[0].replica_nodes == target, "it has moved")
        new = led(cluster, "t")
        assert new.node_id in target
        assert values_of(fetch(new, topic_id(cluster, "t")).records) == [b"one", b"two"]
        until(lambda: replica(old, "t") is None, "the old replica is deleted")
        assert not (old.directory / "t-0").exists()
        produce(cluster, "t", [b"three"])
        ongoing = ask(cluster, ListPartitionReassignmentsRequest(topics=None))
        assert ongoing.topics == []


def test_a_throttled_move_waits_and_can_be_cancelled() -> None:
    settings = {**CALM, "replica.fetch.max.bytes": "100000"}
    with Cluster(3, 1, settings=settings) as cluster:
        create(cluster, "t", factor=1)
        produce(cluster, "t", [b"v" * 90_000] * 30)
        old = led(cluster, "t")
        target = [n for n in (1, 2, 3) if n != old.node_id][:1]
        set_for_all(cluster, leader_replication_throttled_rate="1")
        changes = [AlterableConfig("leader.replication.throttled.replicas", 0, "*")]
        request = IncrementalAlterConfigsRequest([AlterConfigsResource(TOPIC, "t", changes)])
        assert ask(cluster, request).responses[0].error_code == 0
        quota = old.node._services.replication.leader_quota
        until(lambda: quota.is_throttled("t", 0), "the throttle is known")
        assert reassign(cluster, "t", target).error_code == 0
        coming = cluster.broker(target[0])

        def some() -> bool:
            copy = replica(coming, "t")
            return copy is not None and copy.log.log_end_offset > 0 and quota.exceeded

        until(some, "the first bytes arrive")
        copy = replica(coming, "t")
        assert copy is not None
        assert copy.log.log_end_offset < 30
        assert described(cluster, "t")[0].isr_nodes == [old.node_id]
        (ongoing,) = ask(cluster, ListPartitionReassignmentsRequest(topics=None)).topics
        assert ongoing.partitions[0].adding_replicas == target
        # Cancelled, everything is as before.
        cancel: Any = None
        assert reassign(cluster, "t", cancel).error_code == 0
        until(lambda: replica(coming, "t") is None, "the partial replica is deleted")
        assert described(cluster, "t")[0].replica_nodes == [old.node_id]
        # Without the throttle it completes.
        set_for_all(cluster, leader_replication_throttled_rate="1000000000")
        assert reassign(cluster, "t", target).error_code == 0
        until(lambda: described(cluster, "t")[0].replica_nodes == target, "it has moved")


def test_the_preferred_leader_leads_again() -> None:
    with Cluster(3, 1, settings={**QUICK, "auto.leader.rebalance.enable": "false"}) as cluster:
        create(cluster, "t")
        first = led(cluster, "t")
        assert described(cluster, "t")[0].replica_nodes[0] == first.node_id
        first.stop()
        until(lambda: led(cluster, "t") is not first, "another one leads")
        produce(cluster, "t", [b"one"])
        first.start()
        settled(cluster, "t")
        assert led(cluster, "t") is not first
        wanted = ElectLeadersRequest(0, [TopicPartitions("t", [0])], 30_000)
        assert ask(cluster, wanted).error_code == 0
        until(lambda: led(cluster, "t") is first, "it leads again")
        produce(cluster, "t", [b"two"])
        settled(cluster, "t")


def test_an_unclean_election_happens_only_where_it_is_allowed() -> None:
    with Cluster(3, 1, settings={**QUICK, "replica.lag.time.max.ms": "1500"}) as cluster:
        create(cluster, "t", factor=2)
        produce(cluster, "t", [b"one"])
        leader, (behind,) = led(cluster, "t"), followers(cluster, "t")
        settled(cluster, "t")
        behind.stop()
        until(lambda: in_sync(cluster, "t") == {leader.node_id}, "it is alone")
        assert send(leader, "t", [b"only here"]).error_code == 0
        leader.kill()
        until(lambda: described(cluster, "t")[0].leader_id == -1, "nobody leads")
        behind.start()
        # The restarted broker lacks records: it must not lead.
        until(lambda: replica(behind, "t") is not None, "it is back")
        assert described(cluster, "t")[0].leader_id == -1
        unclean = ElectLeadersRequest(1, [TopicPartitions("t", [0])], 30_000)
        assert ask(cluster, unclean).error_code == 0
        until(lambda: led(cluster, "t") is behind, "it leads all the same")
        produce(cluster, "t", [b"instead"])
        leader.start()
        settled(cluster, "t")
        for broker in (leader, behind):
            found = fetch(broker, topic_id(cluster, "t"))
            assert values_of(found.records) == [b"one", b"instead"]


def test_records_are_deleted_on_all_replicas() -> None:
    with Cluster(3, 1, settings=CALM) as cluster:
        create(cluster, "t")
        produce(cluster, "t", [b"one", b"two", b"three"])
        settled(cluster, "t")
        wanted = DeleteRecordsTopic("t", [DeleteRecordsPartition(0, 2)])
        with ZoneClient(led(cluster, "t").bootstrap) as client:
            answer = client.ask(DeleteRecordsRequest([wanted], 60_000)).topics[0].partitions[0]
        assert (answer.error_code, answer.low_watermark) == (0, 2)
        for broker in cluster.brokers:
            copy = replica(broker, "t")
            assert copy is not None
            assert copy.log.log_start_offset == 2


def test_followers_that_may_not_fetch() -> None:
    with Cluster(3, 1, settings=CALM) as cluster:
        create(cluster, "t", factor=2)
        produce(cluster, "t", [b"one"])
        settled(cluster, "t")
        leader, (follower,) = led(cluster, "t"), followers(cluster, "t")
        number, own = topic_id(cluster, "t"), follower.node_id
        copy = replica(leader, "t")
        assert copy is not None
        (stranger,) = {1, 2, 3} - {leader.node_id, own}
        epoch = copy.leader_epoch

        def refusal(state: ReplicaState, at: Any = leader, leader_epoch: int = epoch) -> int:
            found = fetch(at, number, replica_state=state, current_leader_epoch=leader_epoch)
            return int(found.error_code)

        assert refusal(ReplicaState(stranger, 99)) == ErrorCode.UNKNOWN_LEADER_EPOCH
        assert refusal(ReplicaState(own, 0)) == ErrorCode.NOT_LEADER_OR_FOLLOWER  # of the past
        good = follower.node._lifecycle.broker_epoch
        assert refusal(ReplicaState(own, good), leader_epoch=epoch + 1) == (
            ErrorCode.UNKNOWN_LEADER_EPOCH
        )
        assert refusal(ReplicaState(own, good), follower) == ErrorCode.NOT_LEADER_OR_FOLLOWER
        assert refusal(ReplicaState(own, good)) == 0


def test_a_fetch_before_the_first_record_counts_for_the_isr() -> None:
    """Otherwise an idle partition would lose the follower from the ISR for good."""
    with Cluster(2, 1, settings=CALM) as cluster:
        create(cluster, "t", factor=2)
        leader, (follower,) = led(cluster, "t"), followers(cluster, "t")
        stop_fetching(follower)
        own, epoch = follower.node_id, follower.node._lifecycle.broker_epoch
        parts = [FetchPartition(n, 0, 0, partition_max_bytes=1 << 20) for n in (0, 1)]
        request = FetchRequest(
            max_wait_ms=60_000,
            min_bytes=1,
            session_epoch=0,
            topics=[FetchTopic("", topic_id(cluster, "t"), parts)],
            replica_state=ReplicaState(own, epoch),
        )
        sessions = leader.node._services.fetch_sessions
        before = len(sessions)
        with ZoneClient(leader.bootstrap) as client, ThreadPoolExecutor() as threads:
            asking = threads.submit(client.ask, request, FETCH_BY_ID)
            until(lambda: len(sessions) > before, "it is waiting")
            assignment = [CreatePartitionsAssignment([leader.node_id, own])]
            wanted = [CreatePartitionsTopic("t", 2, assignment)]
            answer = ask(cluster, CreatePartitionsRequest(wanted, 30_000)).results[0]
            assert answer.error_code == 0, answer
            copy = replica(led(cluster, "t", 1), "t", 1)
            assert send(leader, "t", [b"awake"], acks=1).error_code == 0
            found = asking.result(60).responses[0].partitions
        assert {each.partition_index: each.error_code for each in found} == {0: 0, 1: 0}
        assert copy is not None
        assert copy.leader is not None
        assert copy.leader.followers[own].end_offset == 0


def test_a_partition_that_moved_while_its_broker_was_offline_is_set_aside() -> None:
    with Cluster(3, 1, settings=QUICK) as cluster:
        create(cluster, "t", factor=2)
        produce(cluster, "t", [b"one"])
        settled(cluster, "t")
        away = followers(cluster, "t")[0]
        (other,) = {1, 2, 3} - set(described(cluster, "t")[0].replica_nodes)
        away.stop()
        target = [led(cluster, "t").node_id, other]
        assert reassign(cluster, "t", target).error_code == 0
        until(lambda: described(cluster, "t")[0].replica_nodes == target, "it has moved")
        away.start()
        assert replica(away, "t") is None
        kept = [path.name for path in away.directory.iterdir() if path.name.endswith("-stray")]
        assert len(kept) == 1
        produce(cluster, "t", [b"two"])
        settled(cluster, "t")
