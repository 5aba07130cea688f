"""A table job that ends itself and its JVM with SIGKILL before a step.

Arguments: servers, topic, directory, form, step, how often the step must come.
"""

from __future__ import annotations

import os
import signal
import sys

from skylog.spark.jobs.cluster import JobCluster
from skylog.spark.jobs.session import start
from skylog.spark.jobs.table import job

CHUNK_RECORDS = 40


def main(servers: str, topic: str, to: str, form: str, step: str, times: str) -> None:
    left = int(times)

    def before(found: str) -> None:
        nonlocal left
        left -= found == step
        if left == 0:
            os.killpg(os.getpgid(0), signal.SIGKILL)

    cluster = JobCluster({"bootstrap.servers": servers})
    wanted = job.TableJob(cluster, topic, to, form=form, values="json", chunk_records=CHUNK_RECORDS)
    job.run(start("table", "local[1]"), wanted, before)


if __name__ == "__main__":
    main(*sys.argv[1:])
