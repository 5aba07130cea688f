"""One Spark session in a separate process, which runs the queries that it reads line by line.

It runs under either PySpark, the one of this project or the one with Spark's Kafka source, so it
needs nothing but PySpark. Each line is JSON: a query in, its result out.
"""

from __future__ import annotations

import json
import sys
import time
from typing import Any

from pyspark.sql import DataFrame, SparkSession

QUERIES = {
    "scan": ["count(*)", "sum(length(value))", "max(offset)"],
    "hash": [
        "bit_xor(xxhash64(key, value, topic, partition, offset, timestamp, timestampType))",
    ],
    "filter": ["count(*)", "min(timestamp)"],
}


def session(settings: dict[str, str]) -> SparkSession:
    builder = SparkSession.builder.appName("bench")
    for key, value in settings.items():
        builder = builder.config(key, value)
    made = builder.getOrCreate()
    made.sparkContext.setLogLevel("ERROR")
    return made


def read(spark: SparkSession, asked: dict[str, Any]) -> dict[str, Any]:
    """One query over a topic, planned anew."""
    started = time.perf_counter()
    frame = spark.read.format(asked["format"]).options(**asked["options"]).load()
    row = frame.selectExpr(*QUERIES[asked["query"]]).first()
    seconds = time.perf_counter() - started
    return {"seconds": seconds, "answer": [str(value) for value in row or ()]}


def write(spark: SparkSession, asked: dict[str, Any]) -> dict[str, Any]:
    """Write generated rows to a topic."""
    started = time.perf_counter()
    rows_of(spark, asked["records"], asked["record_bytes"]).write.format(asked["format"]).options(
        **asked["options"]
    ).mode("append").save()
    return {"seconds": time.perf_counter() - started}


def rows_of(spark: SparkSession, records: int, record_bytes: int) -> DataFrame:
    filling = "x" * (record_bytes - 16)
    return spark.range(records).selectExpr(
        "cast(lpad(id, 8, '0') as binary) as key",
        f"cast(concat(lpad(id, 8, '0'), '{filling}') as binary) as value",
    )


def main() -> None:
    spark = session(json.loads(sys.argv[1]))
    todo = {"read": read, "write": write}
    print(json.dumps({"spark": spark.version}), flush=True)
    for line in sys.stdin:
        asked = json.loads(line)
        try:
            answer = todo[asked["do"]](spark, asked)
        except Exception as error:  # noqa: BLE001 - told to whoever asked
            answer = {"error": str(error)}
        print(json.dumps(answer), flush=True)
    spark.stop()


if __name__ == "__main__":
    main()
