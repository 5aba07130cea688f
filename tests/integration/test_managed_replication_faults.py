"""Failures of brokers, racks and controllers: diskless partitions stay available and are
repaired."""

from __future__ import annotations

from collections.abc import Callable

from skylog.testing.cluster import Cluster
from skylog.wire.messages.create_partitions_request import (
    CreatePartitionsRequest,
    CreatePartitionsTopic,
)
from skylog.wire.messages.create_topics_request import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreateTopicsRequest,
)
from skylog.wire.messages.unregister_broker_request import UnregisterBrokerRequest
from tests.integration.diskless_support import Load, end_offsets, read_all
from tests.integration.racks_cluster import (
    ZoneClient,
    ask,
    create,
    described,
    living,
    logged,
    metrics,
    metrics_of,
    racks_cluster,
    reassign,
    replicas_of,
    set_for_all,
)
from tests.waiting import until

PREFIX = "kafka_controller_diskless"


def loaded(cluster: Cluster, topic: str, partitions: int, work: Callable[[Load], None]) -> None:
    """Do ``work`` under load; everything acknowledged must be there afterwards."""
    with Load(cluster.bootstrap, topic, partitions, per_second=400) as load:
        load.wait_for(100)
        work(load)
        load.wait_for(100)
        history = load.finish()
    assert history.failed == {}
    ends = end_offsets(cluster.bootstrap, topic, partitions)
    history.check(read_all(cluster.bootstrap, topic, ends))


def healthy(cluster: Cluster) -> bool:
    shown = metrics(cluster)
    return (
        shown.get(f"{PREFIX}_offline_replicas_total") == 0
        and shown["kafka_controller_kafkacontroller_offlinepartitionscount"] == 0
    )


def test_replicas_of_a_failed_broker_move_within_its_rack() -> None:
    # MRF-23, MRF-32, MRF-35, MRF-36, MRF-38, MRF-39, MRF-40, MRF-41, MRF-63, MRF-64
    with racks_cluster() as cluster, logged() as lines:
        create(cluster, "foo", 6, unclean_leader_election_enable="true")
        create(cluster, "one")
        assert reassign(cluster, "one", [1]).error_code == 0
        by_hand = CreatableTopic("classic", -1, -1, [CreatableReplicaAssignment(0, [1, 2])])
        assert ask(cluster, CreateTopicsRequest(topics=[by_hand])).topics[0].error_code == 0
        before = replicas_of(cluster, "foo")
        affected = sum(1 in replicas for replicas in before)

        def kill(_: Load) -> None:
            cluster.broker(1).kill()
            until(lambda: replicas_of(cluster, "one") == [[4]], "a single replica moves")
            until(lambda: not any(1 in each for each in replicas_of(cluster, "foo")), "repaired")
            until(lambda: healthy(cluster), "nothing waits")

        loaded(cluster, "foo", 6, kill)
        expected = [[4 if one == 1 else one for one in replicas] for replicas in before]
        assert replicas_of(cluster, "foo") == expected
        for partition in described(cluster, "foo"):
            assert partition.isr_nodes == partition.replica_nodes
        for broker in cluster.brokers[1:]:
            totals = broker.node._services.traffic.topics.get("foo")
            assert totals is None or totals.replication_bytes_in == 0, "nothing is copied"
        assert replicas_of(cluster, "classic") == [[1, 2]]
        assert metrics(cluster)[f"{PREFIX}_replicas_reassigned_total"] == affected + 1
        assert "Detected diskless partition 'one-0' with offline replica (broker 1)" in lines()
        assert "Reassigned diskless partition 'one-0' replica: broker 1 → 4" in lines()
        cluster.broker(1).start()
        until(lambda: healthy(cluster), "it is back")
        assert replicas_of(cluster, "foo") == expected
        assert replicas_of(cluster, "one") == [[4]]


def test_other_racks_replace_a_failed_rack() -> None:
    # MRF-37, MRF-42, MRF-65
    with racks_cluster() as cluster, logged() as lines:
        create(cluster, "foo", 2)
        for dead in (3, 6):
            cluster.broker(dead).kill()
        until(
            lambda: not any({3, 6} & set(each) for each in replicas_of(cluster, "foo")), "repaired"
        )
        after = replicas_of(cluster, "foo")
        assert all(len(set(replicas)) == 3 for replicas in after)
        assert "has non-rack-aware placement" in lines()
        until(lambda: healthy(cluster), "nothing waits")
        for broker in cluster.brokers:
            if broker.running:
                until(
                    lambda node=broker: led_without_all(node) == 0,
                    "nothing is under-replicated",
                )
        for dead in (3, 6):
            cluster.broker(dead).start()
        until(lambda: healthy(cluster), "they are back")
        assert replicas_of(cluster, "foo") == after


def led_without_all(node: object) -> float:
    """Under-replicated diskless partitions of a broker; internal topics wait for their brokers."""
    shown = metrics_of(node)["kafka_server_replicamanager_underreplicatedpartitions"]
    image = node.node._services.image  # type: ignore[attr-defined]
    internal = sum(
        partition.leader == node.node_id and len(partition.isr) < len(partition.replicas)  # type: ignore[attr-defined]
        for topic in tuple(image.topics.by_id.values())
        if topic.name.startswith("__")
        for partition in tuple(topic.partitions.values())
    )
    return shown - internal


def test_a_rolling_restart_disturbs_no_client() -> None:
    # MRF-27, MRF-28, and MRF-73 with the tests beside it
    with racks_cluster(3, settings={"diskless.reassignment.grace.ms": "600000"}) as cluster:
        create(cluster, "foo", 6)
        before = replicas_of(cluster, "foo")

        def restart(load: Load) -> None:
            for broker in cluster.brokers:
                broker.stop()
                load.wait_for(20)
                broker.start()
                until(lambda: healthy(cluster), "it is back")

        loaded(cluster, "foo", 6, restart)
        assert replicas_of(cluster, "foo") == before


def test_a_new_controller_repairs_what_the_old_one_left() -> None:
    # MRF-43, MRF-04: nothing more is moved than has to be.
    with racks_cluster(controllers=3) as cluster:
        create(cluster, "foo", 4)
        first = cluster.active_controller
        assert first is not None
        first.kill()
        cluster.broker(2).kill()
        until(lambda: not any(2 in each for each in replicas_of(cluster, "foo")), "repaired")
        until(lambda: healthy(cluster), "nothing waits")
        after = replicas_of(cluster, "foo")
        first.start()
        for controller in cluster.controllers:
            controller.stop()
            controller.start()
        until(lambda: cluster.active_controller is not None, "somebody leads")
        until(lambda: healthy(cluster), "nothing waits")
        assert replicas_of(cluster, "foo") == after
        assert metrics(cluster)[f"{PREFIX}_replicas_reassigned_total"] == 0


def test_partitions_of_brokers_that_are_not_registered() -> None:
    # MRF-05, MRF-33, MRF-34, MRF-57, and MRF-72 with the tests beside it.
    # First served by any broker, then placed again.
    with racks_cluster() as cluster, logged() as lines:
        create(cluster, "warm")
        reassign(cluster, "warm", [6])
        create(cluster, "foo")
        assert reassign(cluster, "foo", [3]).error_code == 0
        # One move, and then none for a long time.
        cluster.broker(6).kill()
        until(lambda: replicas_of(cluster, "warm") != [[6]], "the first moves")
        set_for_all(cluster, diskless_reassignment_interval_ms="3600000")
        cluster.broker(3).kill()
        until(lambda: described(cluster, "foo")[0].leader_id == -1, "nobody leads it")
        request = UnregisterBrokerRequest(3)
        assert ask(cluster, request).error_code == 0
        assert replicas_of(cluster, "foo") == [[3]]
        with ZoneClient(living(cluster), "diskless_az=b") as client:
            seen = client.seen("foo")
            assert (seen.error_code, seen.replica_nodes) == (0, [seen.leader_id])
            assert seen.leader_id in (2, 5)
            with ZoneClient(cluster.broker(seen.leader_id).bootstrap) as leader:
                assert leader.produce("foo", b"x").error_code == 0
        set_for_all(cluster, diskless_reassignment_interval_ms="10")
        until(lambda: len(replicas_of(cluster, "foo")[0]) == 3, "placed anew")
        (after,) = replicas_of(cluster, "foo")
        assert {replica % 3 for replica in after} == {0, 1, 2}, "one in each rack"
        unknown = "Detected diskless partition 'foo-0' with non-existent broker (broker 3 not"
        assert unknown in lines()
        listed = ",".join(map(str, after))
        assert f"Reassigned diskless partition 'foo-0' to RF=3, replicas=[{listed}]" in lines()
        with ZoneClient(living(cluster), "diskless_az=b") as client:
            until(lambda: client.seen("foo").leader_id in after, "the placement is shown")


def test_a_new_rack_is_used_for_new_partitions() -> None:
    # MRF-11, MRF-19, MRF-31
    with racks_cluster(brokers=3, racks=("a", "b")) as cluster:
        create(cluster, "old", 2)
        before = replicas_of(cluster, "old")
        assert {len(replicas) for replicas in before} == {2}
        cluster.add_broker("d").start()
        create(cluster, "new")
        assert len(replicas_of(cluster, "new")[0]) == 3
        assert replicas_of(cluster, "old") == before
        grown = ask(
            cluster, CreatePartitionsRequest([CreatePartitionsTopic("old", 3, None)])
        ).results[0]
        assert grown.error_code == 0
        assert replicas_of(cluster, "old")[:2] == before
        assert len(replicas_of(cluster, "old")[2]) == 3
        assert reassign(cluster, "old", [*before[0], 4]).error_code == 0
        assert replicas_of(cluster, "old")[0] == [*before[0], 4]
