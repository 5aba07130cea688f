"""The dashboards use metrics that nodes have."""

from __future__ import annotations

import importlib.util
import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from skylog.wire.apis import ApiKey
from tests.integration.test_diskless_metrics import STAGES

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "dashboards"
ROWS = {
    "brokers": [
        *("Requests", "Traffic", "Connections and memory", "Process"),
        "Compaction and transactions",
    ],
    "controllers": ["Quorum", "Metadata log", "Brokers and partitions", "Requests"],
    "diskless": [
        *("Produce", "Files and PUTs", "Commit", "Fetch and cache"),
        *("Local segments", "Coordinators", "Cleaner, orphans, backup", "Errors"),
    ],
    "replication": ["Partitions", "In-sync replicas", "Followers"],
    "tiered": [
        *("Copy", "Consolidation of diskless topics", "Remote data", "Remote reads"),
        *("Deletion", "Errors"),
    ],
}


@pytest.fixture(scope="module")
def tool() -> Iterator[ModuleType]:
    sys.path.insert(0, str(ROOT / "tools"))
    try:
        spec = importlib.util.spec_from_file_location(
            "generate_dashboard", ROOT / "tools" / "generate_dashboard.py"
        )
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        yield module
    finally:
        sys.path.pop(0)


def load(name: str) -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads((FOLDER / f"skylog-{name}.json").read_text())
    return loaded


@pytest.fixture(params=ROWS)
def name(request: pytest.FixtureRequest) -> str:
    chosen: str = request.param
    return chosen


@pytest.fixture
def board(name: str) -> dict[str, Any]:
    return load(name)


def expressions(board: dict[str, Any]) -> list[str]:
    return [target["expr"] for panel in board["panels"] for target in panel.get("targets", ())]


def test_all_are_written_by_the_tool(tool: ModuleType) -> None:
    assert tool.BOARDS.keys() == ROWS.keys()
    assert {path.name for path in FOLDER.iterdir()} == {f"skylog-{name}.json" for name in ROWS}


def test_the_file_is_what_the_tool_writes(
    tool: ModuleType, name: str, board: dict[str, Any]
) -> None:
    assert board == tool.dashboard(name), "run tools/generate_dashboard.py"


def test_every_metric_is_one_that_a_node_has(tool: ModuleType, board: dict[str, Any]) -> None:
    known = tool.samples()
    assert tool.unknown_metrics(board, known) == []
    for expr in expressions(board):
        assert tool.METRIC.search(expr), expr
    planted = {"panels": [{"targets": [{"expr": "rate(skylog_no_such_total[1m])"}]}]}
    assert tool.unknown_metrics(planted, known) == ["skylog_no_such_total"]


def test_every_stage_that_is_named_exists_and_none_is_left_out() -> None:
    named = {
        stage
        for expr in expressions(load("diskless"))
        for found in re.findall(r'stage=~?"([^"]+)"', expr)
        for stage in found.split("|")
    }
    assert named == STAGES | {"local"}


def test_every_api_that_is_named_exists() -> None:
    for board in map(load, ROWS):
        for expr in expressions(board):
            for found in re.findall(r'api[!=]=?~?"([^"]+)"', expr):
                assert all(api in ApiKey.__members__ for api in found.split("|")), expr


def test_the_format_is_that_of_grafana(name: str, board: dict[str, Any]) -> None:
    rows = [panel["title"] for panel in board["panels"] if panel["type"] == "row"]
    assert rows == ROWS[name]
    ids = [panel["id"] for panel in board["panels"]]
    assert len(set(ids)) == len(ids)
    assert {variable["name"] for variable in board["templating"]["list"]} == {
        "datasource",
        "instance",
    }
    taken: set[tuple[int, int]] = set()
    for panel in board["panels"]:
        place = panel["gridPos"]
        assert place["x"] + place["w"] <= 24
        cells = {
            (x, y)
            for x in range(place["x"], place["x"] + place["w"])
            for y in range(place["y"], place["y"] + place["h"])
        }
        assert not cells & taken, panel["title"]
        taken |= cells
        if panel["type"] != "row":
            assert panel["datasource"] == {"type": "prometheus", "uid": "${datasource}"}
            assert panel["targets"]
            for target in panel["targets"]:
                assert re.fullmatch(r"([^{}]|{{\w+}})+", target["legendFormat"]), panel["title"]


def test_expressions_are_closed(board: dict[str, Any]) -> None:
    for expr in expressions(board):
        for opening, closing in ("()", "{}", "[]"):
            assert expr.count(opening) == expr.count(closing), expr
        assert expr.count('"') % 2 == 0
        assert '{instance=~"$instance"' in expr
