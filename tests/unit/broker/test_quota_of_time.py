"""Clients may be limited in the time that their requests take."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from skylog.broker.net.quota_gate import QuotaGate
from skylog.kernel.clock import ManualClock
from skylog.security.quotas import ClientQuotas


def context() -> Any:
    return SimpleNamespace(principal="User:alice", client_id="c", throttle_ms=0)


def test_time_is_measured_only_if_there_is_a_quota() -> None:
    quotas = ClientQuotas()
    gate = QuotaGate(quotas, ManualClock())
    assert not gate.counts_time
    quotas.update({"user": "alice"}, "request_percentage", 1.0)
    assert gate.counts_time


def test_a_client_above_its_quota_waits() -> None:
    quotas, clock = ClientQuotas(), ManualClock()
    quotas.update({"user": "alice"}, "request_percentage", 1.0)
    gate = QuotaGate(quotas, clock)
    little, much = context(), context()
    gate.worked(little, 0.0001)
    assert little.throttle_ms == 0
    gate.worked(much, 5.0)
    assert 0 < much.throttle_ms <= 1000
    other = SimpleNamespace(principal="User:bob", client_id="c", throttle_ms=0)
    gate.worked(other, 5.0)  # type: ignore[arg-type]
    assert other.throttle_ms == 0
