"""Three brokers and three controllers as processes, clients at work, and a seeded nemesis.

    python -m tests.chaos.campaign --seconds 600 --seed 7

Ends with exit code 1 and what is wrong, if anything is; the cluster's directory is kept then.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import confluent_kafka
from confluent_kafka.admin import AdminClient, NewTopic

from skylog.cli.local_cluster import LocalCluster, LocalNode, Plan
from tests.chaos.history import (
    Commits,
    History,
    Place,
    check_log,
    check_producers,
    check_same,
    check_transactions,
)
from tests.chaos.load import (
    QUIET,
    Follower,
    Member,
    Probe,
    Sender,
    Transactor,
    Worker,
    read_all,
)
from tests.chaos.nemesis import Nemesis
from tests.chaos.replica_logs import compare

RACKS = ("a", "b", "c")
PARTITIONS = 3
SESSION_SECONDS = 6.0
RECOVERY_SECONDS_MAX = 90.0
WHOLE_SECONDS_MAX = 120.0
SETTINGS: Mapping[str, str] = {
    "http.listener": "",
    "broker.heartbeat.interval.ms": "500",
    "group.initial.rebalance.delay.ms": "0",
    "offsets.topic.num.partitions": "4",
    "transaction.state.log.num.partitions": "4",
    "diskless.metadata.topic.num.partitions": "4",
    # Logs of replicas are compared: cleaned ones need not be the same.
    "log.cleaner.enable": "false",
}
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


class Campaign:
    """One cluster, one history."""

    def __init__(
        self,
        directory: Path,
        seed: int,
        say: Callable[[str], None] = print,
        controllers: int = 3,
        settings: Mapping[str, str] | None = None,
        session_seconds: float = SESSION_SECONDS,
    ) -> None:
        session = {"broker.session.timeout.ms": str(int(session_seconds * 1000))}
        plan = Plan(3, controllers, RACKS, {**SETTINGS, **session, **(settings or {})})
        self.cluster = LocalCluster.create(directory, plan)
        self.bootstrap = self.cluster.bootstrap
        self.nemesis = Nemesis(self.cluster, seed, session_seconds)
        self.history = History()
        self.commits = Commits(complaints=self.history.complaints)
        self.done: Counter[str] = Counter()
        self.recoveries: dict[str, list[float]] = defaultdict(list)
        self._say = say
        self._begin = time.monotonic()
        self.plain = [(topic, n) for topic in ("classic", "diskless") for n in range(PARTITIONS)]
        self.transactional: list[Place] = [("transactional", n) for n in range(PARTITIONS)]
        self.workers: list[Worker] = []

    def say(self, text: str) -> None:
        self._say(f"{time.monotonic() - self._begin:7.1f} s  {text}")

    # -- beginning and end ---------------------------------------------------------------------

    def __enter__(self) -> Campaign:
        try:
            self._set_up()
        except BaseException:
            self.nemesis.end()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        for worker in self.workers:
            worker.stop()
        self.nemesis.end()

    def _set_up(self) -> None:
        self.nemesis.start(*self.cluster.nodes)
        admin = AdminClient({"bootstrap.servers": self.bootstrap, **QUIET})
        self._until("the cluster is up", lambda: len(self.nemesis.metadata().brokers) == 3, 120)
        safe = {"min.insync.replicas": "2"}
        wanted = [
            NewTopic("classic", PARTITIONS, 3, config=safe),
            NewTopic("transactional", PARTITIONS, 3, config=safe),
            NewTopic("diskless", PARTITIONS, -1, config={"diskless.enable": "true"}),
        ]
        for made in admin.create_topics(wanted, operation_timeout=60).values():
            made.result(60)
        everything = [*self.plain, *self.transactional]
        self.probe = Probe(self.history, self.bootstrap, everything)
        half = len(self.plain) // 2
        self.workers = [
            Sender("p1", self.history, self.bootstrap, self.plain[:half], 100),
            Sender("p2", self.history, self.bootstrap, self.plain[half:], 100),
            Sender("p3", self.history, self.bootstrap, self.plain, 50),
            Transactor("t1", self.history, self.bootstrap, self.transactional),
            Follower("follower", self.history, self.bootstrap, self.plain),
            *(
                Member(name, self.history, self.bootstrap, ["classic", "diskless"], self.commits)
                for name in ("m1", "m2")
            ),
        ]
        for worker in self.workers:
            worker.start()
        self._recovered("start", time.monotonic())
        self._whole()

    def _until(self, what: str, found: Callable[[], bool], seconds_max: float) -> float:
        begin = time.monotonic()
        while True:
            try:
                if found():
                    return time.monotonic() - begin
            except confluent_kafka.KafkaException:
                pass
            if time.monotonic() - begin > seconds_max:
                raise TimeoutError(f"V15 not in {seconds_max} s: {what}")
            time.sleep(0.1)

    def _recovered(self, what: str, since: float) -> float:
        """Wait until every partition takes records and every client goes on."""
        if not self.probe.all_taken(RECOVERY_SECONDS_MAX):
            raise TimeoutError(f"V15 {what}: not all partitions take records again")
        taken = time.monotonic() - since
        self.recoveries[what].append(taken)
        before = {worker.name: worker.done for worker in self.workers}

        def moves() -> bool:
            # A group may give all that is there to one member for a while.
            grown = {w.name for w in self.workers if w.done > before[w.name]}
            members = {"m1", "m2"}
            return bool(grown & members) and grown | members >= set(before)

        try:
            self._until(f"every client goes on after {what}", moves, RECOVERY_SECONDS_MAX)
        except TimeoutError as error:
            stuck = [w.name for w in self.workers if w.done == before[w.name]]
            raise TimeoutError(f"{error}: {stuck} do not") from None
        self.recoveries[f"{what}: all clients"].append(time.monotonic() - since)
        return taken

    def _whole(self) -> float:
        return self._until("all replicas are in sync", self.nemesis.whole, WHOLE_SECONDS_MAX)

    # -- what is done to it --------------------------------------------------------------------

    def round(self, action: str) -> None:
        """One fault, and the way back."""
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
        self._pause_all(action, [self.nemesis.draw_target()])

    def _two_paused(self, action: str) -> None:
        self._pause_all(action, self._two())

    def _pause_all(self, action: str, hit: Sequence[tuple[str, LocalNode]]) -> None:
        since = time.monotonic()
        nodes = [node for _, node in hit]
        told = ", ".join(f"{node.id} ({kind})" for kind, node in hit)
        brokers = sum(node.is_broker for node in nodes)
        controllers = len(nodes) - brokers
        # What a majority is left of goes on meanwhile.
        survives = brokers < 2 and controllers < 2 and len(self.cluster.controllers) > controllers

        def meanwhile() -> None:
            if survives:
                self._recovered(f"{action}, before it goes on", since)

        seconds = self.nemesis.pause(nodes, meanwhile)
        took = self._recovered(f"{action}, since it goes on", time.monotonic())
        self.say(f"SIGSTOP for {seconds:.1f} s of {told}: {took:.1f} s after SIGCONT")

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

    def run(self, seconds: float, actions: Sequence[str] = ACTIONS) -> None:
        """Rounds as they are drawn, until the time is over; each action once before any twice."""
        end = time.monotonic() + seconds
        left = list(dict.fromkeys(actions))
        while time.monotonic() < end:
            action = self.nemesis.draw(left or actions)
            if action in left:
                left.remove(action)
            self.round(action)

    # -- what must hold ------------------------------------------------------------------------

    def verify(self) -> dict[str, Any]:
        """Heal, let every client end, and look at everything; raises if anything is wrong."""
        self.nemesis.start(*self.cluster.nodes)
        self._recovered("end", time.monotonic())
        self._whole()
        for worker in self.workers:
            worker.end()
        self._check()
        self._whole()
        brokers = self.nemesis.brokers()
        self.nemesis.terminate(*brokers)
        self.nemesis.terminate(*(node for node in self.cluster.nodes if node not in brokers))
        complaints, same = compare(self.cluster.directory / f"node-{n.id}" for n in brokers)
        self.history.complaints += complaints
        if self.history.complaints:
            raise AssertionError("\n".join(self.history.complaints))
        return self._report(same)

    def _check(self) -> None:
        found = self.history.complaints
        logs = read_all(self.bootstrap, [*self.plain, *self.transactional])
        committed = {"isolation.level": "read_committed"}
        visible = read_all(self.bootstrap, self.transactional, **committed)
        for place in self.plain:
            found += check_log(place, logs[place], dense=True)
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
    arguments.add_argument("--actions", default=",".join(ACTIONS))
    arguments.add_argument("--override", action="append", default=[], metavar="NAME=VALUE")
    given = arguments.parse_args()
    directory = Path(tempfile.mkdtemp(prefix="skylog-chaos-"))
    settings = dict(pair.split("=", 1) for pair in given.override)
    print(f"seed {given.seed}, in {directory}", flush=True)
    try:
        with Campaign(directory, given.seed, _say, given.controllers, settings) as campaign:
            campaign.run(given.seconds, given.actions.split(","))
            report = campaign.verify()
    except (AssertionError, TimeoutError) as failure:
        print(f"FAILED with seed {given.seed}; {directory} is kept\n{failure}", flush=True)
        sys.exit(1)
    print(json.dumps(report, indent=2))


def _say(text: str) -> None:
    print(text, flush=True)


if __name__ == "__main__":
    main()
