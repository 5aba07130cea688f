"""A cluster of processes, its clients, and what they saw."""

from __future__ import annotations

import time
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Self

import confluent_kafka
from confluent_kafka.admin import AdminClient, NewTopic

from skylog.cli.local_cluster import LocalCluster, LocalNode, Plan
from tests.chaos.disk import SmallDisk
from tests.chaos.history import Commits, History, Place
from tests.chaos.load import QUIET, Follower, Member, Probe, Sender, Transactor, Worker
from tests.chaos.looping import Looper
from tests.chaos.nemesis import Nemesis
from tests.chaos.network import Network, NetworkedCluster

BROKERS = 3
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
    # Logs of replicas are compared, and compacted ones may differ.
    "log.cleaner.enable": "false",
}
# Small segments, as in Kafka's own tests: they are full after a few batches, and dropped locally
# as soon as they are copied.
TIERED_TOPIC: Mapping[str, str] = {
    "remote.storage.enable": "true",
    "segment.index.bytes": "600",
    "index.interval.bytes": "1",
    "local.retention.bytes": "1",
    "file.delete.delay.ms": "1000",
}
TIERED: Mapping[str, str] = {
    "remote.log.storage.system.enable": "true",
    "remote.log.manager.task.interval.ms": "500",
    "log.retention.check.interval.ms": "300",
    "rlmm.config.remote.log.metadata.topic.num.partitions": "4",
}
# Segments are cut, and leave the WAL, soon.
CONSOLIDATED_TOPIC: Mapping[str, str] = {"remote.storage.enable": "true", "segment.ms": "2000"}
CONSOLIDATED: Mapping[str, str] = {
    **TIERED,
    "diskless.tiering.prune.interval.ms": "500",
    "diskless.tiering.prune.delay.ms": "1000",
    "diskless.metadata.backup.interval.ms": "500",
}


class Trial:
    """One cluster, one history."""

    def __init__(
        self,
        directory: Path,
        seed: int,
        say: Callable[[str], None] = print,
        controllers: int = 3,
        settings: Mapping[str, str] | None = None,
        session_seconds: float = SESSION_SECONDS,
        network: Network | None = None,
        *,
        tiered: bool = False,
        consolidated: bool = False,
    ) -> None:
        self.tiered = ("classic", "transactional") if tiered else ()
        self.consolidated = ("diskless",) if consolidated else ()
        remote = CONSOLIDATED if consolidated else TIERED if tiered else {}
        default = {"diskless.tiering.default": str(consolidated).lower()}
        session = {"broker.session.timeout.ms": str(int(session_seconds * 1000))}
        plan = Plan(
            BROKERS,
            controllers,
            RACKS,
            {**SETTINGS, **session, **remote, **default, **(settings or {})},
            network.hosts if network else (),
        )
        if network is None:
            self.cluster = LocalCluster.create(directory, plan)
        else:
            self.cluster = NetworkedCluster.create(directory, plan)
            self.cluster.network = network
        self.bootstrap = self.cluster.bootstrap
        self.nemesis = Nemesis(self.cluster, seed, session_seconds, network)
        self.history = History()
        self.commits = Commits(complaints=self.history.complaints)
        self.done: Counter[str] = Counter()
        self.recoveries: dict[str, list[float]] = defaultdict(list)
        self._say = say
        self._begin = time.monotonic()
        self.plain = [(topic, n) for topic in ("classic", "diskless") for n in range(PARTITIONS)]
        self.transactional: list[Place] = [("transactional", n) for n in range(PARTITIONS)]
        self.everything = [*self.plain, *self.transactional]
        self.workers: list[Worker] = []
        # Small disks, by broker.
        self.disks: dict[int, SmallDisk] = {}

    def say(self, text: str) -> None:
        self._say(f"{time.monotonic() - self._begin:7.1f} s  {text}")

    # -- beginning and end ---------------------------------------------------------------------

    def __enter__(self) -> Self:
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
        self._until(
            "the cluster is up", lambda: len(self.nemesis.metadata().brokers) == BROKERS, 120
        )
        safe = {"min.insync.replicas": "2", **(TIERED_TOPIC if self.tiered else {})}
        more = CONSOLIDATED_TOPIC if self.consolidated else {}
        diskless = {"diskless.enable": "true", **more}
        wanted = [
            NewTopic("classic", PARTITIONS, 3, config=safe),
            NewTopic("transactional", PARTITIONS, 3, config=safe),
            NewTopic("diskless", PARTITIONS, -1, config=diskless),
        ]
        for made in admin.create_topics(wanted, operation_timeout=60).values():
            made.result(60)
        self.probe = Probe(self.history, self.bootstrap, self.everything)
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
        loops = [place for place in self.plain if place[0] in self.tiered + self.consolidated]
        if loops:
            self.workers.append(Looper("looper", self.history, self.bootstrap, loops))
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
        left = self.probe.not_taken(RECOVERY_SECONDS_MAX)
        if left:
            raise TimeoutError(f"V15 {what}: {left} take no records again")
        taken = time.monotonic() - since
        self.recoveries[what].append(taken)
        before = {worker.name: worker.done for worker in self.workers}

        def moves() -> bool:
            if self.history.complaints:
                raise AssertionError(self.history.complaints)
            # A group may assign everything to one member for a while.
            grown = {w.name for w in self.workers if w.done > before[w.name]}
            members = {"m1", "m2"}
            return bool(grown & members) and grown | members >= set(before)

        try:
            self._until(f"every client goes on after {what}", moves, RECOVERY_SECONDS_MAX)
        except TimeoutError as error:
            stuck = {w.name: w.where() for w in self.workers if w.done == before[w.name]}
            raise TimeoutError(f"{error}: {stuck} do not") from None
        self.recoveries[f"{what}: all clients"].append(time.monotonic() - since)
        return taken

    def _served_without(self, away: Sequence[LocalNode], what: str, since: float) -> None:
        """Wait until every partition takes records of a client that does not ask those nodes.

        While they are cut off, they may serve old metadata.
        """
        name = f"newcomer-{len(self.recoveries[what])}-{what}"
        others = ",".join(n.address for n in self.nemesis.brokers() if n not in away)
        left = Probe(self.history, others, self.everything, name).not_taken(RECOVERY_SECONDS_MAX)
        if left:
            raise TimeoutError(f"V15 {what}: {left} take no records of a newcomer")
        self.recoveries[what].append(time.monotonic() - since)

    def _whole(self) -> float:
        return self._until("all replicas are in sync", self.nemesis.whole, WHOLE_SECONDS_MAX)
