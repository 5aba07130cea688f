"""Three brokers and three controllers as processes, clients under load, and a seeded nemesis.

    python -m tests.chaos.campaign --seconds 600 --seed 7

If an invariant is violated, it prints which, exits with 1 and keeps the cluster's directory.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import confluent_kafka

from skylog.cli.local_cluster import LocalNode
from tests.chaos.disk import SmallDisk
from tests.chaos.history import (
    check_log,
    check_producers,
    check_refused,
    check_same,
    check_transactions,
)
from tests.chaos.load import QUIET, Member, read_all, try_once
from tests.chaos.network import Network
from tests.chaos.replica_logs import compare
from tests.chaos.trial import BROKERS, RACKS, RECOVERY_SECONDS_MAX, Trial
from tests.integration.processes import MAIN

ACTIONS = (
    "kill",
    "kill",
    "kill and start at once",
    "pause",
    "pause",
    "two killed",
    "two paused",
    "terminate",
    "rolling restart",
    "all killed",
    "all stopped",
)
# Faults that need a network namespace for each node.
CUTS = ("one cut off", "one cut off", "two cut off")
# Faults that need a small disk for each node.
FULL = ("full disk",)


class Campaign(Trial):
    """Faults, and the invariants after them."""

    # -- faults --------------------------------------------------------------------------------

    def round(self, action: str) -> None:
        """One fault, and the recovery from it."""
        if self.history.complaints:
            raise AssertionError(self.history.complaints)
        self.done[action] += 1
        getattr(self, "_" + action.replace(" ", "_"))(action)
        if self.nemesis.maybe(0.7):
            took = self._whole()
            self.recoveries["all in sync again"].append(took)

    def _kill(self, action: str) -> None:
        kind, node = self.nemesis.draw_target()
        since = time.monotonic()
        self.nemesis.kill(node)
        took = self._recovered(f"kill of a {node.role}", since)
        self.say(f"kill -9 of node {node.id}, {kind}: {took:.1f} s")
        self.nemesis.start(node)

    def _kill_and_start_at_once(self, action: str) -> None:
        kind, node = self.nemesis.draw_target()
        since = time.monotonic()
        self.nemesis.kill(node)
        self.nemesis.start(node)
        took = self._recovered(action, since)
        self.say(f"kill -9 and start of node {node.id}, {kind}: {took:.1f} s")

    def _pause(self, action: str) -> None:
        self._away(action, self.nemesis.pause, [self.nemesis.draw_target()])

    def _two_paused(self, action: str) -> None:
        self._away(action, self.nemesis.pause, self._two())

    def _one_cut_off(self, action: str) -> None:
        self._away(action, self.nemesis.cut_off, [self.nemesis.draw_target()])

    def _two_cut_off(self, action: str) -> None:
        self._away(action, self.nemesis.cut_off, self._two())

    def _away(
        self,
        action: str,
        hold: Callable[[Sequence[LocalNode], Callable[[], None]], float],
        hit: Sequence[tuple[str, LocalNode]],
    ) -> None:
        """Some nodes are unreachable for longer than their session, and come back."""
        since = time.monotonic()
        nodes = [node for _, node in hit]
        told = ", ".join(f"{node.id} ({kind})" for kind, node in hit)
        brokers = sum(node.is_broker for node in nodes)
        controllers = len(nodes) - brokers
        # Partitions that keep a majority go on meanwhile.
        survives = brokers < 2 and controllers < 2 and len(self.cluster.controllers) > controllers

        def meanwhile() -> None:
            if survives and hold == self.nemesis.cut_off:
                self._served_without(nodes, f"{action}, before it is over", since)
            elif survives:
                self._recovered(f"{action}, before it is over", since)

        seconds = hold(nodes, meanwhile)
        took = self._recovered(f"{action}, since it is over", time.monotonic())
        self.say(f"{action} for {seconds:.1f} s: {told}: {took:.1f} s after that")

    def _two(self) -> list[tuple[str, LocalNode]]:
        first = self.nemesis.draw_target()
        while True:
            second = self.nemesis.draw_target()
            if second[1] != first[1]:
                return [first, second]

    def _two_killed(self, action: str) -> None:
        hit = self._two()
        nodes = [node for _, node in hit]
        self.nemesis.kill(*nodes)
        since = time.monotonic()
        self.nemesis.start(*nodes)
        took = self._recovered(action, since)
        told = ", ".join(f"{node.id} ({kind})" for kind, node in hit)
        self.say(f"kill -9 at once of {told}: {took:.1f} s after their start")

    def _terminate(self, action: str) -> None:
        kind, node = self.nemesis.draw_target()
        since = time.monotonic()
        self.nemesis.terminate(node)
        gone = time.monotonic() - since
        took = self._recovered(action, since)
        self.say(f"SIGTERM of node {node.id}, {kind}: gone in {gone:.1f} s, {took:.1f} s")
        self.nemesis.start(node)

    def _rolling_restart(self, action: str) -> None:
        for node in self.cluster.nodes:
            self._whole()
            since = time.monotonic()
            self.nemesis.terminate(node)
            self.nemesis.start(node)
            self._recovered(f"{action}, one", since)
        self.say("rolling restart of all six")

    def _all_killed(self, action: str) -> None:
        self.nemesis.kill(*self.cluster.nodes)
        self._all_start(action)

    def _all_stopped(self, action: str) -> None:
        brokers = self.nemesis.brokers()
        self.nemesis.terminate(*brokers)
        self.nemesis.terminate(*(node for node in self.cluster.nodes if node not in brokers))
        self._all_start(action)

    def _all_start(self, action: str) -> None:
        since = time.monotonic()
        self.nemesis.start(*self.cluster.nodes)
        self.say(f"{action}: {self._recovered(action, since):.1f} s after their start")

    def _full_disk(self, action: str) -> None:
        """A node with a full disk refuses records; partitions that other nodes lead go on."""
        node = self.nemesis.leader("classic")
        self.disks[node.id].fill()
        since = time.monotonic()
        self._until(f"{action}: refused", lambda: self._refuses(node), RECOVERY_SECONDS_MAX)
        # The coordinator of a diskless partition may be on the node with the full disk.
        others = sorted({*self.everything} - self.nemesis.led(node))
        others = [place for place in others if place[0] != "diskless"]
        left = self.probe.not_taken(RECOVERY_SECONDS_MAX, others)
        if left:
            raise TimeoutError(f"V15 {action}: {left}, which others lead, do not go on")
        self.recoveries[f"{action}, what others lead"].append(time.monotonic() - since)
        self.disks[node.id].free()
        took = self._recovered(f"{action}, since there is room", time.monotonic())
        self.say(f"full disk of node {node.id}: {took:.1f} s after it had room again")

    def _refuses(self, node: LocalNode) -> bool:
        led = sorted(place for place in self.nemesis.led(node) if place[0] == "classic")
        error = try_once(self.history, self.bootstrap, led[0]) if led else None
        return error is not None and error.code() == confluent_kafka.KafkaError.KAFKA_STORAGE_ERROR

    def run(self, seconds: float, actions: Sequence[str] = ACTIONS) -> None:
        """Random rounds until the time is over; each action once before any is repeated."""
        end = time.monotonic() + seconds
        left = list(dict.fromkeys(actions))
        while time.monotonic() < end:
            action = self.nemesis.draw(left or actions)
            if action in left:
                left.remove(action)
            self.round(action)

    # -- invariants ----------------------------------------------------------------------------

    def verify(self) -> dict[str, Any]:
        """Heal, stop all clients, and check everything; raises if an invariant is violated."""
        self.nemesis.start(*self.cluster.nodes)
        self._recovered("end", time.monotonic())
        self._whole()
        for worker in self.workers:
            worker.end()
        self._check()
        if self.tiered or self.consolidated:
            self._check_store()
        self._whole()
        brokers = self.nemesis.brokers()
        self.nemesis.terminate(*brokers)
        self.nemesis.terminate(*(node for node in self.cluster.nodes if node not in brokers))
        directories = [self.cluster.directory / f"node-{node.id}" for node in brokers]
        complaints, same = compare(directories, self.tiered)
        self.history.complaints += complaints
        if self.history.complaints:
            raise AssertionError("\n".join(self.history.complaints))
        return self._report(same)

    def _check(self) -> None:
        found = self.history.complaints
        logs = read_all(self.bootstrap, self.everything)
        committed = {"isolation.level": "read_committed"}
        visible = read_all(self.bootstrap, self.transactional, **committed)
        for place in self.plain:
            found += check_log(place, logs[place], dense=True)
            found += check_refused(self.history, place, logs[place])
            found += check_producers(self.history, place, logs[place])
            for name, seen in self.history.followed.items():
                found += check_log(place, seen[place], dense=True)
                found += check_same(place, logs[place], seen[place], name)
        for rack in RACKS:
            client_id = {"client.id": f"checker,diskless_az={rack}"}
            for place, log in read_all(self.bootstrap, self.plain, **client_id).items():
                if log != logs[place]:
                    found.append(f"V2 {place}: another log from rack {rack}")
        found += check_transactions(self.history.outcomes, visible, "transactional")
        self._check_group()

    def _check_store(self) -> None:
        """Every remote segment is as recorded, and together they have what is not local."""
        config = self.cluster.directory / f"node-{self.nemesis.brokers()[0].id}.properties"
        given = ["tiered", "verify", "-b", self.bootstrap, "--server-config", str(config)]
        done = subprocess.run(
            [sys.executable, "-c", MAIN, *given], capture_output=True, text=True, check=False
        )
        if done.returncode:
            self.history.complaints.append(f"remote segments: {done.stdout}{done.stderr}")

    def _check_group(self) -> None:
        asked = [confluent_kafka.TopicPartition(*place) for place in self.plain]
        settings = {"bootstrap.servers": self.bootstrap, "group.id": "workers", **QUIET}
        consumer = confluent_kafka.Consumer(settings)
        try:
            for each in consumer.committed(asked, timeout=60):
                place = (each.topic, each.partition)
                self.commits.begin(place, each.offset, self.commits.certain.get(place, 0), "end")
        finally:
            consumer.close()

    def _report(self, same: int) -> dict[str, Any]:
        return {
            "rounds": sum(self.done.values()),
            "actions": dict(self.done),
            "acknowledged": self.history.acknowledged(),
            "followed": sum(
                len(log) for seen in self.history.followed.values() for log in seen.values()
            ),
            "transactions": dict(Counter(self.history.outcomes.values())),
            "group read": sum(w.done for w in self.workers if isinstance(w, Member)),
            "bytes the same on all replicas": same,
            "seconds until every partition takes records": {
                what: {
                    "n": len(took),
                    "p50": round(statistics.median(took), 2),
                    "max": round(max(took), 2),
                }
                for what, took in sorted(self.recoveries.items())
            },
        }


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--seconds", type=float, default=300)
    arguments.add_argument("--seed", type=int, default=1)
    arguments.add_argument("--controllers", type=int, default=3)
    arguments.add_argument("--network", action="store_true", help="cut nodes off, too; as root")
    arguments.add_argument("--disks", action="store_true", help="fill disks, too; as root")
    arguments.add_argument("--tiered", action="store_true", help="classic topics are tiered")
    arguments.add_argument("--consolidated", action="store_true", help="diskless topics are, too")
    arguments.add_argument("--actions", help="comma-separated; all by default")
    arguments.add_argument("--override", action="append", default=[], metavar="NAME=VALUE")
    given = arguments.parse_args()
    directory = Path(tempfile.mkdtemp(prefix="skylog-chaos-"))
    settings = dict(pair.split("=", 1) for pair in given.override)
    possible = ACTIONS + CUTS * given.network + FULL * given.disks
    actions = given.actions.split(",") if given.actions else possible
    print(f"seed {given.seed}, in {directory}", flush=True)
    with contextlib.ExitStack() as stack:
        network = None
        if given.network:
            network = stack.enter_context(Network(BROKERS + given.controllers))
        try:
            campaign = Campaign(
                directory,
                given.seed,
                _say,
                given.controllers,
                settings,
                network=network,
                tiered=given.tiered,
                consolidated=given.consolidated,
            )
            if given.disks:
                for node in campaign.nemesis.brokers():
                    disk = SmallDisk(directory / f"node-{node.id}")
                    campaign.disks[node.id] = stack.enter_context(disk)
            with campaign:
                campaign.run(given.seconds, actions)
                report = campaign.verify()
        except (AssertionError, TimeoutError) as failure:
            print(f"FAILED with seed {given.seed}; {directory} is kept\n{failure}", flush=True)
            sys.exit(1)
    print(json.dumps(report, indent=2))


def _say(text: str) -> None:
    print(text, flush=True)


if __name__ == "__main__":
    main()
