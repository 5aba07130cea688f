"""The examples of the page on Spark work."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

import skylog
from skylog.spark.jobs.cluster import JobCluster
from skylog.spark.jobs.table import job as table
from skylog.spark.options import KNOWN, WITHOUT_EFFECT
from skylog.spark.write_options import KNOWN as KNOWN_IN_WRITES
from skylog.testing import Broker
from tests.spark.support import Message, Topics

PAGE = (Path(__file__).parents[2] / "docs" / "spark.md").read_text()
BLOCKS = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)


def test_the_examples(
    spark: SparkSession,
    broker: Broker,
    topics: Topics,
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
) -> None:
    for name in ("orders", "shouted", "copied"):
        topics.create(name, 2)
    topics.produce("orders", [Message(b"v%d" % i, b"k%d" % i, i % 2) for i in range(10)])
    names: dict[str, Any] = {
        "spark": spark,
        "skylog": skylog,
        "target": str(tmp_path / "table"),
        "checkpoint": str(tmp_path / "checkpoint"),
        "tables": str(tmp_path / "tables"),
    }
    cluster = JobCluster({"bootstrap.servers": broker.bootstrap})
    table.run(spark, table.TableJob(cluster, "orders", names["tables"]))
    assert len(BLOCKS) >= 6
    for block in BLOCKS:
        exec(block.replace("localhost:9092", broker.bootstrap), names)
    assert spark.read.parquet(names["target"]).count() == 10
    assert names["orders"].num_rows == 10
    assert "planned in 1 tasks" in capfd.readouterr().out
    assert sorted(row.value for row in topics.rows("shouted", 2)) == [b"V%d" % i for i in range(10)]
    pairs = [(row.key, row.value, row.timestamp) for row in topics.rows("orders", 2)]
    assert sorted(pairs) == sorted(
        (row.key, row.value, row.timestamp) for row in topics.rows("copied", 2)
    )


def test_every_option_is_on_the_page() -> None:
    named = set(re.findall(r"`([\w.*]+)`", PAGE))
    missing = [
        name
        for name in (*KNOWN, *KNOWN_IN_WRITES)
        if name not in named and not name.startswith(("diskless.storage.", "fetchOffset."))
    ]
    assert not missing
    assert set(WITHOUT_EFFECT) <= set(KNOWN)
