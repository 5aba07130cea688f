"""skylog beside Apache Kafka on this machine: one table.

python -m bench [--quick] [--only NAME] [--rounds N] [--json FILE]
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
import platform
import sys
from pathlib import Path
from typing import Any

from bench import table
from bench.clusters import kafka_classpath
from bench.measure import Figure
from bench.plan import Plan
from bench.scenarios import SCENARIOS

QUICK = {"rounds": 1, "records": 100_000, "latency_records": 4_000, "idle_seconds": 4.0}


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__.split("\n")[0])
    parser.add_argument("--quick", action="store_true", help="one short round, for a first look")
    parser.add_argument(
        "--only", action="append", choices=sorted(SCENARIOS), help="this part alone; repeatable"
    )
    parser.add_argument("--rounds", type=int, help="rounds that take turns (3)")
    parser.add_argument("--records", type=int, help="records of a throughput run (500,000)")
    parser.add_argument("--json", type=Path, help="write all figures here too")
    return parser.parse_args()


def _machine() -> dict[str, Any]:
    return {
        "cores": os.cpu_count(),
        "load": os.getloadavg(),
        "platform": platform.platform(),
        "python": platform.python_version(),
    }


def _plan(given: argparse.Namespace) -> Plan:
    chosen: dict[str, Any] = dict(QUICK) if given.quick else {}
    for name in ("rounds", "records"):
        if getattr(given, name) is not None:
            chosen[name] = max(getattr(given, name), 1)
    return Plan(
        kafka_classpath(), say=lambda text: print(text, file=sys.stderr, flush=True), **chosen
    )


def main() -> None:
    given = _options()
    plan, machine = _plan(given), _machine()
    figures: list[Figure] = []
    for name in given.only or SCENARIOS:
        figures += SCENARIOS[name](plan)
    title = (
        f"skylog beside Apache Kafka 4.3.1: {machine['cores']} cores, load "
        f"{machine['load'][0]:.1f} before; median ± spread of {plan.rounds}; "
        "1 KiB records, acks=all, 4 partitions"
    )
    table.show(figures, title)
    if given.json is not None:
        rows = [
            {**dataclasses.asdict(figure), "ratio": figure.ratio, "met": figure.met}
            for figure in figures
        ]
        given.json.write_text(json.dumps({"machine": machine, "figures": rows}, indent=2) + "\n")


if __name__ == "__main__":
    main()
