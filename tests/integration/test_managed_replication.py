"""Diskless topics on three racks of brokers: placement, zones, and any broker for any partition."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from skylog.kernel.errors import ErrorCode
from skylog.testing.cluster import Cluster
from skylog.wire.messages.create_partitions_request import (
    CreatePartitionsAssignment,
    CreatePartitionsRequest,
    CreatePartitionsTopic,
)
from skylog.wire.messages.create_topics_request import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from skylog.wire.messages.elect_leaders_request import ElectLeadersRequest, TopicPartitions
from tests.integration.broker_client import values
from tests.integration.racks_cluster import (
    CALM,
    ZoneClient,
    ask,
    create,
    described,
    logged,
    metrics,
    metrics_of,
    racks_cluster,
    reassign,
    replicas_of,
    set_for_all,
)
from tests.waiting import until

RACK = {1: "a", 2: "b", 3: "c", 4: "a", 5: "b", 6: "c"}
FACTOR_TEXT = (
    "replication factor is system-managed for diskless topics; "
    "use replicationFactor=-1 or replicationFactor=1"
)
ASSIGNMENT_TEXT = (
    "replica assignments cannot be specified for diskless topics; "
    "placement is system-managed at creation time"
)


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with racks_cluster(settings=CALM) as running:
        yield running


def racks(replicas: list[int]) -> list[str]:
    return sorted(RACK[replica] for replica in replicas)


# Creation ---------------------------------------------------------------------------------------


def test_a_topic_has_a_replica_in_each_rack(cluster: Cluster) -> None:
    # MRF-01, MRF-06, MRF-07, MRF-17, MRF-72 partly, ENG-28
    assert create(cluster, "placed", 30).replication_factor == 3
    for partition in described(cluster, "placed"):
        assert racks(partition.replica_nodes) == ["a", "b", "c"]
        assert partition.isr_nodes == partition.replica_nodes
        assert partition.leader_id == partition.replica_nodes[0]


@pytest.mark.parametrize("factor", [-1, 1])
def test_tools_may_request_one_replica(cluster: Cluster, factor: int) -> None:
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap, "log_level": 0})
    name = f"asked{factor}"  # MRF-12
    topic = NewTopic(name, 1, factor, config={"diskless.enable": "true"})
    admin.create_topics([topic])[name].result()
    until(lambda: cluster.brokers[0].node.has_topic(name), "it is known where it is asked for")
    assert len(replicas_of(cluster, name)[0]) == 3


@pytest.mark.parametrize("factor", [0, 2, 3, -2])
def test_another_factor_is_refused(cluster: Cluster, factor: int) -> None:
    answer = create(cluster, "refused", 1, factor)  # MRF-15
    assert (answer.error_code, answer.error_message) == (ErrorCode.INVALID_REQUEST, FACTOR_TEXT)
    assert not cluster.brokers[0].node.has_topic("refused")


def test_assignments_are_refused(cluster: Cluster) -> None:
    config = [CreatableTopicConfig("diskless.enable", "true")]
    wanted = CreatableTopic("refused", -1, -1, [CreatableReplicaAssignment(0, [1, 2, 3])], config)
    answer = ask(cluster, CreateTopicsRequest(topics=[wanted])).topics[0]
    assert (answer.error_code, answer.error_message) == (ErrorCode.INVALID_REQUEST, ASSIGNMENT_TEXT)
    create(cluster, "grown", 2)
    by_hand = CreatePartitionsTopic("grown", 3, [CreatePartitionsAssignment([1, 2, 3])])
    result = ask(cluster, CreatePartitionsRequest([by_hand])).results[0]
    assert (result.error_code, result.error_message) == (ErrorCode.INVALID_REQUEST, ASSIGNMENT_TEXT)
    before = replicas_of(cluster, "grown")
    assert len(before) == 2
    result = ask(
        cluster, CreatePartitionsRequest([CreatePartitionsTopic("grown", 10, None)])
    ).results[0]
    assert result.error_code == 0
    after = replicas_of(cluster, "grown")
    assert after[:2] == before
    assert all(racks(replicas) == ["a", "b", "c"] for replicas in after)


# Any broker -------------------------------------------------------------------------------------


def test_every_broker_takes_and_serves_every_partition(cluster: Cluster) -> None:
    # MRF-03, MRF-25, MRF-49, MRF-74 partly
    create(cluster, "everywhere")
    (partition,) = described(cluster, "everywhere")
    assert set(partition.replica_nodes) < set(RACK)
    sent = []
    for broker in cluster.brokers:
        with ZoneClient(broker.bootstrap) as client:
            answer = client.produce("everywhere", f"by {broker.node_id}".encode())
            assert (answer.error_code, answer.base_offset) == (0, len(sent))
            sent.append(f"by {broker.node_id}".encode())
    for broker in cluster.brokers:
        with ZoneClient(broker.bootstrap) as client:
            answer = client.fetch("everywhere")
            assert (answer.error_code, values(answer.records)) == (0, sent)
            assert client.offset("everywhere", -1).offset == len(sent)


def test_brokers_keep_no_local_state(cluster: Cluster) -> None:
    # MRF-48, MRF-50, MRF-51, MRF-53: no log, no fetcher, nothing sent, no report of the ISR.
    create(cluster, "nothing", 6)
    with ZoneClient(cluster.brokers[0].bootstrap) as client:
        for index in range(6):
            assert client.produce("nothing", b"x", index=index).error_code == 0
    for broker in cluster.brokers:
        kept = [path.name for path in Path(broker.directory).rglob("nothing-*")]
        assert kept == []
        services = broker.node._services
        assert all(services.replicas.get("nothing", index) is None for index in range(6))
        totals = services.traffic.topics.get("nothing")
        if totals is not None:
            assert (totals.replication_bytes_in, totals.replication_bytes_out) == (0, 0)
        for index in range(6):  # its ISR was never changed
            assert services.image.partition("nothing", index).partition_epoch == 0


# Zones ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("zone", ["a", "b", "c"])
def test_a_client_sees_the_replica_in_its_zone(cluster: Cluster, zone: str) -> None:
    name = f"zone-{zone}"  # MRF-55
    create(cluster, name)
    (real,) = described(cluster, name)
    local = next(one for one in real.replica_nodes if RACK[one] == zone)
    for broker in cluster.brokers:
        with ZoneClient(broker.bootstrap, f"app,diskless_az={zone}") as client:
            seen = client.seen(name)
        assert (seen.leader_id, seen.replica_nodes, seen.isr_nodes) == (local, [local], [local])
        assert seen.leader_epoch == real.leader_epoch


@pytest.mark.parametrize("client_id", ["app", "diskless_az=z"])
def test_a_client_without_a_zone_sees_everything(cluster: Cluster, client_id: str) -> None:
    create(cluster, "whole")  # MRF-56
    (real,) = described(cluster, "whole")
    with ZoneClient(cluster.brokers[3].bootstrap, client_id) as client:
        seen = client.seen("whole")
    assert (seen.leader_id, seen.replica_nodes) == (real.leader_id, real.replica_nodes)
    assert seen.preferred_produce_brokers == []


def test_the_leader_does_not_matter_to_a_client_with_a_zone(cluster: Cluster) -> None:
    create(cluster, "led")  # MRF-24
    (real,) = described(cluster, "led")
    turned = real.replica_nodes[1:] + real.replica_nodes[:1]
    local = next(one for one in real.replica_nodes if RACK[one] == "a")
    with ZoneClient(cluster.brokers[1].bootstrap, "diskless_az=a") as client:
        assert client.seen("led").leader_id == local
        assert reassign(cluster, "led", turned).error_code == 0
        elect = ElectLeadersRequest(0, [TopicPartitions("led", [0])])
        ask(cluster, elect)
        (real,) = described(cluster, "led")
        assert real.leader_id == turned[0]
        until(lambda: client.seen("led").leader_epoch == real.leader_epoch, "metadata spreads")
        assert client.seen("led").leader_id == local


def test_a_real_client_talks_to_its_zone(cluster: Cluster) -> None:
    # MRF-73 partly, ENG-29 partly: a producer's requests arrive at brokers of its zone only.
    create(cluster, "spoken", 6)
    before = {broker.node_id: produced(broker) for broker in cluster.brokers}
    settings = {"bootstrap.servers": cluster.bootstrap, "client.id": "app,diskless_az=b"}
    producer = Producer({**settings, "log_level": 0, "linger.ms": 0})
    failures: list[object] = []
    for number in range(60):
        producer.produce(
            "spoken", b"x", partition=number % 6, callback=lambda error, _: failures.append(error)
        )
    producer.flush(60)
    assert failures == [None] * 60
    took = {n: produced(b) - before[n] for n, b in ((b.node_id, b) for b in cluster.brokers)}
    assert {node_id for node_id, count in took.items() if count} == {2, 5}


def produced(broker: object) -> float:
    return metrics_of(broker).get('skylog_requests_total{api="PRODUCE"}', 0)


def test_a_consumer_is_sent_to_its_rack(cluster: Cluster) -> None:
    create(cluster, "racked")
    (real,) = described(cluster, "racked")
    with ZoneClient(cluster.broker(real.leader_id).bootstrap) as client:
        client.produce("racked", b"x")
        for rack in "abc":
            near = next(one for one in real.replica_nodes if RACK[one] == rack)
            answer = client.fetch("racked", rack_id=rack)
            if RACK[real.leader_id] == rack:
                assert values(answer.records) == [b"x"]
                continue
            assert (answer.preferred_read_replica, answer.records) == (near, b"")
            with ZoneClient(cluster.broker(near).bootstrap) as other:
                assert values(other.fetch("racked", rack_id=rack).records) == [b"x"]
        assert values(client.fetch("racked", rack_id="elsewhere").records) == [b"x"]


def test_producers_learn_their_gateways(cluster: Cluster) -> None:
    create(cluster, "gated", 3)
    metadata = described(cluster, "__diskless_metadata")
    for zone in "abc":
        with ZoneClient(cluster.brokers[0].bootstrap, f"diskless_az={zone}") as client:
            for index in range(3):
                gateways = client.seen("gated", index).preferred_produce_brokers
                assert gateways, "no gateway"
                assert {RACK[broker] for broker in gateways} == {zone}
    assert len(metadata) == 3


def test_a_listener_says_where_its_clients_are() -> None:
    settings = {**CALM, "diskless.client.az.listener.map": "PLAINTEXT=b"}
    with racks_cluster(3, settings=settings) as cluster:
        create(cluster, "mapped")
        with ZoneClient(cluster.brokers[0].bootstrap, "app") as client:
            assert client.seen("mapped").replica_nodes == [2]
        with ZoneClient(cluster.brokers[0].bootstrap, "diskless_az=c") as client:
            assert client.seen("mapped").replica_nodes == [3]
        # DC-56: the gateways are those of the zone; one that stops is no longer listed.
        with ZoneClient(cluster.brokers[0].bootstrap, "diskless_az=c") as client:
            assert client.seen("mapped").preferred_produce_brokers == [3]
            cluster.broker(3).stop()
            until(lambda: 3 not in client.seen("mapped").preferred_produce_brokers, "it is gone")
            assert client.seen("mapped").preferred_produce_brokers


# Operators --------------------------------------------------------------------------------------


def test_a_reassignment_is_instant_and_warned_of(cluster: Cluster) -> None:
    # MRF-30, MRF-58, MRF-60, MRF-61
    create(cluster, "moved")
    name = 'kafka_controller_diskless_rack_aware{partition="0",topic="moved"}'
    assert metrics(cluster)[name] == 1
    with logged() as lines:
        assert reassign(cluster, "moved", [1, 4, 3]).error_code == 0
        (real,) = described(cluster, "moved")
        assert (real.replica_nodes, real.isr_nodes) == ([1, 4, 3], [1, 4, 3])
        until(lambda: "non-rack-aware" in lines(), "the warning")
    assert (
        "[Controller] Diskless topic 'moved' partition 0 has non-rack-aware placement: "
        "replicas [1,4,3] map to racks [a,a,c]. Expected one replica per rack."
    ) in lines()
    shown = metrics(cluster)
    assert shown[name] == 0
    assert shown['kafka_controller_diskless_effective_rf{topic="moved"}'] == 3
    prefix = "kafka_controller_diskless"
    assert shown[prefix + '_rack_aware_partitions_total{topic="moved"}'] == 0
    assert shown[prefix + '_non_rack_aware_partitions_total{topic="moved"}'] == 1


def test_a_single_replica_is_counted_and_warned_of(cluster: Cluster) -> None:
    # MRF-47, MRF-62
    create(cluster, "single")
    before = metrics(cluster)["kafka_controller_diskless_rf1_topics_total"]
    with logged() as lines:
        assert reassign(cluster, "single", [2]).error_code == 0
        warning = "Diskless topic 'single' has RF=1; consider expanding to rack-aware placement"
        until(lambda: warning in lines(), "the warning")
    assert metrics(cluster)["kafka_controller_diskless_rf1_topics_total"] == before + 1
    assert reassign(cluster, "single", [2, 1, 3]).error_code == 0
    assert metrics(cluster)["kafka_controller_diskless_rf1_topics_total"] == before


def test_pacing_can_be_changed_while_the_cluster_runs(cluster: Cluster) -> None:
    set_for_all(cluster, diskless_reassignment_batch_size="7")
    active = cluster.active_controller
    assert active is not None
    state = active.node._part.controller.state  # type: ignore[union-attr]
    until(lambda: state.replica_pacing().batch_size == 7, "the controller knows it")  # type: ignore[union-attr]
