"""How long a producer waits when one of three nodes is killed: skylog and Apache Kafka.

A producer keeps sending to a partition whose leader is killed with SIGKILL. Measured is the time
from the kill to the first acknowledgement of a record that was sent after it, with the defaults of
brokers (broker.session.timeout.ms is 9 s on both sides) and client.
"""

from __future__ import annotations

import asyncio
import contextlib
import tempfile
import threading
import time
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Self

from confluent_kafka import KafkaError, Producer
from confluent_kafka.admin import AdminClient

from bench import clients, failover
from bench.clusters import SIDES
from bench.diskless import DISKLESS
from bench.measure import Figure, Goal
from bench.plan import Plan
from bench.three import NODES, Three, wait_until

RECORDS_PER_SECOND = 200
PARTITIONS = 12
# Records that are acknowledged before the leader is killed.
WARM_RECORDS = RECORDS_PER_SECOND
FAILOVER_SECONDS_MAX = 90
# Each takes four session timeouts, and the figures vary little.
ROUNDS = 2
COORDINATOR_GOAL = Goal(3, ratio=False)
BATCHES, QUICK_BATCHES = 1_000_000, 100_000
VICTIMS = ("leader", "leader that is the active controller too")


# When a record was sent, and when it was acknowledged.
Times = tuple[float, float]


def first_after(acknowledged: Iterable[Times], moment: float) -> float | None:
    """When the first record was acknowledged that was sent later than ``moment``."""
    return min((done for sent, done in acknowledged if sent > moment), default=None)


class Load:
    """A producer that sends to one partition at a steady rate until ``with`` ends."""

    def __init__(self, bootstrap: str, topic: str, partition: int) -> None:
        settings = {"bootstrap.servers": bootstrap, "acks": "all", "linger.ms": 0}
        self._producer = Producer({**settings, "log_level": 0})  # errors are expected
        self._topic, self._partition = topic, partition
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self._acknowledged: list[Times] = []
        self._failed: list[KafkaError] = []

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    @property
    def acknowledged_count(self) -> int:
        return len(self._acknowledged)

    def first_after(self, moment: float) -> float | None:
        if self._failed:
            raise RuntimeError(f"a record was not delivered: {self._failed[0]}")
        return first_after(self._acknowledged, moment)

    def _run(self) -> None:
        value = bytes(clients.RECORD_BYTES)
        while not self._over.is_set():
            sent = time.monotonic()

            def delivered(error: KafkaError | None, _: Any, sent: float = sent) -> None:
                if error is not None:
                    self._failed.append(error)
                else:
                    self._acknowledged.append((sent, time.monotonic()))

            self._producer.produce(
                self._topic, value, partition=self._partition, on_delivery=delivered
            )
            self._producer.poll(1 / RECORDS_PER_SECOND)
            time.sleep(max(sent + 1 / RECORDS_PER_SECOND - time.monotonic(), 0))
        self._producer.flush()


def failovers(plan: Plan) -> list[Figure]:
    """Fail-over of a leader, of a leader that is the active controller, and of a coordinator."""
    plan = replace(plan, rounds=min(plan.rounds, ROUNDS))
    note = f"broker.session.timeout.ms=9000, as shipped; {plan.rounds} rounds"
    classic, diskless = (
        {
            victim: Figure(f"kill -9 of a {victim}, {kind}", "s", None, note=note)
            for victim in VICTIMS
        }
        for kind in ("classic", "diskless here, classic there")
    )
    with Three("skylog") as skylog, Three("kafka", plan.classpath) as kafka:
        clusters = {"skylog": skylog, "kafka": kafka}
        for number, side in plan.turns(SIDES):
            for victim in VICTIMS:
                plan.say(f"fail-over, round {number + 1}, {side}, {victim}")
                done = _kill(clusters[side], f"round-{number}-{VICTIMS.index(victim)}", victim)
                classic[victim].add(side, done["classic"])
                diskless[victim].add(side, done.get("diskless", done["classic"]))
    return [*classic.values(), *diskless.values(), _coordinator(plan)]


def _kill(cluster: Three, name: str, victim: str) -> Mapping[str, float]:
    """Seconds by kind of topic, all of which the victim leads."""
    topics = clients.Topics(cluster.bootstrap)
    names = {"classic": name}
    topics.create([name], PARTITIONS, NODES)
    if cluster.side == "skylog":
        names["diskless"] = f"{name}-diskless"
        topics.create([names["diskless"]], PARTITIONS, **DISKLESS)
    cluster.wait_in_sync()
    controller = cluster.active_controller()
    node_id = controller if victim == VICTIMS[1] else controller % NODES + 1
    with contextlib.ExitStack() as stack:
        loads = {
            kind: stack.enter_context(_load(cluster, topic, node_id))
            for kind, topic in names.items()
        }
        seconds = _first_after_kill(cluster, node_id, loads)
    cluster.start([cluster.node(node_id)])
    cluster.wait_in_sync()
    topics.delete(list(names.values()))
    return seconds


def _load(cluster: Three, topic: str, leader: int) -> Load:
    found = AdminClient({"bootstrap.servers": cluster.bootstrap}).list_topics(topic, timeout=60)
    led = [p.id for p in found.topics[topic].partitions.values() if p.leader == leader]
    return Load(cluster.bootstrap, topic, led[0])


def _first_after_kill(
    cluster: Three, node_id: int, loads: Mapping[str, Load]
) -> Mapping[str, float]:
    wait_until(
        "a producer at work",
        lambda: all(load.acknowledged_count >= WARM_RECORDS for load in loads.values()),
    )
    killed = time.monotonic()
    cluster.node(node_id).kill()
    # Responses that were already on their way do not come from the next leader.
    dead = time.monotonic()
    wait_until(
        "a record acknowledged after the kill",
        lambda: all(load.first_after(dead) is not None for load in loads.values()),
        FAILOVER_SECONDS_MAX,
    )
    return {kind: (load.first_after(dead) or dead) - killed for kind, load in loads.items()}


def _coordinator(plan: Plan) -> Figure:
    """From the election of a diskless coordinator's follower until it commits."""
    batches = QUICK_BATCHES if plan.quick else BATCHES
    figure = Figure(
        f"coordinator of {batches:,} diskless batches, until its follower commits",
        "s",
        COORDINATOR_GOAL,
        note="once it leads; the session's time comes before",
    )
    plan.say(f"fail-over of a coordinator of {batches:,} batches")
    with tempfile.TemporaryDirectory() as directory:
        measured = asyncio.run(failover.measure(Path(directory), batches, cold=False))
    figure.add("skylog", measured["warm"].committed_ms / 1000)
    return figure
