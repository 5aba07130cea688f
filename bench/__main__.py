"""Compare skylog with Apache Kafka on this machine and print one table.

python -m bench [--quick] [--only NAME] [--rounds N] [--json FILE]
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
import platform
import signal
import sys
import traceback
from pathlib import Path
from typing import Any

from bench import table
from bench.clusters import kafka_classpath
from bench.measure import Figure
from bench.plan import Plan
from bench.scenarios import SCENARIOS

QUICK = {
    "rounds": 1,
    "records": 100_000,
    "latency_records": 4_000,
    "java_records": 30_000,
    "lag_records": 250_000,
    "slow_seconds": 1.5,
    "idle_seconds": 4.0,
    "spark_bytes": 1 << 26,
    "tiered_bytes": 1 << 29,
    "consolidation_seconds": 10.0,
    "consolidation_level_seconds": 60.0,
    "quick": True,
}
# Names for several parts at once.
FAMILIES = ("cluster", "consolidation", "diskless", "spark", "tiered")


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__.split("\n")[0])
    parser.add_argument("--quick", action="store_true", help="one short round, for a first look")
    parser.add_argument(
        "--only",
        action="append",
        choices=sorted([*SCENARIOS, *FAMILIES]),
        help="only this part; repeatable",
    )
    parser.add_argument("--rounds", type=int, help="alternating rounds (3)")
    parser.add_argument("--records", type=int, help="records of a throughput run (500,000)")
    parser.add_argument(
        "--minutes", type=float, help="length of the run of consolidation-level (30)"
    )
    parser.add_argument("--json", type=Path, help="also write all samples to this file")
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
    if given.minutes is not None:
        chosen["consolidation_level_seconds"] = max(given.minutes, 0.5) * 60
    return Plan(
        kafka_classpath(), say=lambda text: print(text, file=sys.stderr, flush=True), **chosen
    )


def _chosen(only: list[str] | None) -> list[str]:
    """The names of parts, in their order."""
    return [
        name for name in SCENARIOS if only is None or name in only or name.partition("-")[0] in only
    ]


def _write(path: Path, machine: dict[str, Any], figures: list[Figure]) -> None:
    rows = [
        {**dataclasses.asdict(figure), "ratio": figure.ratio, "met": figure.met}
        for figure in figures
    ]
    path.write_text(json.dumps({"machine": machine, "figures": rows}, indent=2) + "\n")


def main() -> None:
    given = _options()
    # However the bench ends, its clusters are stopped.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("ended by a signal"))
    plan, machine = _plan(given), _machine()
    figures: list[Figure] = []
    failed = []
    for name in _chosen(given.only):
        try:
            figures += SCENARIOS[name](plan)
        except Exception:  # noqa: BLE001 - what the other parts measured is not lost with it
            traceback.print_exc()
            failed.append(name)
        if given.json is not None:
            _write(given.json, machine, figures)
    title = (
        f"skylog beside Apache Kafka 4.3.1: {machine['cores']} cores, load "
        f"{machine['load'][0]:.1f} before; median ± spread of {plan.rounds}; "
        "1 KiB records, acks=all, 4 partitions unless said"
    )
    table.show(figures, title)
    if failed:
        sys.exit(f"not measured, see above: {', '.join(failed)}")


if __name__ == "__main__":
    main()
