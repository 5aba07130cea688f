"""A table job that kills itself and its JVM with SIGKILL before a step.

Arguments: servers, topic, directory, form, step, how often the step must come.
"""

from __future__ import annotations

import os
import signal
import sys

from pyspark.sql import SparkSession

from skylog.spark.jobs.cluster import JobCluster
from skylog.spark.jobs.table import job

CHUNK_RECORDS = 40
SCHEMA = "id bigint"


def main(servers: str, topic: str, to: str, form: str, step: str, times: str) -> None:
    left = int(times)

    def before(found: str) -> None:
        nonlocal left
        left -= found == step
        if left == 0:
            os.killpg(os.getpgid(0), signal.SIGKILL)

    os.environ["PYSPARK_PYTHON"] = sys.executable
    spark = (
        SparkSession.builder.master("local[1]")
        .config("spark.ui.enabled", "false")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        # It lives for seconds: full JIT compilation is not worth it.
        .config("spark.driver.extraJavaOptions", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")
        .getOrCreate()
    )
    cluster = JobCluster({"bootstrap.servers": servers})
    wanted = job.TableJob(
        cluster, topic, to, form=form, values="json", schema=SCHEMA, chunk_records=CHUNK_RECORDS
    )
    job.run(spark, wanted, before)


if __name__ == "__main__":
    main(*sys.argv[1:])
