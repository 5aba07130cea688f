"""Spark scans of topics in an S3 server 20 ms away, in full and filtered by time."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

from bench.clusters import Skylog, free_ports
from bench.measure import Figure, Goal
from bench.plan import Plan
from bench.slow_link import slow_link
from bench.spark import MILLION, data_of, fill, run
from bench.spark_load import TIME_BEGINS
from bench.spark_session import spark

LATENCY_MS = 20
BUCKET = "bench"
# The share of records that the filter selects, and of the bytes that it may read.
LATE_SHARE = 0.01
FILTER_GOAL = Goal(3, ratio=False)


@contextlib.contextmanager
def s3_server() -> Iterator[int]:
    """versitygw over a directory; yields its port."""
    cache = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache"))
    program = shutil.which("versitygw") or cache / "skylog" / "versitygw"
    if not Path(program).exists():
        raise RuntimeError("versitygw is missing: tools/interop_setup.sh")
    (port,) = free_ports(1)
    with tempfile.TemporaryDirectory(prefix="bench-s3-") as directory:
        data, meta = Path(directory) / "data", Path(directory) / "meta"
        (data / BUCKET).mkdir(parents=True)
        meta.mkdir()
        command = [program, "--port", f"127.0.0.1:{port}", "--access", "bench", "--secret", "bench"]
        command += ["--quiet", "posix", "--sidecar", meta, data]
        with (Path(directory) / "log").open("wb") as log:
            process = subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT)
        try:
            yield port
        finally:
            process.terminate()
            process.wait()


def settings_of(port: int) -> dict[str, str]:
    return {
        "diskless.storage.url": f"s3://{BUCKET}",
        "diskless.storage.s3.endpoint": f"http://127.0.0.1:{port}",
        "diskless.storage.s3.region": "us-east-1",
        "diskless.storage.s3.access.key.id": "bench",
        "diskless.storage.s3.secret.access.key": "bench",
    }


def s3(plan: Plan) -> list[Figure]:
    """Full scans near and far, and one of the last records only; the proxy counts bytes."""
    data = data_of(plan, 1024)
    link = f"{LATENCY_MS} ms"
    near = Figure(f"Spark scan from S3, {data}", "M rows/s", None)
    far = Figure(f"Spark scan from S3, {data}, {link} away", "M rows/s", None)
    far.note = f"a proxy in Python between them, which adds {link} and takes its share of CPU"
    late = Figure("bytes read for the last 1 % by time", "% of all", FILTER_GOAL)
    late.note = "read.timestamp.min; as counted between Spark and the S3 server"
    seconds = Figure(f"Spark query for the last 1 % by time, {link} away", "s", None)
    begins = TIME_BEGINS + int(data.records / data.partitions * (1 - LATE_SHARE))
    with contextlib.ExitStack() as stack:
        port = stack.enter_context(s3_server())
        link_to = stack.enter_context(slow_link(f"127.0.0.1:{port}", LATENCY_MS))
        cluster = stack.enter_context(Skylog(settings_of(port)))
        session = stack.enter_context(spark("skylog"))
        plan.say("Spark: filling the S3 server")
        fill(cluster, data)
        ways = {"near": settings_of(port), "far": settings_of(link_to.port)}
        run(session, "skylog", cluster, data, "scan", ways["near"])
        for number, way in plan.turns(tuple(ways)):
            plan.say(f"Spark scan from S3, round {number + 1}, {way}")
            before = link_to.bytes()
            done = run(session, "skylog", cluster, data, "scan", ways[way])
            (near if way == "near" else far).add("skylog", data.records / done.seconds / MILLION)
            if way == "far":
                whole = link_to.bytes()
                bounded = {**ways[way], "read.timestamp.min": str(begins)}
                done = run(session, "skylog", cluster, data, "scan", bounded)
                late.add("skylog", 100 * (link_to.bytes() - whole) / (whole - before))
                seconds.add("skylog", done.seconds)
    return [near, far, late, seconds]
