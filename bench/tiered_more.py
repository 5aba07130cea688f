"""Tiered topics on a slow store, on a new replica, and idle."""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from bench import clients
from bench.clusters import SIDES, Cluster, Skylog
from bench.measure import MEGABYTE, Figure, Goal, await_idle, usage
from bench.plan import Plan
from bench.slow_link import slow_link
from bench.spark_s3 import s3_server, settings_of
from bench.three import Between, Three, wait_until
from bench.tiered import (
    COPIED_SECONDS_MAX,
    GONE,
    REMOTE,
    SETTINGS,
    local_segments,
    records_of,
    with_tests,
)

GET_MS = 50
SLOW_GOAL = Goal(60, higher_is_better=True, ratio=False)
BYTES_GOAL = Goal(1.05, ratio=False)
TIME_GOAL = Goal(1.0)
IDLE_GOAL = Goal(3, ratio=False)
IDLE_TOPICS, QUICK_IDLE_TOPICS = 100, 10
IDLE_PARTITIONS = 100
SEGMENTS, QUICK_SEGMENTS = 100_000, 10_000
# One partition: its segments are read one after the other.
SLOW_SHARE = 8
OURS = {"remote.log.storage.manager.class.name": "skylog"}
REPLICATED = {
    "rlmm.config.remote.log.metadata.topic.replication.factor": "3",
    "rlmm.config.remote.log.metadata.topic.num.partitions": "5",
}


def slow_store(plan: Plan) -> list[Figure]:
    """One consumer of one partition in an S3 server 50 ms away."""
    what = f"one consumer, 1 partition, {GET_MS} ms per GET"
    figures = {
        "16777216": Figure(f"{what}, read-ahead", "MB/s", SLOW_GOAL),
        "0": Figure(f"{what}, no read-ahead", "MB/s", None),
    }
    note = f"a proxy in Python between broker and S3 server adds {GET_MS} ms"
    for ahead, figure in figures.items():
        figure.note = f"{note}; tiered.fetch.prefetch.max.bytes={ahead}"
    records = records_of(plan.tiered_bytes // SLOW_SHARE)
    for ahead, figure in figures.items():
        with contextlib.ExitStack() as stack:
            port = stack.enter_context(s3_server())
            link = stack.enter_context(slow_link(f"127.0.0.1:{port}", GET_MS))
            given = {**SETTINGS, **OURS, **settings_of(link.port)}
            given["tiered.fetch.prefetch.max.bytes"] = ahead
            cluster = stack.enter_context(Skylog(given))
            topics = clients.Topics(cluster.bootstrap)
            topics.create(["slow"], 1, **REMOTE, **GONE)
            clients.librdkafka("produce", cluster.bootstrap, "slow", records, 1)
            _await_remote(cluster, "slow")
            for number in range(plan.rounds):
                plan.say(f"tiered, {GET_MS} ms per GET, prefetch {ahead}, round {number + 1}")
                cluster.restart()  # nothing is cached
                done = clients.librdkafka("consume-eagerly", cluster.bootstrap, "slow", records, 1)
                figure.add("skylog", done["mb_per_second"])
    return list(figures.values())


def _await_remote(cluster: Cluster, topic: str) -> None:
    wait_until(
        f"{cluster.name}: all but the active segment of {topic} is remote only",
        lambda: local_segments(cluster, topic, 0) == 1,
        COPIED_SECONDS_MAX,
    )


def new_replica(plan: Plan) -> list[Figure]:
    """A replica more of a partition that is nearly all remote."""
    size = f"{plan.tiered_bytes / (1 << 30):g} GiB remote"
    taken = Figure(f"new replica of {size}: bytes between brokers", "× local bytes", BYTES_GOAL)
    seconds = Figure(f"new replica of {size}: until it is in sync", "s", TIME_GOAL)
    for side in SIDES:
        for number in range(plan.rounds):
            plan.say(f"tiered, new replica, round {number + 1}, {side}")
            with tempfile.TemporaryDirectory(prefix="bench-store-") as store:
                settings = {**SETTINGS, **REPLICATED, "rsm.config.dir": store}
                with Three(side, with_tests(plan.classpath), settings) as cluster:
                    copied, took = _added(plan, cluster)
            taken.add(side, copied)
            seconds.add(side, took)
    return [taken, seconds]


def _added(plan: Plan, cluster: Three) -> tuple[float, float]:
    """The bytes of a new replica by those of the leader's log, and the seconds that it took."""
    tool = ["java", "-Xmx256M", "-cp", plan.classpath]
    topic = ["--bootstrap-server", cluster.bootstrap, "--create", "--topic", "remote"]
    configs = [f"--config={key}={value}" for key, value in {**REMOTE, **GONE}.items()]
    _run([*tool, "org.apache.kafka.tools.TopicCommand", *topic, "--replica-assignment=1", *configs])
    records = records_of(plan.tiered_bytes)
    clients.librdkafka("produce", cluster.bootstrap, "remote", records, 1)
    leader, follower = cluster.node(1), cluster.node(2)
    _await_remote(leader, "remote")
    local = _log_bytes(leader)
    with tempfile.TemporaryDirectory(prefix="bench-") as directory:
        plan_file = Path(directory) / "plan.json"
        moved = {"topic": "remote", "partition": 0, "replicas": [1, 2]}
        plan_file.write_text(json.dumps({"version": 1, "partitions": [moved]}))
        with Between(cluster.peer_ports) as between:
            began = time.perf_counter()
            _run(
                [*tool, "org.apache.kafka.tools.reassign.ReassignPartitionsCommand", "--execute",
                 "--bootstrap-server", cluster.bootstrap, "--reassignment-json-file",
                 str(plan_file)]
            )  # fmt: skip
            wait_until("the new replica is whole", lambda: _log_bytes(follower) >= local)
            took = time.perf_counter() - began
    return between.total / max(local, 1), took


def _log_bytes(node: Cluster) -> int:
    files = (node.directory / "data" / "remote-0").glob("*.log")
    return sum(path.stat().st_size for path in files)


def _run(command: list[str]) -> None:
    subprocess.run(command, check=True, capture_output=True, timeout=120)


def idle(plan: Plan) -> list[Figure]:
    """Partitions of tiered topics that nobody uses, with a record each in every topic."""
    topics = QUICK_IDLE_TOPICS if plan.quick else IDLE_TOPICS
    count = f"{topics * IDLE_PARTITIONS:,} idle remote partitions"
    figure = Figure(f"CPU, {count}", "% of a core", IDLE_GOAL)
    plan.say(count)
    given = {**SETTINGS, **OURS}
    del given["remote.log.manager.task.interval.ms"], given["log.retention.check.interval.ms"]
    with Skylog(given) as cluster:
        names = [f"idle-{number:03}" for number in range(topics)]
        for name in names:
            clients.Topics(cluster.bootstrap).create([name], IDLE_PARTITIONS, **REMOTE)
        await_idle(cluster.pid)
        for _ in range(plan.rounds):
            before, began = usage(cluster.pid), time.perf_counter()
            time.sleep(plan.idle_seconds)
            spent = usage(cluster.pid).cpu_seconds - before.cpu_seconds
            figure.add("skylog", spent / (time.perf_counter() - began) * 100)
        memory = usage(cluster.pid).resident_bytes / MEGABYTE
    figure.note = f"then {memory:.0f} MB resident"
    return [figure]


def metadata(plan: Plan) -> list[Figure]:
    """The metadata of many segments in a broker's memory."""
    count = QUICK_SEGMENTS if plan.quick else SEGMENTS
    what = f"metadata of {count:,} remote segments"
    figures = {
        "load_s": Figure(f"{what}: read from the topic", "s", Goal(5, ratio=False)),
        "restore_s": Figure(f"{what}: from a snapshot", "s", Goal(1, ratio=False)),
        "megabytes": Figure(f"{what}: memory", "MB", Goal(30, ratio=False)),
        "segment_for_us": Figure(f"{what}: finding a segment", "µs", Goal(5, ratio=False)),
    }
    for _ in range(plan.rounds):
        plan.say(what)
        command = [sys.executable, "-m", "bench.tiered_metadata", str(count)]
        found = json.loads(clients.output_of(command, "tiered_metadata").splitlines()[-1])
        found["megabytes"] = found["bytes_per_segment"] * count / MEGABYTE
        for key, figure in figures.items():
            figure.add("skylog", found[key])
    return list(figures.values())
