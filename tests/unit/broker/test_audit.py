"""Refusals are logged, within a limit."""

from __future__ import annotations

import pytest

from skylog.broker.observe import audit
from skylog.kernel.acl import AclOperation, ResourceType
from skylog.kernel.clock import ManualClock
from skylog.kernel.limits import REFUSALS_LOGGED_PER_SECOND_MAX


class Lines:
    def __init__(self) -> None:
        self.refused: list[str] = []
        self.counts: list[int] = []

    def info(self, _: str, *, name: str, **__: str) -> None:
        self.refused.append(name)

    def warning(self, _: str, *, count: int) -> None:
        self.counts.append(count)


def test_so_many_in_a_second_and_then_their_number(monkeypatch: pytest.MonkeyPatch) -> None:
    lines, clock = Lines(), ManualClock()
    monkeypatch.setattr(audit, "log", lines)
    refused = audit.RefusalLog(clock)

    def refuse(count: int) -> None:
        for number in range(count):
            refused("User:a", "host", AclOperation.READ, ResourceType.TOPIC, str(number))

    refuse(REFUSALS_LOGGED_PER_SECOND_MAX)
    assert len(lines.refused) == REFUSALS_LOGGED_PER_SECOND_MAX
    refuse(7)
    assert (len(lines.refused), lines.counts) == (REFUSALS_LOGGED_PER_SECOND_MAX, [])
    clock.advance(1000)
    refuse(1)
    assert (len(lines.refused), lines.counts) == (REFUSALS_LOGGED_PER_SECOND_MAX + 1, [7])
