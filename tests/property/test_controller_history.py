"""Whatever requests the controller gets, in any order, the cluster stays consistent."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from skylog.controller.image import ClusterImage
from skylog.controller.machine import ControllerMachine
from skylog.controller.requests import ElectPreferredLeaders, ElectUncleanLeaders, Loaded
from skylog.controller.shell import MetadataCodec
from skylog.kernel.errors import KafkaError
from skylog.replicated.digest import state_digest
from skylog.wire.messages.allocate_producer_ids_request import AllocateProducerIdsRequest
from skylog.wire.messages.alter_client_quotas_request import (
    AlterClientQuotasRequest,
    EntityData,
    EntryData,
    OpData,
)
from skylog.wire.messages.alter_partition_reassignments_request import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from skylog.wire.messages.alter_partition_request import (
    AlterPartitionRequest,
    BrokerState,
    PartitionData,
    TopicData,
)
from skylog.wire.messages.alter_user_scram_credentials_request import (
    AlterUserScramCredentialsRequest,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
)
from skylog.wire.messages.broker_heartbeat_request import BrokerHeartbeatRequest
from skylog.wire.messages.create_acls_request import AclCreation, CreateAclsRequest
from skylog.wire.messages.create_partitions_request import (
    CreatePartitionsRequest,
    CreatePartitionsTopic,
)
from skylog.wire.messages.create_topics_request import CreateTopicsRequest
from skylog.wire.messages.delete_acls_request import DeleteAclsFilter, DeleteAclsRequest
from skylog.wire.messages.delete_topics_request import DeleteTopicsRequest
from skylog.wire.messages.elect_leaders_request import ElectLeadersRequest
from skylog.wire.messages.incremental_alter_configs_request import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from skylog.wire.messages.unregister_broker_request import UnregisterBrokerRequest
from skylog.wire.messages.update_features_request import FeatureUpdateKey, UpdateFeaturesRequest
from tests.unit.controller.support import LEVELS, Bench, FewConfigs, directory, topic

NAMES = ["a", "a.b", "a_b", "c"]
BROKERS = [1, 2, 3, 4]
names = st.sampled_from(NAMES)
broker_ids = st.sampled_from(BROKERS)
replica_lists = st.lists(broker_ids, min_size=0, max_size=4)
Step = Callable[[Bench], None]


def quietly(action: Callable[[], Any]) -> None:
    """A refusal is a response too."""
    try:
        action()
    except KafkaError:
        return


def ask(build: Callable[[Bench], Any]) -> Step:
    return lambda bench: quietly(lambda: bench.ask(build(bench)))


def register(broker_id: int, life: int, clean: bool) -> Step:
    def step(bench: Bench) -> None:
        previous = bench.epochs.get(broker_id, -1) if clean else -1
        quietly(lambda: bench.register(broker_id, life=life, previous_broker_epoch=previous))

    return step


def beat(broker_id: int, fence: bool, leave: bool, lost: bool, behind: int) -> Step:
    return ask(
        lambda bench: BrokerHeartbeatRequest(
            broker_id,
            bench.epochs.get(broker_id, 0),
            len(bench.log) - behind,
            fence,
            leave,
            [directory(broker_id)] if lost else [],
        )
    )


def expire(broker_id: int) -> Step:
    def step(bench: Bench) -> None:
        if ("broker-session", broker_id) in bench.timers:
            bench.expire(broker_id)

    return step


def report(name: str, index: int, isr: list[int], recovery: int, sender: int | None) -> Step:
    """A leader's AlterPartition, usually of the right leader in the right epochs."""

    def build(bench: Bench) -> AlterPartitionRequest:
        found = bench.image.topic(name)
        partition = bench.image.partition(name, index)
        topic_id = directory(0) if found is None else found.topic_id
        leader = sender if sender is not None else getattr(partition, "leader", 1)
        data = PartitionData(
            index,
            getattr(partition, "leader_epoch", 0),
            new_isr_with_epochs=[BrokerState(one) for one in isr],
            leader_recovery_state=recovery,
            partition_epoch=getattr(partition, "partition_epoch", 0),
        )
        epoch = bench.epochs.get(leader, 0)
        return AlterPartitionRequest(leader, epoch, [TopicData(topic_id, [data])])

    return ask(build)


def configs(kind: int, name: str, key: str, operation: int, value: str) -> Step:
    change = AlterableConfig(key, operation, value)
    request = IncrementalAlterConfigsRequest([AlterConfigsResource(kind, name, [change])])
    return ask(lambda _bench: request)


def lead_periodically(bench: Bench) -> None:
    bench.run(ElectPreferredLeaders())
    bench.run(ElectUncleanLeaders())


def reload(bench: Bench) -> None:
    """Another node takes over: sessions are lost."""
    bench.machine = rebuilt(bench)
    bench.run(Loaded())


def rebuilt(bench: Bench) -> ControllerMachine:
    machine = ControllerMachine(bench.machine.state.settings, FewConfigs())
    for offset, record in enumerate(bench.log):
        machine.apply(record, offset)
    return machine


def allocate(broker_id: int) -> Step:
    return ask(lambda bench: AllocateProducerIdsRequest(broker_id, bench.epochs.get(broker_id, 0)))


steps: st.SearchStrategy[Step] = st.one_of(
    st.builds(register, broker_ids, st.integers(0, 3), st.booleans()),
    st.builds(
        beat,
        broker_ids,
        st.booleans(),
        st.booleans(),
        st.sampled_from([False, False, False, True]),
        st.sampled_from([0, 0, 0, 5, 50]),
    ),
    st.builds(beat, broker_ids, st.just(False), st.just(False), st.just(False), st.just(0)),
    st.builds(expire, broker_ids),
    st.builds(
        lambda name, replicas, more, check: ask(
            lambda _b: CreateTopicsRequest(
                [topic(name, assignments=dict(enumerate([replicas, *more])))], validate_only=check
            )
        ),
        names,
        replica_lists,
        st.lists(replica_lists, max_size=1),
        st.sampled_from([False, False, False, True]),
    ),
    st.builds(
        lambda name, count, factor: ask(
            lambda _b: CreateTopicsRequest([topic(name, count, factor)])
        ),
        names,
        st.integers(-1, 3),
        st.integers(-1, 3),
    ),
    st.builds(
        lambda name, count: ask(
            lambda _b: CreatePartitionsRequest([CreatePartitionsTopic(name, count, None)])
        ),
        names,
        st.integers(0, 4),
    ),
    st.builds(lambda name: ask(lambda _b: DeleteTopicsRequest(topic_names=[name])), names),
    st.builds(
        report,
        names,
        st.integers(0, 1),
        replica_lists,
        st.sampled_from([0, 0, 0, 1]),
        st.sampled_from([None, None, None, 1, 2]),
    ),
    st.builds(
        lambda name, replicas: ask(
            lambda _b: AlterPartitionReassignmentsRequest(
                topics=[ReassignableTopic(name, [ReassignablePartition(0, replicas)])]
            )
        ),
        names,
        st.none() | replica_lists,
    ),
    st.builds(
        lambda election: ask(lambda _b: ElectLeadersRequest(election, None)), st.integers(0, 2)
    ),
    st.just(lead_periodically),
    st.just(reload),
    st.builds(
        configs,
        st.sampled_from([2, 4, 32]),
        st.sampled_from(["a", "", "1", "g"]),
        st.sampled_from(["min.insync.replicas", "unclean.leader.election.enable"]),
        st.integers(0, 2),
        st.sampled_from(["1", "2", "true"]).filter(lambda value: value != "true") | st.just("3"),
    ),
    st.builds(
        lambda value: configs(2, "a", "unclean.leader.election.enable", 0, value),
        st.sampled_from(["true", "false"]),
    ),
    st.builds(lambda one: ask(lambda _b: UnregisterBrokerRequest(one)), broker_ids),
    st.builds(allocate, broker_ids),
    st.builds(
        lambda level: ask(
            lambda _b: UpdateFeaturesRequest(
                feature_updates=[
                    FeatureUpdateKey("eligible.leader.replicas.version", level, upgrade_type=up)
                    for up in ([1] if level else [2])
                ]
            )
        ),
        st.integers(0, 1),
    ),
    st.builds(
        lambda name, operation: ask(
            lambda _b: CreateAclsRequest([AclCreation(2, name, 3, "User:a", "*", operation, 3)])
        ),
        names,
        st.integers(0, 5),
    ),
    st.builds(
        lambda name: ask(
            lambda _b: DeleteAclsRequest([DeleteAclsFilter(2, name, 2, None, None, 1, 1)])
        ),
        st.none() | names,
    ),
    st.builds(
        lambda user, mechanism, gone: ask(
            lambda _b: AlterUserScramCredentialsRequest(
                [ScramCredentialDeletion(user, mechanism)] if gone else [],
                [ScramCredentialUpsertion(user, mechanism, 4096, b"s", b"p")] if not gone else [],
            )
        ),
        names,
        st.integers(1, 3),
        st.booleans(),
    ),
    st.builds(
        lambda user, value, gone: ask(
            lambda _b: AlterClientQuotasRequest(
                [EntryData([EntityData("user", user)], [OpData("producer_byte_rate", value, gone)])]
            )
        ),
        st.none() | names,
        st.sampled_from([0.0, 1.0, 2.0]),
        st.booleans(),
    ),
)


def check_sound(bench: Bench) -> None:
    image = bench.image
    assert sorted(image.topics.by_name) == sorted(t.name for t in image.topics.by_id.values())
    count = 0
    for found in image.topics.by_id.values():
        assert sorted(found.partitions) == list(range(len(found.partitions)))
        for index, partition in found.partitions.items():
            count += 1
            replicas = set(partition.replicas)
            assert len(replicas) == len(partition.replicas) == len(partition.directories)
            assert set(partition.isr) <= replicas
            assert len(set(partition.isr)) == len(partition.isr)
            assert set(partition.elr) <= replicas
            assert not set(partition.elr) & set(partition.isr)
            assert partition.leader == -1 or partition.leader in partition.isr
            assert set(partition.adding_replicas) | set(partition.removing_replicas) <= replicas
            key = (found.topic_id, index)
            assert (key in image.topics.leaderless) == (partition.leader == -1)
            assert (key in image.topics.reassigning) == partition.reassigning
            if partition.leader != -1:
                assert image.brokers.is_active(partition.leader)
    assert count == image.topics.partition_count
    assert len(set(image.acls.by_id.values())) == len(image.acls.by_id)


def check_epochs(bench: Bench, seen: dict[Any, tuple[int, int]]) -> None:
    """Epochs never decrease, and the leader never changes without a new one."""
    for found in bench.image.topics.by_id.values():
        for index, partition in found.partitions.items():
            epochs = (partition.leader_epoch, partition.partition_epoch)
            before = seen.get((found.topic_id, index), (0, 0))
            assert epochs[0] >= before[0]
            assert epochs[1] >= before[1]
            assert epochs[0] <= epochs[1]
            seen[(found.topic_id, index)] = epochs


@settings(max_examples=60, deadline=None)
@given(
    st.lists(steps, min_size=10, max_size=40),
    st.sampled_from([LEVELS, {**LEVELS, "eligible.leader.replicas.version": 0}]),
)
def test_any_history_keeps_the_cluster_sound(history: list[Step], levels: dict[str, int]) -> None:
    bench = Bench(brokers=3, levels=levels)
    bench.create(topic("a", assignments={0: [1, 2, 3]}))
    seen: dict[Any, tuple[int, int]] = {}
    for step in history:
        step(bench)
        check_sound(bench)
        check_epochs(bench, seen)
    codec = MetadataCodec()
    digest = state_digest(bench.machine, codec)
    assert state_digest(rebuilt(bench), codec) == digest
    assert dump(snapshot_of(bench.image)) == dump(bench.image)


def snapshot_of(image: ClusterImage) -> ClusterImage:
    """The image after a round trip through a snapshot's bytes."""
    codec = MetadataCodec()
    copy = ClusterImage()
    for record in image.snapshot():
        read = codec.decode(*codec.encode(record))
        assert read is not None
        copy.apply(read)
    return copy


def dump(image: ClusterImage) -> list[bytes]:
    return sorted(MetadataCodec().encode(record)[1] or b"" for record in image.snapshot())


class TwiceBench(Bench):
    """Handles everything twice before it is run."""

    def run(self, request: Any) -> Any:
        codec = MetadataCodec()
        machine = self.machine
        before = state_digest(machine, codec), dict(machine.state.sessions)
        first = outcome(lambda: machine.handle(request, self.now_ms))
        second = outcome(lambda: machine.handle(request, self.now_ms))
        assert (state_digest(machine, codec), machine.state.sessions) == before
        assert repr(first) == repr(second)
        return super().run(request)


@settings(max_examples=25, deadline=None)
@given(st.lists(steps, min_size=5, max_size=20))
def test_handling_changes_nothing_and_is_repeatable(history: list[Step]) -> None:
    """The same request at the same time gives the same records and leaves the state unchanged."""
    bench = TwiceBench(brokers=3)
    bench.create(topic("a", assignments={0: [1, 2, 3]}))
    for step in history:
        step(bench)


def outcome(action: Callable[[], Any]) -> Any:
    try:
        return action()
    except KafkaError as error:
        return str(error)
