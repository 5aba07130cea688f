"""A node's warning when Python replaces a C module."""

from __future__ import annotations

import json
from io import StringIO

import pytest

from skylog.broker.assembly import run
from skylog.broker.observe import node
from skylog.kernel.clock import SystemClock
from skylog.kernel.logging import hub
from skylog.kernel.metrics import Metrics

SOME = {"walker": True, "compact": False, "columns": True, "rows": False}


def test_a_node_warns_once_when_it_starts(monkeypatch: pytest.MonkeyPatch) -> None:
    lines = StringIO()
    hub().direct(lines, as_json=True, clock=SystemClock())
    try:
        monkeypatch.setattr(run, "native_libraries", lambda: SOME)
        run.warn_without_native()
        monkeypatch.setattr(run, "native_libraries", lambda: dict.fromkeys(SOME, True))
        run.warn_without_native()
    finally:
        hub().direct(None, as_json=False, clock=SystemClock())
    # Work that another test left behind may log too.
    told = [json.loads(line) for line in lines.getvalue().splitlines()]
    (said,) = [line for line in told if "modules" in line]
    assert (said["level"], said["modules"]) == ("WARN", "compact,rows")
    assert "C compiler" in said["remedy"]


def test_metrics_tell_of_each_module(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(node, "native_libraries", lambda: SOME)
    metrics = Metrics()
    metrics.register(node.NativeCollector())
    shown = [line for line in metrics.exposition().decode().splitlines() if line[0] != "#"]
    assert shown == [f'skylog_native{{library="{name}"}} {float(on)}' for name, on in SOME.items()]
