"""Brokers and controllers as separate nodes: forwarding, registration, fencing."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.request import urlopen

import pytest

from skylog.kernel.clock import SystemClock
from skylog.kernel.errors import ErrorCode, StorageError
from skylog.kernel.rng import system_random
from skylog.quorum.bootstrap import bootstrap_records
from skylog.quorum.storage import FormatPlan, format_directory, new_cluster_id
from skylog.quorum.voters import Endpoint
from skylog.testing import Cluster
from skylog.testing.threads import NodeThread
from skylog.wire.messages.alter_client_quotas_request import (
    AlterClientQuotasRequest,
    EntityData,
    EntryData,
    OpData,
)
from skylog.wire.messages.broker_heartbeat_request import BrokerHeartbeatRequest
from skylog.wire.messages.create_topics_request import CreatableTopic, CreateTopicsRequest
from skylog.wire.messages.delete_topics_request import DeleteTopicsRequest, DeleteTopicState
from skylog.wire.messages.describe_client_quotas_request import (
    ComponentData,
    DescribeClientQuotasRequest,
)
from skylog.wire.messages.describe_configs_request import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
)
from skylog.wire.messages.find_coordinator_request import FindCoordinatorRequest
from skylog.wire.messages.incremental_alter_configs_request import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from skylog.wire.messages.init_producer_id_request import InitProducerIdRequest
from skylog.wire.messages.metadata_request import MetadataRequest, MetadataRequestTopic
from skylog.wire.messages.unregister_broker_request import UnregisterBrokerRequest
from tests.integration.cluster_support import (
    alive,
    ask,
    create,
    created,
    describe_quorum,
    epoch,
    leaders,
    registered,
)
from tests.waiting import until

TOPIC = 2
# No node is killed here: a busy machine must not end a session or move a leader.
CALM = {"broker.session.timeout.ms": "60000", "controller.quorum.fetch.timeout.ms": "60000"}


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with Cluster(brokers=3, controllers=3, racks=("a", "b", "c"), settings=CALM) as running:
        yield running


# Any broker forwards to the controller


def test_a_change_through_a_broker_is_visible_there_at_once(cluster: Cluster) -> None:
    for broker in cluster.brokers:
        name = f"through-{broker.node_id}"
        assert create(broker, name)[0] == 0
        assert len(leaders(broker, name)) == 3
        change = AlterableConfig("retention.ms", 0, "12345")
        altered = ask(
            broker,
            IncrementalAlterConfigsRequest([AlterConfigsResource(TOPIC, name, [change])]),
        )
        assert altered.responses[0].error_code == 0
        asked = DescribeConfigsResource(TOPIC, name, ["retention.ms"])
        shown = ask(broker, DescribeConfigsRequest([asked]))
        assert shown.results[0].configs[0].value == "12345"
        deleted = ask(broker, DeleteTopicsRequest([DeleteTopicState(name)], timeout_ms=30_000))
        assert deleted.responses[0].error_code == 0
        assert leaders(broker, name) == []


def test_quotas_are_set_anywhere_and_read_everywhere(cluster: Cluster) -> None:
    first, *others = cluster.brokers
    entity = [EntityData("user", "somebody")]
    entry = EntryData(entity, [OpData("producer_byte_rate", 1000.0)])
    assert ask(first, AlterClientQuotasRequest([entry])).entries[0].error_code == 0
    asked = DescribeClientQuotasRequest([ComponentData("user", 0, "somebody")], strict=True)
    assert ask(first, asked).entries[0].values[0].value == 1000.0
    for broker in others:
        found = until(lambda b=broker: ask(b, asked).entries)
        assert found[0].values[0].value == 1000.0


def test_errors_of_the_controller_reach_the_client(cluster: Cluster) -> None:
    for broker in cluster.brokers:
        code, message = create(broker, "wide", replicas=5)
        assert code == ErrorCode.INVALID_REPLICATION_FACTOR
        assert message is not None
        assert "5" in message
    # An older version of the request is answered in that version.
    topic = CreatableTopic("wide", 1, 5)
    answer = ask(cluster.brokers[0], CreateTopicsRequest([topic], 1000), version=2)
    assert answer.topics[0].error_code == ErrorCode.INVALID_REPLICATION_FACTOR


def test_any_broker_describes_the_quorum(cluster: Cluster) -> None:
    active = until(lambda: cluster.active_controller)
    for broker in cluster.brokers:
        found = describe_quorum(broker)
        assert found.leader_id == active.node_id
        assert {each.replica_id for each in found.current_voters} == {101, 102, 103}
        until(
            lambda b=broker: {each.replica_id for each in describe_quorum(b).observers} == {1, 2, 3}
        )


def test_a_controller_that_does_not_lead_says_so(cluster: Cluster) -> None:
    active = until(lambda: cluster.active_controller)
    for controller in cluster.controllers:
        found = describe_quorum(controller)
        code = ErrorCode.NONE if controller is active else ErrorCode.NOT_LEADER_OR_FOLLOWER
        assert found.error_code == code
        if controller is not active:
            assert create(controller, "nowhere")[0] == ErrorCode.NOT_CONTROLLER


def test_controllers_register(cluster: Cluster) -> None:
    image = cluster.brokers[0].node.image
    until(lambda: set(image.brokers.controllers) == {101, 102, 103})
    for controller in cluster.controllers:
        known = image.brokers.controllers[controller.node_id]
        where = known.endpoints[0]
        assert f"{where.host}:{where.port}" == controller.bootstrap


def test_an_auto_created_topic_is_in_the_same_response(cluster: Cluster) -> None:
    for broker in cluster.brokers:
        name = f"demanded-{broker.node_id}"
        wanted = MetadataRequest(topics=[MetadataRequestTopic(name=name)])
        found = ask(broker, wanted).topics[0]
        assert (found.error_code, len(found.partitions)) == (0, 1)


def test_producer_ids_of_all_brokers_differ(cluster: Cluster) -> None:
    given = [
        ask(broker, InitProducerIdRequest(transactional_id=None)).producer_id
        for broker in cluster.brokers
        for _ in range(3)
    ]
    assert len(set(given)) == 9


def test_every_broker_names_the_same_coordinator(cluster: Cluster) -> None:
    request = FindCoordinatorRequest(coordinator_keys=["group"])

    def found() -> set[tuple[int, int]]:
        told = [ask(broker, request).coordinators[0] for broker in cluster.brokers]
        return {(each.error_code, each.node_id) for each in told}

    until(lambda: len(found()) == 1 and next(iter(found()))[0] == 0)


# Registration


def broker_thread(cluster: Cluster, directory: Path, cluster_id: str, node_id: int) -> NodeThread:
    """A broker that was formatted with the given cluster id and node id."""
    rng, now_ms = system_random(), SystemClock().now_ms()
    nowhere = Endpoint("CONTROLLER", "127.0.0.1", 0)
    plan = FormatPlan(node_id, cluster_id, nowhere, bootstrap_records(), joins=True)
    format_directory([directory], plan, rng, now_ms)
    return NodeThread(
        [
            "process.roles=broker",
            f"node.id={node_id}",
            "listeners=PLAINTEXT://127.0.0.1:0",
            f"controller.quorum.bootstrap.servers={cluster.controller_servers}",
            f"log.dirs={directory}",
            "http.listener=",
            "initial.broker.registration.timeout.ms=3000",
        ]
    )


def test_a_broker_of_another_cluster_is_refused(cluster: Cluster, tmp_path: Path) -> None:
    other = new_cluster_id(system_random())
    stranger = broker_thread(cluster, tmp_path / "stranger", other, 9)
    with pytest.raises(StorageError, match="INCONSISTENT_CLUSTER_ID") as refused:
        stranger.start()
    assert other in str(refused.value)
    assert registered(cluster.brokers[0]).keys() == {1, 2, 3}


def test_a_node_id_that_is_taken_is_refused(cluster: Cluster, tmp_path: Path) -> None:
    before = epoch(cluster, 2)
    double = broker_thread(cluster, tmp_path / "double", cluster.cluster_id, 2)
    with pytest.raises(StorageError, match="DUPLICATE_BROKER_REGISTRATION"):
        double.start()
    assert epoch(cluster, 2) == before
    assert alive(cluster.brokers[1]) == {1, 2, 3}


def test_a_heartbeat_of_an_earlier_life_is_refused(cluster: Cluster) -> None:
    active = until(lambda: cluster.active_controller)
    stale = BrokerHeartbeatRequest(1, epoch(cluster, 1) - 1, 0, False, False)
    assert ask(active, stale).error_code == ErrorCode.STALE_BROKER_EPOCH
    unknown = BrokerHeartbeatRequest(77, 1, 0, False, False)
    assert ask(active, unknown).error_code == ErrorCode.STALE_BROKER_EPOCH


# Failures and restarts


@pytest.mark.parametrize(
    ("controllers", "static"), [(3, False), (3, True), (0, False)], ids=["3", "static", "combined"]
)
def test_the_cluster_outlives_its_active_controller(controllers: int, static: bool) -> None:
    # A killed controller that is a broker too comes back only when its session is over.
    calm = {"broker.session.timeout.ms": "15000" if controllers else "5000"}
    with Cluster(3, controllers, settings=calm, static_voters=static) as cluster:
        created(cluster.brokers[0], "before")
        active = until(lambda: cluster.active_controller)
        epochs = {node_id: epoch(cluster, node_id) for node_id in (1, 2, 3)}
        active.kill()
        others = [each for each in cluster.brokers if each.running]
        for broker in others:  # waits for the next controller
            created(broker, f"after-{broker.node_id}")
            until(lambda b=broker: leaders(b, "before"))
        following = until(lambda: cluster.active_controller)
        assert following.node_id != active.node_id
        active.start()
        until(lambda: alive(others[0]) == {1, 2, 3})
        for broker in others:  # no broker was fenced because the controller failed
            assert epoch(cluster, broker.node_id) == epochs[broker.node_id]
        created(cluster.brokers[-1], "again")


def test_a_killed_broker_is_fenced_and_comes_back_with_a_new_epoch() -> None:
    with Cluster(brokers=3, controllers=1) as cluster:
        first, second, _ = cluster.brokers
        created(first, "t", partitions=6, replicas=3)
        before = epoch(cluster, 2)
        second.kill()
        until(lambda: registered(first).get(2) is True)
        until(lambda: 2 not in leaders(first, "t"))
        until(lambda: alive(first) == {1, 3})
        second.start()
        until(lambda: 2 in alive(second))
        until(lambda: epoch(cluster, 2) > before)
        until(lambda: alive(first) == {1, 2, 3})
        until(lambda: len(leaders(second, "t")) == 6)


def test_a_broker_that_hangs_loses_its_session_and_gets_it_back() -> None:
    with Cluster(brokers=2, controllers=1) as cluster:
        first, second = cluster.brokers
        before = epoch(cluster, 2)

        async def hang() -> None:
            end = time.monotonic() + 60
            while registered(first)[2] is False and time.monotonic() < end:
                time.sleep(0.05)  # noqa: ASYNC251 - nothing else may happen on its loop

        second.run(hang())
        until(lambda: registered(first)[2] is False)
        assert epoch(cluster, 2) == before
        until(lambda: alive(second) == {1, 2})


def test_a_broker_that_is_stopped_hands_over_first() -> None:
    with Cluster(brokers=3, controllers=1, settings=CALM) as cluster:
        first, second, _ = cluster.brokers
        assert create(first, "t", partitions=6, replicas=3)[0] == 0
        assert 2 in leaders(first, "t")
        until(lambda: second.node.health()["status"] == "ok")
        second.stop()
        # No session had to expire for this: otherwise the test would take a minute.
        until(lambda: registered(first)[2] is True and 2 not in leaders(first, "t"))
        assert -1 not in leaders(first, "t")
        before = epoch(cluster, 2)
        second.start()
        until(lambda: epoch(cluster, 2) > before)


def test_a_broker_can_be_unregistered_for_good() -> None:
    with Cluster(brokers=2, controllers=1, settings=CALM) as cluster:
        first, second = cluster.brokers
        second.stop()
        assert ask(first, UnregisterBrokerRequest(2)).error_code == 0
        assert registered(first).keys() == {1}
        missing = ask(first, UnregisterBrokerRequest(2))
        assert missing.error_code == ErrorCode.BROKER_ID_NOT_REGISTERED
        second.start()
        until(lambda: alive(first) == {1, 2})


def test_brokers_catch_up_by_snapshot() -> None:
    """A broker that was offline while the log was pruned gets a snapshot, and so does a new one."""
    small = {
        **CALM,
        "metadata.log.max.record.bytes.between.snapshots": "2000",
        "metadata.log.segment.bytes": str(8 * 1024 * 1024),
        "metadata.max.retention.bytes": "1",
        "metadata.max.retention.ms": "1",
    }
    with Cluster(brokers=2, controllers=1, settings=small) as cluster:
        first, second = cluster.brokers
        for number in range(4):
            assert create(first, f"early-{number}", partitions=10)[0] == 0
        until(lambda: leaders(second, "early-3"))
        second.stop()
        gone = DeleteTopicsRequest([DeleteTopicState("early-0")], timeout_ms=30_000)
        assert ask(first, gone).responses[0].error_code == 0
        for number in range(6):
            assert create(first, f"late-{number}", partitions=10)[0] == 0
        quorum = cluster.controllers[0].node._part.quorum
        until(lambda: quorum.stored.log_start_offset > 0)
        second.start()
        added = cluster.add_broker()
        added.start()
        for broker in (second, added):
            until(lambda b=broker: leaders(b, "late-5"))
            assert leaders(broker, "early-0") == []
            told = list(broker.node.image.snapshot())
            until(lambda t=told: t == list(first.node.image.snapshot()))
        # A broker keeps its own snapshots too: its log does not grow for ever.
        own = first.directory / "__cluster_metadata-0"
        until(lambda: [*own.glob("*-*.checkpoint")] or None)


def test_controllers_show_their_metrics_and_health() -> None:
    shown = {**CALM, "http.listener": "127.0.0.1:0"}
    with Cluster(brokers=1, controllers=1, settings=shown) as cluster:
        (controller,), (broker,) = cluster.controllers, cluster.brokers
        address = controller.node.http_address
        health = json.loads(urlopen(f"http://{address}/health", timeout=60).read())
        assert (health["status"], health["node_id"], health["leader_id"]) == ("ok", 101, 101)
        page = urlopen(f"http://{address}/metrics", timeout=60).read().decode()
        for line in (
            "skylog_quorum_is_leader 1.0",
            "skylog_quorum_leader_id 101.0",
            "skylog_quorum_voters 1.0",
            'skylog_brokers{state="active"} 1.0',
            'skylog_requests_total{api="BROKER_REGISTRATION"} 1.0',
        ):
            assert line in page
        page = urlopen(f"http://{broker.node.http_address}/metrics", timeout=60).read().decode()
        for line in ("skylog_quorum_is_leader 0.0", "skylog_quorum_leader_id 101.0"):
            assert line in page
