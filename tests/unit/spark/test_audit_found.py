"""What an audit keeps in memory is bounded, and what it counts is exact."""

from __future__ import annotations

import pickle
from collections import Counter

import pytest

from skylog.spark.jobs import audit_found
from skylog.spark.jobs.audit_check import repair_plan
from skylog.spark.jobs.audit_found import Checked, Finding, Findings, Keys, Kind


def findings(kind: Kind, count: int, begin: int = 0) -> list[Finding]:
    return [Finding(kind, "why", "t", 0, begin + i, f"wal/{i % 3}") for i in range(count)]


def test_so_many_of_a_kind_are_kept_and_all_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(audit_found, "FINDINGS_KEPT", 5)
    found = Findings()
    assert not found and found.sound
    found.add(findings(Kind.ORPHAN, 2))
    assert found and found.sound
    for part in range(4):
        other = Findings()
        other.add(findings(Kind.MISSING, 7, 100 * part))
        found.merge(pickle.loads(pickle.dumps(other)))
    assert not found.sound
    assert found.counts == Counter({Kind.MISSING: 28, Kind.ORPHAN: 2})
    kept = list(found)
    assert [one.kind for one in kept] == [Kind.MISSING] * 5 + [Kind.ORPHAN] * 2
    assert [one.offset for one in kept[:5]] == [0, 1, 2, 3, 4]
    damage, waste = repair_plan(found)
    assert (damage["count"], damage["damage"], damage["for"]) == (28, True, "object missing")
    assert damage["objects"] == ["wal/0", "wal/1", "wal/2"]
    assert (waste["count"], waste["damage"]) == (2, False)


def test_keys_are_known_and_take_little_room() -> None:
    one, two = Keys(), Keys()
    one.add(f"wal/{i}" for i in range(0, 2000, 2))
    one.add(f"wal/{i}" for i in range(0, 400, 2))
    two.add(f"wal/{i}" for i in range(1, 2000, 2))
    assert len(one) == 1000
    assert "wal/0" in one and "wal/1" not in one
    one.merge(two)
    one.merge(Keys())
    assert len(one) == 2000
    assert all(f"wal/{i}" in one for i in range(2000))
    assert "wal/2000" not in one and "wal/2000" not in Keys()
    assert len(pickle.dumps(one)) < 2000 * 9 + 200


def test_results_of_tasks_add_up() -> None:
    first, second = Checked(), Checked()
    first.findings.add(findings(Kind.GAP, 1))
    first.objects.add(["wal/a"])
    second.objects.add(["wal/a", "wal/b"])
    second.tallies["t", 0] = audit_found.Tally(1, 2, 3)
    whole = first.merge(second).merge(second)
    assert whole.tallies["t", 0] == audit_found.Tally(2, 4, 6)
    assert len(whole.objects) == 2
    assert whole.findings.counts[Kind.GAP] == 1
