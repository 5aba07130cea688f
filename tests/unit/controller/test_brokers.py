from __future__ import annotations

from typing import Any

import pytest

from skylog.controller.image.topics import RECOVERING
from skylog.controller.requests import Loaded, SessionExpired
from skylog.kernel.errors import ErrorCode
from skylog.kernel.ids import ZERO_UUID
from skylog.wire.messages.broker_heartbeat_request import BrokerHeartbeatRequest
from skylog.wire.messages.broker_registration_request import Feature
from skylog.wire.messages.controller_registration_request import ControllerRegistrationRequest
from skylog.wire.messages.unregister_broker_request import UnregisterBrokerRequest
from tests.unit.controller.support import LEVELS, Bench, directory, registration, topic

NO_ELR = {**LEVELS, "eligible.leader.replicas.version": 0}


def test_a_brokers_epoch_is_the_offset_of_its_registration() -> None:
    bench = Bench()
    offset = len(bench.log)
    assert bench.register(1) == offset
    assert bench.image.broker(1).fenced
    assert not bench.image.is_alive(1)


def test_the_same_incarnation_keeps_its_epoch_and_state() -> None:
    bench = Bench(brokers=1)
    epoch = bench.epochs[1]
    assert bench.register(1) == epoch
    assert not bench.image.broker(1).fenced


def test_another_incarnation_is_refused_while_the_first_is_alive() -> None:
    bench = Bench(brokers=1)
    request = registration(1, life=1)
    assert bench.refused(request).code is ErrorCode.DUPLICATE_BROKER_REGISTRATION
    bench.expire(1)
    assert bench.register(1, life=1) > 0


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"cluster_id": "other"}, ErrorCode.INCONSISTENT_CLUSTER_ID),
        ({"log_dirs": []}, ErrorCode.INVALID_REGISTRATION),
        ({"log_dirs": [ZERO_UUID]}, ErrorCode.INVALID_REGISTRATION),
        ({"log_dirs": [directory(2), directory(2)]}, ErrorCode.INVALID_REGISTRATION),
        ({"log_dirs": [directory(1)]}, ErrorCode.INVALID_REGISTRATION),
        ({"features": []}, ErrorCode.UNSUPPORTED_VERSION),
        ({"features": [Feature("metadata.version", 7, 29)]}, ErrorCode.UNSUPPORTED_VERSION),
        ({"is_migrating_zk_broker": True}, ErrorCode.BROKER_ID_NOT_REGISTERED),
    ],
)
def test_a_registration_that_cannot_be_is_refused(changes: dict[str, Any], code: ErrorCode) -> None:
    bench = Bench(brokers=1)
    assert bench.refused(registration(2, **changes)).code is code


def test_a_broker_without_a_feature_supports_it_at_level_zero() -> None:
    bench = Bench(levels=NO_ELR)
    request = registration(1)
    request.features = [one for one in request.features if not one.name.startswith("eligible")]
    assert bench.ask(request).broker_epoch > 0


def test_a_broker_serves_once_it_has_read_its_registration() -> None:
    bench = Bench()
    offset = bench.register(1)
    behind = bench.beat(1, offset=offset - 1)
    assert (behind.is_caught_up, behind.is_fenced) == (False, True)
    assert bench.beat(1, offset=offset, want_fence=True).is_fenced
    ready = bench.beat(1, offset=offset)
    assert (ready.is_caught_up, ready.is_fenced, ready.should_shut_down) == (True, False, False)
    assert bench.image.is_alive(1)


@pytest.mark.parametrize("epoch", [-1, 10**9])
def test_a_heartbeat_of_another_life_is_refused(epoch: int) -> None:
    bench = Bench(brokers=1)
    assert bench.refused(BrokerHeartbeatRequest(1, epoch)).code is ErrorCode.STALE_BROKER_EPOCH
    assert bench.refused(BrokerHeartbeatRequest(2, 0)).code is ErrorCode.STALE_BROKER_EPOCH


def test_a_heartbeat_without_news_writes_nothing() -> None:
    bench = Bench(brokers=1)
    before = len(bench.log)
    bench.beat(1)
    assert len(bench.log) == before


def test_a_broker_that_falls_silent_loses_its_partitions() -> None:
    bench = Bench(brokers=3)
    bench.create(topic("t", assignments={0: [1, 2, 3]}))
    bench.expire(1)
    partition = bench.partition("t")
    assert (partition.leader, partition.isr) == (2, (2, 3))
    assert (partition.leader_epoch, partition.partition_epoch) == (1, 1)
    assert bench.image.broker(1).fenced


def test_a_session_that_was_renewed_does_not_expire() -> None:
    bench = Bench(brokers=1)
    epoch = bench.epochs[1]
    bench.now_ms += 5_000
    bench.beat(1)
    bench.now_ms += 5_000
    bench.run(SessionExpired(1, epoch))
    assert bench.image.is_alive(1)
    bench.run(SessionExpired(1, epoch + 1))
    bench.run(SessionExpired(7, 0))


def test_a_timer_that_comes_a_moment_early_costs_a_moment() -> None:
    """Not a whole session more, during which the dead broker's partitions would have no leader."""
    bench = Bench(brokers=2)
    timer = bench.timers["broker-session", 1]
    bench.now_ms += timer.delay_ms - 1
    bench.run(timer.request)
    assert bench.image.is_alive(1)
    left = bench.timers["broker-session", 1]
    assert left.delay_ms == 1
    bench.now_ms += 1
    bench.run(left.request)
    assert bench.image.broker(1).fenced


@pytest.mark.parametrize("levels", [LEVELS, NO_ELR])
def test_the_only_replica_leads_again_when_its_broker_is_back(levels: dict[str, int]) -> None:
    bench = Bench(brokers=1, levels=levels)
    bench.create(topic("t"))
    bench.expire(1)
    gone = bench.partition("t")
    assert gone.leader == -1
    assert (gone.isr, gone.elr) == (((), (1,)) if levels is LEVELS else ((1,), ()))
    bench.beat(1)
    back = bench.partition("t")
    assert (back.leader, back.isr, back.elr, back.last_known_elr) == (1, (1,), (), ())
    assert back.leader_recovery_state == 0


def test_a_broker_that_crashed_leads_again_for_want_of_others_but_must_recover() -> None:
    bench = Bench(brokers=1)
    bench.create(topic("t"))
    bench.expire(1)
    bench.join(1, life=1)
    back = bench.partition("t")
    assert (back.leader, back.isr) == (1, (1,))
    assert back.leader_recovery_state == RECOVERING


def test_a_broker_that_left_cleanly_has_nothing_to_recover() -> None:
    bench = Bench(brokers=1)
    bench.create(topic("t"))
    epoch = bench.epochs[1]
    first = bench.beat(1, want_shut_down=True)
    assert (first.is_fenced, first.should_shut_down) == (False, False)
    assert bench.partition("t").leader == -1
    second = bench.beat(1, want_shut_down=True)
    assert (second.is_fenced, second.should_shut_down) == (True, True)
    assert ("broker-session", 1) not in bench.timers
    bench.join(1, life=1, previous_broker_epoch=epoch)
    back = bench.partition("t")
    assert (back.leader, back.isr, back.leader_recovery_state) == (1, (1,), 0)


def test_a_broker_goes_when_the_others_know_that_it_leads_no_more() -> None:
    bench = Bench(brokers=2)
    bench.create(topic("t", assignments={0: [1, 2]}))
    old = len(bench.log) - 1
    bench.beat(1, want_shut_down=True)
    assert (bench.partition("t").leader, bench.partition("t").isr) == (2, (2,))
    assert bench.image.broker(1).in_controlled_shutdown
    bench.beat(2, offset=old)
    assert not bench.beat(1, want_shut_down=True).should_shut_down
    bench.beat(2)
    assert bench.beat(1, want_shut_down=True).should_shut_down
    assert bench.image.broker(1).fenced


def test_a_broker_that_leads_nothing_stops_at_once() -> None:
    bench = Bench(brokers=1)
    assert bench.beat(1, want_shut_down=True).should_shut_down
    assert bench.beat(1, want_shut_down=True).should_shut_down


def test_a_lost_directory_takes_its_replicas_out_of_sync() -> None:
    bench = Bench(brokers=1)
    bench.join(2, log_dirs=[directory(2), directory(22)])
    bench.create(topic("t", assignments={0: [2, 1]}))
    assert bench.partition("t").leader == 2
    bench.beat(1, offline_log_dirs=[directory(7)])
    bench.create(topic("u", assignments={0: [1, 2]}))
    bench.beat(1, offline_log_dirs=[directory(1)])
    assert bench.partition("u").leader == 2
    assert bench.partition("t").isr == (2,)


def test_a_broker_whose_directories_are_all_cordoned_gets_no_partitions() -> None:
    bench = Bench(brokers=2)
    bench.beat(2, cordoned_log_dirs=[directory(2)])
    bench.create(topic("t", 6))
    assert {p.leader for p in bench.image.topic("t").partitions.values()} == {1}


def test_a_new_leader_of_the_quorum_gives_brokers_a_full_session() -> None:
    bench = Bench(brokers=1)
    bench.machine.state.sessions.clear()
    bench.now_ms += 60_000
    bench.run(Loaded())
    assert bench.refused(registration(1, life=1)).code is ErrorCode.DUPLICATE_BROKER_REGISTRATION
    bench.expire(1)
    assert bench.image.broker(1).fenced


def test_the_broker_of_the_same_process_has_no_old_session_to_wait_for() -> None:
    bench = Bench(brokers=1, combined=True)
    bench.machine.state.sessions.clear()
    bench.run(Loaded())
    assert bench.register(1, life=1) > 0


def test_a_broker_is_unregistered_with_all_it_had() -> None:
    bench = Bench(brokers=2)
    bench.create(topic("t", assignments={0: [1, 2]}))
    bench.ask(UnregisterBrokerRequest(1))
    assert bench.image.broker(1) is None
    assert (bench.partition("t").leader, bench.partition("t").isr) == (2, (2,))
    refusal = bench.refused(UnregisterBrokerRequest(1))
    assert refusal.code is ErrorCode.BROKER_ID_NOT_REGISTERED


def test_controllers_are_registered_too() -> None:
    bench = Bench()
    bench.ask(ControllerRegistrationRequest(controller_id=4))
    assert bench.image.brokers.controllers[4].controller_id == 4


def test_addresses_are_those_of_living_brokers_with_the_listener() -> None:
    bench = Bench(brokers=2)
    bench.register(3)
    image = bench.image
    assert [node.id for node in image.alive_nodes("PLAINTEXT")] == [1, 2]
    assert [node.id for node in image.nodes("PLAINTEXT")] == [1, 2, 3]
    assert image.alive_nodes("OTHER") == []
    (node,) = image.endpoints([2, 3, 9], "PLAINTEXT")
    assert (node.id, node.host, node.port, node.rack) == (2, "host2", 9092, None)
