"""Consolidated topics and Spark: scans of them beside the same records in the WAL, and the job that
consolidates instead of brokers."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Mapping

from bench import clients
from bench.clusters import ROOT, Skylog
from bench.consolidation import ON, SETTINGS, consolidated
from bench.diskless import DISKLESS
from bench.measure import MEGABYTE, Figure, Goal
from bench.plan import Plan
from bench.spark import KEPT, MILLION, Data, data_of, run
from bench.spark_load import load
from bench.spark_s3 import s3_server, settings_of
from bench.spark_session import spark

SCAN_GOAL = Goal(1.2, higher_is_better=True, ratio=False)
JOB_GOAL = Goal(150, higher_is_better=True, ratio=False)
JOB_GETS_GOAL = Goal(1.5, ratio=False)
SEGMENT = {"segment.bytes": str(32 << 20)}
KINDS: Mapping[str, Mapping[str, str]] = {
    "in the WAL": {**KEPT, **DISKLESS, "remote.storage.enable": "false"},
    "consolidated": {**KEPT, **DISKLESS, **ON, **SEGMENT},
}
JOB_SECONDS_MAX = 1_800


def fill(cluster: Skylog, topic: str, data: Data, configs: Mapping[str, str]) -> None:
    clients.Topics(cluster.bootstrap).create([topic], data.partitions, **configs)
    load(
        *(cluster.bootstrap, topic, data.records, data.record_bytes, data.codec),
        data.partitions,
    )


def scan(plan: Plan) -> list[Figure]:
    """The same records from an S3 server: consolidated, and as they were written."""
    data = data_of(plan, 1024)
    rates = {
        kind: Figure(f"Spark scan from S3, {kind}, {data}", "M rows/s", None) for kind in KINDS
    }
    gained = Figure("Spark scan from S3, consolidated by in the WAL", "×", SCAN_GOAL)
    with contextlib.ExitStack() as stack:
        port = stack.enter_context(s3_server())
        cluster = stack.enter_context(Skylog({**SETTINGS, **settings_of(port)}))
        topics = {kind: kind.replace(" ", "-") for kind in KINDS}
        for kind, topic in topics.items():
            plan.say(f"consolidation, Spark: filling the S3 server, {kind}")
            fill(cluster, topic, data, KINDS[kind])
        consolidated(cluster, topics["consolidated"])
        session = stack.enter_context(spark("skylog"))
        answers = {}
        for number, kind in [*((-1, kind) for kind in KINDS), *plan.turns(tuple(KINDS))]:
            plan.say(f"consolidation, Spark scan, round {number + 1}, {kind}")
            options = {**settings_of(port), "subscribe": topics[kind]}
            done = run(session, "skylog", cluster, data, "scan", options)
            answers[kind] = done.answer
            if number >= 0:
                rates[kind].add("skylog", data.records / done.seconds / MILLION)
        if answers["in the WAL"] != answers["consolidated"]:
            raise RuntimeError(f"the scans differ: {answers}")
    pairs = zip(rates["consolidated"].skylog, rates["in the WAL"].skylog, strict=True)
    for one, other in pairs:
        gained.add("skylog", one / other)
    return [*rates.values(), gained]


def job(plan: Plan) -> list[Figure]:
    """``skylog spark segments --commit`` on two cores, brokers left alone."""
    data = data_of(plan, 1024)
    rate = Figure(f"Spark consolidates, local[2], {data}", "MB/s", JOB_GOAL)
    rate.note = "with the start of Spark"
    gets = Figure("reads by WAL object, Spark consolidates", "", JOB_GETS_GOAL)
    external = {"diskless.tiering.assembler": "external"}
    with Skylog(SETTINGS) as cluster:
        for number in range(plan.rounds):
            plan.say(f"consolidation, Spark's job, round {number + 1}")
            topic = f"job-{number}"
            fill(cluster, topic, data, {**KINDS["consolidated"], **external})
            os.sync()
            began = time.perf_counter()
            told = _segments(cluster, topic)
            seconds = time.perf_counter() - began
            rate.add("skylog", told["bytes"] / seconds / MEGABYTE)
            gets.add("skylog", told["gets"] / told["objects"])
    return [rate, gets]


def _segments(cluster: Skylog, topic: str) -> dict[str, float]:
    """What the job tells of itself."""
    done = subprocess.run(
        [
            *(sys.executable, "-c", "from skylog.cli.main import main; main()"),
            *("spark", "segments", topic, "--commit", "--tail", "--json"),
            *("--bootstrap", cluster.bootstrap, "--master", "local[2]"),
        ],
        check=True,
        cwd=ROOT,
        stdout=subprocess.PIPE,
        text=True,
        timeout=JOB_SECONDS_MAX,
    )
    told: dict[str, float] = json.loads(done.stdout)
    return told
