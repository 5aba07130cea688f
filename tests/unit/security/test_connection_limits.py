"""Connection limits: counts and rates, per listener, broker and address."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skylog.kernel.clock import ManualClock
from skylog.kernel.errors import ConfigError
from skylog.security.connection_limits import (
    ConnectionLimits,
    ConnectionSettings,
    ListenerLimits,
    host_address,
    parse_ip_overrides,
)

LISTENERS = {"CLIENT": ListenerLimits(), "INTERNAL": ListenerLimits()}


def test_limits_of_broker_listener_and_address() -> None:
    configured = ConnectionSettings(
        connections_max=3,
        per_ip_max=2,
        per_ip_overrides={"10.0.0.9": 0},
        listeners={**LISTENERS, "TINY": ListenerLimits(connections_max=1)},
        inter_broker_listener="INTERNAL",
    )
    connections = ConnectionLimits(configured, ManualClock())
    assert connections.opened("TINY", "10.0.0.1")
    assert not connections.opened("TINY", "10.0.0.2")
    connections.closed("TINY", "10.0.0.2")
    assert connections.opened("CLIENT", "10.0.0.1")
    assert not connections.opened("CLIENT", "10.0.0.1")  # the third of this address
    connections.closed("CLIENT", "10.0.0.1")
    assert not connections.opened("CLIENT", "10.0.0.9")
    connections.closed("CLIENT", "10.0.0.9")
    assert connections.opened("CLIENT", "10.0.0.3")
    assert not connections.opened("CLIENT", "10.0.0.4")  # the broker is full
    assert connections.opened("INTERNAL", "10.0.0.5")  # but not for brokers
    assert len(connections) == 5


def test_an_only_listener_is_not_spared() -> None:
    configured = ConnectionSettings(
        connections_max=1,
        listeners={"INTERNAL": ListenerLimits()},
        inter_broker_listener="INTERNAL",
    )
    connections = ConnectionLimits(configured, ManualClock())
    assert connections.opened("INTERNAL", "a")
    assert not connections.opened("INTERNAL", "b")


def test_changed_limits_count_for_new_connections() -> None:
    connections = ConnectionLimits(ConnectionSettings(listeners=LISTENERS), ManualClock())
    assert connections.opened("CLIENT", "a")
    connections.update(ConnectionSettings(connections_max=1, listeners=LISTENERS))
    assert not connections.opened("CLIENT", "b")


def test_a_rate_that_is_exceeded_delays_and_recovers() -> None:
    clock = ManualClock()
    configured = ConnectionSettings(rate_max=10, listeners=LISTENERS, window_count=2)
    connections = ConnectionLimits(configured, clock)
    for _ in range(10):
        assert connections.opened("CLIENT", "a")
        assert connections.accept_delay_ms("CLIENT") == 0
    assert connections.opened("CLIENT", "a")
    assert connections.accept_delay_ms("CLIENT") == 100
    clock.advance(100)
    assert connections.accept_delay_ms("CLIENT") == 0


def test_a_delay_is_never_longer_than_a_window() -> None:
    configured = ConnectionSettings(listeners={"CLIENT": ListenerLimits(rate_max=1)})
    connections = ConnectionLimits(configured, ManualClock())
    for _ in range(1000):
        connections.opened("CLIENT", "a")
    assert connections.accept_delay_ms("CLIENT") == 1000


def test_the_rate_of_an_address_refuses() -> None:
    clock = ManualClock()
    connections = ConnectionLimits(ConnectionSettings(listeners=LISTENERS, window_count=2), clock)
    connections.update_ip_rate(None, 1)
    connections.update_ip_rate("10.0.0.2", 2)
    assert connections.opened("CLIENT", "10.0.0.1")
    assert not connections.opened("CLIENT", "10.0.0.1")
    assert [connections.opened("CLIENT", "10.0.0.2") for _ in range(3)] == [True, True, False]
    connections.update_ip_rate("10.0.0.2", None)
    assert not connections.opened("CLIENT", "10.0.0.2")
    clock.advance(10_000)
    assert connections.opened("CLIENT", "10.0.0.1")
    connections.update_ip_rate(None, None)
    assert connections.opened("CLIENT", "10.0.0.1")


@settings(max_examples=80, deadline=None)
@given(st.lists(st.tuples(st.sampled_from("ox"), st.sampled_from("PQ"), st.sampled_from("abc"))))
def test_counts_agree_with_a_model(steps: list[tuple[str, str, str]]) -> None:
    configured = ConnectionSettings(
        connections_max=4,
        per_ip_max=2,
        listeners={"P": ListenerLimits(connections_max=3), "Q": ListenerLimits()},
    )
    connections = ConnectionLimits(configured, ManualClock())
    open_now: Counter[tuple[str, str]] = Counter()
    for action, listener, address in steps:
        if action == "x":
            if open_now[listener, address]:
                connections.closed(listener, address)
                open_now[listener, address] -= 1
            continue
        on_listener = sum(n for (where, _), n in open_now.items() if where == listener)
        of_address = sum(n for (_, who), n in open_now.items() if who == address)
        fits = open_now.total() < 4 and of_address < 2 and (listener == "Q" or on_listener < 3)
        assert connections.opened(listener, address) is fits
        open_now[listener, address] += 1
    assert len(connections) == open_now.total()


@pytest.mark.parametrize(
    ("address", "java"),
    [
        ("10.0.0.1", "10.0.0.1"),
        ("::1", "0:0:0:0:0:0:0:1"),
        ("2001:db8::ff00:42:8329", "2001:db8:0:0:0:ff00:42:8329"),
        ("fe80::1%eth0", "fe80:0:0:0:0:0:0:1%eth0"),
        ("::ffff:10.1.2.3", "10.1.2.3"),
        ("local", "local"),
    ],
)
def test_addresses_are_written_as_java_does(address: str, java: str) -> None:
    assert host_address(address) == java


def test_overrides_are_read_and_names_resolved() -> None:
    def resolve(host: str) -> str:
        if host == "nowhere":
            raise OSError("no such host")
        return "10.0.0.7" if host == "seven" else host

    assert parse_ip_overrides("seven:1, 10.0.0.8:200,[::1]:3", resolve) == {
        "10.0.0.7": 1,
        "10.0.0.8": 200,
        "0:0:0:0:0:0:0:1": 3,
    }
    for wrong in ("10.0.0.1", "a:b", ":5", "nowhere:1"):
        with pytest.raises(ConfigError, match=r"max\.connections\.per\.ip\.overrides"):
            parse_ip_overrides(wrong, resolve)
