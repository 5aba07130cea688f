"""What a gigabyte costs one broker: CPU for producing and consuming, diskless and classic.

``python -m bench.cost [--records N] [--rounds N] [--only diskless|classic] [--sync]``. CPU time
depends less on other work of the machine than throughput does, so use this to compare two versions
of the code. Alternate them: the kernel's cost of a write depends on the state of its memory.
"""

from __future__ import annotations

import argparse
import statistics
from collections.abc import Callable
from typing import NamedTuple

import psutil

from bench import clients
from bench.clusters import Skylog
from bench.diskless import DISKLESS, FILES, PARTITIONS, PRODUCE_REQUESTS, UNSYNCED, metrics
from bench.measure import GIGABYTE, MEGABYTE

KINDS = {"diskless": DISKLESS, "classic": {}}
ROLES = ("produce", "consume-eagerly")


class Cost(NamedTuple):
    """CPU seconds for each gigabyte."""

    user: float
    system: float

    @property
    def total(self) -> float:
        return self.user + self.system


def _cost(pid: int, gigabytes: float, work: Callable[[], object]) -> Cost:
    before = psutil.Process(pid).cpu_times()
    work()
    after = psutil.Process(pid).cpu_times()
    return Cost((after.user - before.user) / gigabytes, (after.system - before.system) / gigabytes)


def measure(kind: str, records: int, rounds: int, settings: dict[str, str]) -> None:
    """Print one line for each role, and the broker's memory at the end."""
    gigabytes = records * clients.RECORD_BYTES / GIGABYTE
    found: dict[str, list[Cost]] = {role: [] for role in ROLES}
    with Skylog(settings) as cluster:
        topics = clients.Topics(cluster.bootstrap)
        for number in range(-1, rounds):  # the first one is a warm-up
            topic = f"round-{number}"
            topics.create([topic], PARTITIONS, **KINDS[kind])
            before = metrics(cluster)
            for role in ROLES:

                def work(role: str = role, topic: str = topic) -> None:
                    clients.librdkafka(role, cluster.bootstrap, topic, records, PARTITIONS)

                cost = _cost(cluster.pid, gigabytes, work)
                if number >= 0:
                    found[role].append(cost)
            after = metrics(cluster)
            topics.delete([topic])
        requests = (after[PRODUCE_REQUESTS] - before[PRODUCE_REQUESTS]) / gigabytes
        files = (after.get(FILES, 0) - before.get(FILES, 0)) / gigabytes
        resident = psutil.Process(cluster.pid).memory_info().rss / MEGABYTE
    for role, costs in found.items():
        total = [cost.total for cost in costs]
        middle = [statistics.median(part) for part in zip(*costs, strict=True)]
        print(
            f"{kind:8} {role:15} {statistics.median(total):.2f} s/GB"
            f" ({min(total):.2f}-{max(total):.2f}): user {middle[0]:.2f}, system {middle[1]:.2f}"
        )
    print(
        f"{kind:8} {requests:.0f} requests and {files:.0f} files for a GB,"
        f" {resident:.0f} MB resident",
        flush=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.cost", description=__doc__)
    parser.add_argument("--records", type=int, default=500_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", choices=KINDS)
    parser.add_argument("--sync", action="store_true", help="objects are synced, as shipped")
    given = parser.parse_args()
    for kind in KINDS:
        if given.only in (None, kind):
            measure(kind, given.records, given.rounds, {} if given.sync else UNSYNCED)


if __name__ == "__main__":
    main()
