"""Every API × every credential: the right response, or Kafka's error and no change."""

from __future__ import annotations

import struct
from collections.abc import Iterator

import pytest

from skylog.broker.net.dispatch import Row
from skylog.broker.net.table import broker_table, controller_table
from skylog.kernel.acl import AclOperation as Op
from skylog.kernel.acl import ResourceType as Resource
from skylog.kernel.errors import ErrorCode as Code
from skylog.testing import Broker
from skylog.wire.apis import ApiKey, encode_request_header
from skylog.wire.codec import encode
from skylog.wire.messages import (
    fetch_request,
    incremental_alter_configs_request,
    metadata_request,
    produce_request,
)
from skylog.wire.messages.api_versions_request import ApiVersionsRequest
from skylog.wire.messages.describe_groups_request import DescribeGroupsRequest
from skylog.wire.messages.describe_quorum_request import (
    DescribeQuorumRequest,
    PartitionData,
    TopicData,
)
from skylog.wire.messages.describe_topic_partitions_request import DescribeTopicPartitionsRequest
from skylog.wire.messages.find_coordinator_request import FindCoordinatorRequest
from skylog.wire.messages.init_producer_id_request import InitProducerIdRequest
from skylog.wire.messages.list_groups_request import ListGroupsRequest
from skylog.wire.messages.list_offsets_request import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from skylog.wire.messages.offset_fetch_request import OffsetFetchRequest, OffsetFetchRequestGroup
from skylog.wire.messages.sasl_authenticate_request import SaslAuthenticateRequest
from skylog.wire.messages.sasl_handshake_request import SaslHandshakeRequest
from skylog.wire.records import encode_batch
from skylog.wire.schema import Message
from tests.integration.auth_cases import (
    CASES,
    CONTROLLER_CASES,
    NO_GROUP,
    NO_TOPIC,
    NOTHING_WRONG,
    UNGUARDED,
    Case,
    Things,
    errors_in,
    missing,
)
from tests.integration.auth_world import ADMIN, ALICE, PASSWORDS, SETTINGS, World
from tests.integration.wire_client import Wire, frame, newest, request_bytes

# The APIs that we intend to offer, without share and streams groups, delegation tokens and
# telemetry.
OFFERED = frozenset(
    {
        *(ApiKey(number) for number in range(4)),
        *(ApiKey(number) for number in range(8, 29)),
        *(ApiKey(number) for number in (29, 30, 31, 32, 33, 35, 36, 37, 42, 43, 44, 45, 46, 47)),
        *(ApiKey(number) for number in (48, 49, 50, 51, 55, 57, 60, 61, 64, 65, 66, 68, 69)),
        *(ApiKey(number) for number in (74, 75)),
        *(ApiKey(number) for number in (80, 81)),
    }
)
# For our own tools: served, but not listed by ApiVersions.
UNLISTED = frozenset(ApiKey(number) for number in (*range(500, 506), *range(510, 513)))
OFFERED_BY_CONTROLLERS = frozenset(
    {
        *(ApiKey(number) for number in (17, 18, 19, 20, 30, 31, 29, 32, 33, 36, 37, 43, 44, 45)),
        *(ApiKey(number) for number in (46, 49, 51, 55, 56, 57, 58, 60, 62, 63, 64, 67, 70, 73)),
        # Of the quorum.
        *(ApiKey(number) for number in (1, 52, 53, 54, 59, 80, 81, 82)),
    }
)
LISTENERS = {"broker": broker_table(), "controller": controller_table()}
ROWS = [
    pytest.param(name, key, id=f"{name}-{key.name}")
    for name, table in LISTENERS.items()
    for key in table
    if key not in UNGUARDED
]
AUTHORIZATION = frozenset(code for code in Code if code.name.endswith("AUTHORIZATION_FAILED"))
IDS_PER_BLOCK = 1000
# Operations that are implied by another one.
IMPLIED_BY = {
    Op.DESCRIBE: {Op.READ, Op.WRITE, Op.DELETE, Op.ALTER},
    Op.DESCRIBE_CONFIGS: {Op.ALTER_CONFIGS},
}


@pytest.fixture(scope="module")
def world() -> Iterator[World]:
    listeners = "PLAINTEXT://127.0.0.1:0,SASL_PLAINTEXT://127.0.0.1:0,CONTROLLER://127.0.0.1:0"
    with Broker({**SETTINGS, "listeners": listeners}) as broker:
        made = World(
            broker.address("PLAINTEXT"),
            broker.address("SASL_PLAINTEXT"),
            broker.address("CONTROLLER"),
        )
        yield made
        made.close()


@pytest.fixture(scope="module")
def things(world: World) -> Things:
    """For requests that change nothing."""
    return world.things()


class Trace:
    """Everything that a request could change, as the super user sees it."""

    def __init__(self, world: World, things: Things) -> None:
        self._world = world
        self._things = things
        self._taken = 0

    def take(self) -> tuple[object, ...]:
        ask, things = self._world.admin.ask, self._things
        # Looking allocates an id each time, and writes a record for each block of them.
        next_id = ask(InitProducerIdRequest(None, 60_000)).producer_id
        self._taken += 1
        quorum = ask(DescribeQuorumRequest([TopicData("__cluster_metadata", [PartitionData(0)])]))
        metadata_end = quorum.topics[0].partitions[0].high_watermark
        ends = []
        for timestamp in (-2, -1):
            topics = [
                ListOffsetsTopic(name, [ListOffsetsPartition(i, timestamp=timestamp) for i in at])
                for name, at in ((things.topic, (0,)), ("__consumer_offsets", (0, 1)))
            ]
            answer = ask(ListOffsetsRequest(-1, 0, topics))
            ends += [(p.error_code, p.offset) for t in answer.topics for p in t.partitions]
        group = repr(ask(DescribeGroupsRequest([things.group])))
        return metadata_end - next_id // IDS_PER_BLOCK, next_id - self._taken, ends, group


def row(listener: str, key: ApiKey) -> tuple[Row, Case]:
    cases = CASES | CONTROLLER_CASES if listener == "controller" else CASES
    return LISTENERS[listener][key], cases[key]


def versions(row: Row) -> range:
    return range(row.versions.low, row.versions.high + 1)


# The table


def test_the_table_is_what_we_offer() -> None:
    assert set(broker_table()) == OFFERED | UNLISTED
    assert set(controller_table()) == OFFERED_BY_CONTROLLERS


def test_every_row_is_in_the_matrix() -> None:
    assert set(CASES) | UNGUARDED == OFFERED | UNLISTED | OFFERED_BY_CONTROLLERS


def test_api_versions_lists_the_table(world: World) -> None:
    for address, table in ((world.plaintext, broker_table()), (None, controller_table())):
        with Wire(address) if address else world.connect(ADMIN, controller=True) as wire:
            answer = wire.ask(ApiVersionsRequest("test", "1"))
        listed = {api.api_key: (api.min_version, api.max_version) for api in answer.api_keys}
        expected = {
            int(key): (row.versions.low, row.versions.high)
            for key, row in table.items()
            if key not in UNLISTED
        }
        if ApiKey.PRODUCE in table:
            expected[ApiKey.PRODUCE] = (0, table[ApiKey.PRODUCE].versions.high)
        assert listed == expected


@pytest.mark.parametrize("listener", LISTENERS)
def test_requests_that_are_not_offered_close_the_connection(world: World, listener: str) -> None:
    table = LISTENERS[listener]
    # The listener is also the inter-broker listener.
    among_brokers = broker_table(inter_broker=True) if listener == "broker" else {}
    for key in ApiKey:
        if key in table or key in among_brokers:
            row = table.get(key) or among_brokers[key]
            low, high = row.versions.low, row.versions.high
            refused = [] if key is ApiKey.API_VERSIONS else [low - 1, high + 1, 2**15 - 1]
        else:
            refused = [0, 1]
        for version in refused:
            with world.connect(ADMIN, controller=listener == "controller") as wire:
                wire.send(frame(struct.pack(">hhih", key, version, 1, -1) + bytes(64)))
                assert wire.is_closed(), (key, version)


def test_numbers_that_kafka_does_not_know_close_the_connection(world: World) -> None:
    for number in (-1, -32768, 32767, max(ApiKey) + 1):
        with Wire(world.plaintext) as wire:
            wire.send(frame(struct.pack(">hhih", number, 0, 1, -1)))
            assert wire.is_closed()


# The matrix


@pytest.mark.parametrize(("listener", "key"), ROWS)
def test_without_permission(world: World, things: Things, listener: str, key: ApiKey) -> None:
    served, case = row(listener, key)
    controller = listener == "controller"
    trace = Trace(world, things)
    before = trace.take()
    for user in (ALICE,) if controller else (None, ALICE):
        # One connection for all: a refusal does not close it.
        with world.connect(user, controller=controller) as wire:
            for version in versions(served):
                answer = wire.ask(case.build(things, version), version)
                assert errors_in(answer) == case.denied_in(version), (user, version, answer)
    assert trace.take() == before


@pytest.mark.parametrize(("listener", "key"), ROWS)
def test_with_every_permission_but_one(
    world: World, things: Things, listener: str, key: ApiKey
) -> None:
    """All other operations on the same thing, and the right one on another thing."""
    _, case = row(listener, key)
    if not case.denied:
        pytest.skip("open to all")
    wanted = [grant.named(things) for grant in case.grants]
    operation, resource, name = wanted[0]
    useless = {operation, *IMPLIED_BY.get(operation, ()), *case.instead}
    others = [(other, resource, name) for other in Op if 3 <= other <= 12 and other not in useless]
    if resource is not Resource.CLUSTER:
        others.append((operation, resource, f"{name}-other"))
    trace = Trace(world, things)
    world.change_acls(f"User:{ALICE}", [*wanted[1:], *others])
    try:
        before = trace.take()
        with world.connect(ALICE, controller=listener == "controller") as wire:
            answer = wire.ask(case.build(things, newest_of(key)))
        assert errors_in(answer) == case.denied, answer
        assert trace.take() == before
    finally:
        world.revoke_all(f"User:{ALICE}")


def newest_of(key: ApiKey) -> int:
    table = broker_table().get(key) or controller_table()[key]
    return table.versions.high


@pytest.mark.parametrize("user", [ALICE, ADMIN])
@pytest.mark.parametrize(("listener", "key"), ROWS)
def test_with_permission(world: World, user: str, listener: str, key: ApiKey) -> None:
    """A user with exactly the needed permissions, and the super user."""
    _, case = row(listener, key)
    things = world.things()
    if user == ALICE:
        world.change_acls(f"User:{ALICE}", [grant.named(things) for grant in case.grants])
    try:
        trace = Trace(world, things)
        before = trace.take()
        with world.connect(user, controller=listener == "controller") as wire:
            answer = wire.ask(case.build(things, newest_of(key)))
        assert errors_in(answer) == case.allowed, answer
        assert (trace.take() != before) == case.changes
    finally:
        world.revoke_all(f"User:{ALICE}")


def test_each_of_several_permissions_is_needed(world: World) -> None:
    for key, case in CASES.items():
        for index in range(1, len(case.grants)):
            things = world.things()
            grants = [grant.named(things) for grant in case.grants]
            del grants[index]
            world.change_acls(f"User:{ALICE}", grants)
            with world.connect(ALICE) as wire:
                answer = wire.ask(case.build(things, newest_of(key)))
            world.revoke_all(f"User:{ALICE}")
            assert errors_in(answer) <= AUTHORIZATION
            assert errors_in(answer), key


def test_without_an_authorizer_everything_is_allowed() -> None:
    settings = {"listeners": "PLAINTEXT://127.0.0.1:0,CONTROLLER://127.0.0.1:0"}
    with Broker({**settings, "offsets.topic.num.partitions": "2"}) as broker:
        addresses = (broker.address("PLAINTEXT"), broker.address("CONTROLLER"))
        world = OpenWorld(addresses[0], addresses[0], addresses[1])
        for listener, table in LISTENERS.items():
            for key in table.keys() - UNGUARDED:
                _, case = row(listener, key)
                with world.connect(None, controller=listener == "controller") as wire:
                    answer = wire.ask(case.build(world.things(), newest_of(key)))
                if key in (ApiKey.DESCRIBE_ACLS, ApiKey.CREATE_ACLS, ApiKey.DELETE_ACLS):
                    assert errors_in(answer) == {Code.SECURITY_DISABLED}
                else:
                    assert errors_in(answer) == case.allowed, (listener, key, answer)
        world.close()


class OpenWorld(World):
    """A cluster without users and ACLs."""

    def connect(self, user: str | None, *, controller: bool = False) -> Wire:
        return Wire(self.controller if controller else self.plaintext)

    def change_acls(self, principal: str, grants: object, *, permission: int = 0) -> None:
        pass


# Information that must not leak


@pytest.mark.parametrize("key", [k for k, c in CASES.items() if c.denied in (NO_TOPIC, NO_GROUP)])
def test_a_refusal_does_not_say_what_exists(world: World, things: Things, key: ApiKey) -> None:
    case, absent = CASES[key], missing(things)
    with world.connect(ALICE) as wire:
        for version in versions(broker_table()[key]):
            if version >= case.by_id_from:
                continue
            seen, unseen = (
                encode(wire.ask(case.build(which, version), version), version)
                for which in (things, absent)
            )
            for old, new in ((things.topic, absent.topic), (things.group, absent.group)):
                seen = seen.replace(old.encode(), new.encode())
            assert seen == unseen


def test_lists_leave_out_invisible_resources(world: World, things: Things) -> None:
    requests: list[Message] = [
        metadata_request.MetadataRequest(None),
        ListGroupsRequest(),
        DescribeTopicPartitionsRequest(),
    ]
    for request in requests:
        name = things.group if isinstance(request, ListGroupsRequest) else things.topic
        with world.connect(ADMIN) as wire:
            assert name in repr(wire.ask(request))
        with world.connect(ALICE) as wire:
            answer = repr(wire.ask(request))
        assert things.topic not in answer
        assert things.group not in answer


def test_offsets_of_invisible_topics_are_left_out(world: World, things: Things) -> None:
    world.change_acls(f"User:{ALICE}", [(Op.DESCRIBE, Resource.GROUP, things.group)])
    request = OffsetFetchRequest(groups=[OffsetFetchRequestGroup(things.group, topics=None)])
    with world.connect(ADMIN) as admin, world.connect(ALICE) as alice:
        assert len(admin.ask(request, 9).groups[0].topics) == 1
        answer = alice.ask(request, 9).groups[0]
    world.revoke_all(f"User:{ALICE}")
    assert (answer.error_code, answer.topics) == (0, [])


# Claims in a request do not matter


def test_a_follower_fetch_needs_more_than_a_consumers_permission(
    world: World, things: Things
) -> None:
    m = fetch_request
    request = CASES[ApiKey.FETCH].build(things, 15)
    replica = m.FetchRequest(
        replica_state=m.ReplicaState(2, -1),
        max_bytes=1 << 20,
        session_epoch=-1,
        topics=request.topics,  # type: ignore[attr-defined]
    )
    grants = [(Op.READ, Resource.TOPIC, things.topic)]
    world.change_acls(f"User:{ALICE}", grants)
    with world.connect(ALICE) as wire:
        assert errors_in(wire.ask(request)) == NOTHING_WRONG
        assert errors_in(wire.ask(replica)) == NO_TOPIC
    world.revoke_all(f"User:{ALICE}")


@pytest.mark.parametrize("claimed", [None, "tx"])
def test_a_transactional_batch_needs_its_permission(
    world: World, things: Things, claimed: str | None
) -> None:
    m = produce_request
    batch = encode_batch(
        [(b"k", b"v")],
        timestamp=1,
        transactional=True,
        producer_id=1,
        producer_epoch=0,
        base_sequence=0,
    )
    world.change_acls(f"User:{ALICE}", [(Op.WRITE, Resource.TOPIC, things.topic)])
    trace = Trace(world, things)
    before = trace.take()
    data = m.TopicProduceData(things.topic, things.topic_id, [m.PartitionProduceData(0, batch)])
    with world.connect(ALICE) as wire:
        answer = wire.ask(m.ProduceRequest(claimed, -1, 5000, [data]))
    assert errors_in(answer) == {Code.TRANSACTIONAL_ID_AUTHORIZATION_FAILED}
    assert trace.take() == before
    world.revoke_all(f"User:{ALICE}")


def test_transactional_ids_are_guarded(world: World) -> None:
    requests = [
        FindCoordinatorRequest(key_type=1, coordinator_keys=["tx"]),
        InitProducerIdRequest("tx", 60_000),
    ]
    with world.connect(ALICE) as wire:
        for request in requests:
            answer = wire.ask(request)
            assert errors_in(answer) == {Code.TRANSACTIONAL_ID_AUTHORIZATION_FAILED}


@pytest.mark.parametrize(
    ("kind", "name", "setting", "code"),
    [
        (4, "1", "log.cleaner.threads", Code.CLUSTER_AUTHORIZATION_FAILED),
        (4, "", "log.cleaner.threads", Code.CLUSTER_AUTHORIZATION_FAILED),
        (8, "1", "broker.node", Code.CLUSTER_AUTHORIZATION_FAILED),
        (16, "subscription", "interval.ms", Code.CLUSTER_AUTHORIZATION_FAILED),
        (32, "group", "consumer.session.timeout.ms", Code.GROUP_AUTHORIZATION_FAILED),
    ],
)
def test_settings_of_each_kind_are_guarded(
    world: World, things: Things, kind: int, name: str, setting: str, code: Code
) -> None:
    m = incremental_alter_configs_request
    request = m.IncrementalAlterConfigsRequest(
        [m.AlterConfigsResource(kind, name, [m.AlterableConfig(setting, 0, "2")])]
    )
    # Permissions on a topic's settings do not extend to other settings.
    world.change_acls(f"User:{ALICE}", [(Op.ALTER_CONFIGS, Resource.TOPIC, "*")])
    trace = Trace(world, things)
    before = trace.take()
    for controller in (False, True):
        with world.connect(ALICE, controller=controller) as wire:
            assert errors_in(wire.ask(request)) == {code}
    assert trace.take() == before
    world.revoke_all(f"User:{ALICE}")


def test_auto_creation_needs_more_than_describe(world: World) -> None:
    m = metadata_request
    request = m.MetadataRequest([m.MetadataRequestTopic(name="wanted")])
    world.change_acls(f"User:{ALICE}", [(Op.DESCRIBE, Resource.TOPIC, "wanted")])
    with world.connect(ALICE) as wire:
        assert errors_in(wire.ask(request)) == NO_TOPIC
        world.change_acls(f"User:{ALICE}", [(Op.CREATE, Resource.TOPIC, "wanted")])
        assert errors_in(wire.ask(request)) == NOTHING_WRONG
    world.revoke_all(f"User:{ALICE}")


def test_create_on_the_cluster_allows_any_topic(world: World) -> None:
    things = world.things()
    world.change_acls(f"User:{ALICE}", [(Op.CREATE, Resource.CLUSTER, "kafka-cluster")])
    with world.connect(ALICE) as wire:
        answer = wire.ask(CASES[ApiKey.CREATE_TOPICS].build(things, 7))
    world.revoke_all(f"User:{ALICE}")
    assert answer.topics[0].error_code == 0
    assert answer.topics[0].topic_config_error_code == Code.TOPIC_AUTHORIZATION_FAILED


# Before authentication


@pytest.mark.parametrize("listener", LISTENERS)
def test_before_authentication_only_two_requests_are_served(
    world: World, things: Things, listener: str
) -> None:
    address = world.controller if listener == "controller" else world.sasl
    trace = Trace(world, things)
    before = trace.take()
    for key in set(ApiKey) - {ApiKey.API_VERSIONS, ApiKey.SASL_HANDSHAKE}:
        version = newest_of(key) if key in CASES else 0
        body = request_bytes(CASES[key].build(things, version), version) if key in CASES else None
        with Wire(address) as wire:
            wire.send(frame(body or encode_request_header(key, version, 1, None) + bytes(9)))
            assert wire.is_closed(), key
    assert trace.take() == before


@pytest.mark.parametrize("listener", LISTENERS)
def test_during_authentication_nothing_else_is_served(
    world: World, things: Things, listener: str
) -> None:
    address = world.controller if listener == "controller" else world.sasl
    trace = Trace(world, things)
    before = trace.take()
    for key in LISTENERS[listener]:
        if key is ApiKey.SASL_AUTHENTICATE:
            continue
        with Wire(address) as wire:
            assert wire.ask(SaslHandshakeRequest("PLAIN")).error_code == 0
            version = newest_of(key)
            if key in CASES:
                answer = wire.ask(CASES[key].build(things, version), version)
                assert errors_in(answer) <= {Code.ILLEGAL_SASL_STATE}, key
                # Without an error field, the response must at least be empty.
                assert errors_in(answer) or things.topic not in repr(answer)
            elif key is ApiKey.SASL_HANDSHAKE:
                answer = wire.ask(SaslHandshakeRequest("PLAIN"))
                assert answer.error_code == Code.ILLEGAL_SASL_STATE
            else:
                wire.send(frame(request_bytes(ApiVersionsRequest("a", "1"), version)))
                wire.receive()
            assert wire.is_closed(), key
    assert trace.take() == before


def test_before_authentication_versions_are_listed(world: World) -> None:
    with Wire(world.sasl) as wire:
        for version in range(5):
            answer = wire.ask(ApiVersionsRequest("test", "1"), version)
            assert {api.api_key for api in answer.api_keys} == {int(key) for key in OFFERED}
        wire.log_in(ALICE, PASSWORDS[ALICE])
        assert wire.ask(ApiVersionsRequest("test", "1")).error_code == 0


@pytest.mark.parametrize("mechanism", ["SCRAM-SHA-256", "GSSAPI", "", "PLAIN\0", "plain"])
def test_another_mechanism_is_refused_with_the_list(world: World, mechanism: str) -> None:
    with Wire(world.sasl) as wire:
        answer = wire.ask(SaslHandshakeRequest(mechanism))
        assert answer.error_code == Code.UNSUPPORTED_SASL_MECHANISM
        assert answer.mechanisms == ["PLAIN"]
        assert wire.is_closed()


BAD_TOKENS = {
    "wrong password": b"\0alice\0wrong",
    "no password": b"\0alice\0",
    "nobody": b"\0nobody\0alice-secret",
    "as somebody else": b"admin\0alice\0alice-secret",
    "not a token": b"\xff\xfe",
    "empty": b"",
    "too many parts": b"\0alice\0alice-secret\0more",
}


@pytest.mark.parametrize("token", BAD_TOKENS.values(), ids=BAD_TOKENS)
@pytest.mark.parametrize("version", [0, 1])
def test_failed_authentication_ends_the_connection(
    world: World, token: bytes, version: int
) -> None:
    with Wire(world.sasl) as wire:
        assert wire.ask(SaslHandshakeRequest("PLAIN"), version).error_code == 0
        if version == 0:  # a bare token has no error response
            wire.send(frame(token))
        else:
            answer = wire.ask(SaslAuthenticateRequest(token))
            assert answer.error_code == Code.SASL_AUTHENTICATION_FAILED
            assert "secret" not in (answer.error_message or "")
        assert wire.is_closed()


def test_requests_after_a_failed_authentication_are_not_served(
    world: World, things: Things
) -> None:
    """Requests that were sent before the failure was known."""
    version = newest_of(ApiKey.CREATE_TOPICS)
    request = CASES[ApiKey.CREATE_TOPICS].build(things, version)
    trace = Trace(world, things)
    before = trace.take()
    with Wire(world.sasl) as wire:
        wire.ask(SaslHandshakeRequest("PLAIN"))
        token = SaslAuthenticateRequest(BAD_TOKENS["wrong password"])
        frames = frame(request_bytes(token, newest(SaslAuthenticateRequest)))
        wire.send(frames + frame(request_bytes(request, version)) * 3)
        wire.receive()
        assert wire.is_closed()
    assert trace.take() == before


def test_bare_tokens_of_old_clients_are_accepted(world: World, things: Things) -> None:
    with Wire(world.sasl) as wire:
        assert wire.ask(SaslHandshakeRequest("PLAIN"), 0).error_code == 0
        wire.send(frame(f"\0{ADMIN}\0{PASSWORDS[ADMIN]}".encode()))
        assert wire.receive() == b""
        answer = wire.ask(CASES[ApiKey.LIST_OFFSETS].build(things, 1), 1)
        assert errors_in(answer) == NOTHING_WRONG


def test_sasl_on_a_listener_without_it(world: World) -> None:
    with Wire(world.plaintext) as wire:
        answer = wire.ask(SaslHandshakeRequest("PLAIN"))
        assert answer.error_code == Code.ILLEGAL_SASL_STATE
        answer = wire.ask(SaslAuthenticateRequest(b"\0admin\0admin-secret"))
        assert answer.error_code == Code.ILLEGAL_SASL_STATE
        # This must not make the user a super user.
        refused = wire.ask(CASES[ApiKey.CREATE_ACLS].build(world.things(), 3))
        assert errors_in(refused) == {Code.CLUSTER_AUTHORIZATION_FAILED}


def test_a_principal_cannot_change_after_authentication(world: World) -> None:
    with world.connect(ALICE) as wire:
        assert wire.ask(SaslHandshakeRequest("PLAIN")).error_code == Code.ILLEGAL_SASL_STATE
        token = f"\0{ADMIN}\0{PASSWORDS[ADMIN]}".encode()
        answer = wire.ask(SaslAuthenticateRequest(token))
        assert answer.error_code == Code.ILLEGAL_SASL_STATE
        refused = wire.ask(CASES[ApiKey.CREATE_ACLS].build(world.things(), 3))
        assert errors_in(refused) == {Code.CLUSTER_AUTHORIZATION_FAILED}


@pytest.mark.parametrize("length", [-1, 0, 524_288, 524_289, 2**31 - 1, -(2**31)])
def test_frames_before_authentication_are_small(world: World, length: int) -> None:
    """Half a megabyte is accepted; one byte more closes the connection before it is allocated."""
    with Wire(world.sasl) as wire:
        wire.send(struct.pack(">i", length))
        if length == 524_288:
            request = request_bytes(ApiVersionsRequest("a", "1"), 3)
            wire.send(request + bytes(length - len(request)))
            assert wire.receive()
        else:
            assert wire.is_closed()
