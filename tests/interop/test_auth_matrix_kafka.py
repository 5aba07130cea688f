"""Compares the responses to clients with and without permission with those of a real Kafka."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from skylog.broker.net.dispatch import Row
from skylog.broker.net.table import broker_table, controller_table
from skylog.testing import Broker
from skylog.wire.apis import OWN_APIS_FROM, ApiKey
from tests.integration.auth_cases import CASES, UNGUARDED, Things, errors_in
from tests.integration.auth_world import ADMIN, ALICE, SETTINGS, World
from tests.interop.support import start_kafka
from tests.interop.wire import OUR_SETTINGS
from tests.ports import free_port

pytestmark = [pytest.mark.interop, pytest.mark.timeout(300)]

# Fields that differ between clusters.
VOLATILE = frozenset(
    {
        "cluster_id", "epoch", "error_message", "high_watermark", "last_caught_up_timestamp",
        "last_fetch_timestamp", "leader_epoch", "log_dir", "log_end_offset", "member_id",
        "partition_size", "port", "producer_id", "replica_directory_id", "throttle_time_ms",
        "topic_id", "total_bytes", "usable_bytes",
    }
)  # fmt: skip
ATTEMPTS = 200
# These list everything, without an order.
LISTS = frozenset({ApiKey.LIST_GROUPS, ApiKey.LIST_CONFIG_RESOURCES})


@pytest.fixture(scope="module")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    plaintext, sasl, controller = (f"127.0.0.1:{free_port()}" for _ in range(3))
    brokers = f"PLAINTEXT://{plaintext},SASL_PLAINTEXT://{sasl}"
    settings = {
        **SETTINGS,
        "listeners": f"{brokers},CONTROLLER://{controller}",
        "advertised.listeners": brokers,
        "controller.quorum.bootstrap.servers": controller,
    }
    node = start_kafka(tmp_path_factory.mktemp("kafka"), settings)
    world = World(plaintext, sasl, controller)
    # A new Kafka has no producer ids for a moment, and answers with an error until then.
    world.until_done(ApiKey.INIT_PRODUCER_ID, world.things())
    yield world
    world.close()
    node.process.stop()


@pytest.fixture(scope="module")
def ours() -> Iterator[World]:
    listeners = "PLAINTEXT://127.0.0.1:0,SASL_PLAINTEXT://127.0.0.1:0,CONTROLLER://127.0.0.1:0"
    with Broker({**SETTINGS, "listeners": listeners}) as broker:
        addresses = map(broker.address, ("PLAINTEXT", "SASL_PLAINTEXT", "CONTROLLER"))
        world = World(*addresses)
        yield world
        world.close()


def shape(value: Any, things: Things) -> Any:
    """A response without fields that differ between clusters."""
    if isinstance(value, list):
        kept = [item for item in value if getattr(item, "name", None) not in OUR_SETTINGS]
        return [shape(item, things) for item in kept]
    if hasattr(value, "FIELDS"):
        names = [name for name in value.__slots__ if name not in VOLATILE]
        return {name: shape(getattr(value, name), things) for name in names}
    if isinstance(value, memoryview):
        return bytes(value)
    if isinstance(value, str):
        return value.replace(things.topic, "TOPIC").replace(things.group, "GROUP")
    return value


def compared(*, controller: bool) -> dict[ApiKey, Row]:
    """The part of a response that Kafka has, too."""
    table = controller_table() if controller else broker_table()
    return {key: row for key, row in table.items() if key < OWN_APIS_FROM}


def told(world: World, user: str | None, key: ApiKey, version: int, *, controller: bool) -> Any:
    things = world.things()
    case = CASES[key]
    if user == ALICE:
        world.change_acls(f"User:{ALICE}", [grant.named(things) for grant in case.grants])
    with world.connect(user, controller=controller) as wire:
        answer = wire.ask(case.build(things, version), version)
        for _ in range(ATTEMPTS):  # Kafka's broker learns of a new permission a little later
            if not any("AUTHORIZATION" in code.name for code in errors_in(answer)):
                break
            answer = wire.ask(case.build(things, version), version)
    world.revoke_all(f"User:{ALICE}")
    return shape(answer, things)


@pytest.mark.parametrize("controller", [False, True])
def test_responses_without_permission_are_those_of_kafka(
    ours: World, kafka: World, controller: bool
) -> None:
    worlds = [(world, world.things()) for world in (ours, kafka)]
    table = compared(controller=controller)
    for key in table.keys() - UNGUARDED:
        for version in range(table[key].versions.low, table[key].versions.high + 1):
            for user in (ALICE,) if controller else (None, ALICE):
                answers = []
                for world, things in worlds:
                    with world.connect(user, controller=controller) as wire:
                        answer = wire.ask(CASES[key].build(things, version), version)
                    answers.append(shape(answer, things))
                assert answers[0] == answers[1], (key, version, user)


@pytest.mark.parametrize("user", [ALICE, ADMIN])
@pytest.mark.parametrize("controller", [False, True])
def test_responses_with_permission_are_those_of_kafka(
    ours: World, kafka: World, controller: bool, user: str
) -> None:
    table = compared(controller=controller)
    for key in table.keys() - UNGUARDED - LISTS:
        version = table[key].versions.high
        answers = [
            told(world, user, key, version, controller=controller) for world in (ours, kafka)
        ]
        assert answers[0] == answers[1], (key, user)
