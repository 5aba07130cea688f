"""The Spark session of a job: on this machine, unless --master or spark-submit says otherwise."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Final

from pyspark.sql import SparkSession

LOCAL: Final = "local[*]"
# spark-submit passes its settings in the environment of the driver.
_SUBMITTED: Final = "SPARK_ENV_LOADED"
_LOGGING: Final = Path(__file__).with_name("log4j2.properties").resolve()


def start(job: str, master: str | None) -> SparkSession:
    """A session for a job; an existing one is reused."""
    active = SparkSession.getActiveSession()
    if active is not None:
        return active
    # Workers must run the Python that has skylog, not the first one on the path.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.appName(f"skylog {job}")
    submitted = _SUBMITTED in os.environ
    chosen = master or (None if submitted else LOCAL)
    if chosen is not None:
        builder = builder.master(chosen)
    if chosen is not None and chosen.startswith("local"):
        # Spark's default of two hundred tasks is for clusters.
        builder = builder.config("spark.sql.shuffle.partitions", str(2 * (os.cpu_count() or 1)))
    if not submitted:
        builder = builder.config(
            "spark.driver.extraJavaOptions", f"-Dlog4j2.configurationFile={_LOGGING.as_uri()}"
        )
    return (
        builder.config("spark.ui.showConsoleProgress", "false")
        .config("spark.sql.execution.arrow.pyspark.enabled", "true")
        .config("spark.sql.session.timeZone", "UTC")
        .getOrCreate()
    )
