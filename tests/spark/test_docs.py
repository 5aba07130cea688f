"""What the page on Spark shows, works."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import skylog
from skylog.spark.options import KNOWN, WITHOUT_EFFECT
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
    topics.create("orders", 2)
    topics.produce("orders", [Message(b"v%d" % i, b"k%d" % i, i % 2) for i in range(10)])
    names = {
        "spark": spark,
        "skylog": skylog,
        "target": str(tmp_path / "table"),
        "checkpoint": str(tmp_path / "checkpoint"),
    }
    reading = [block for block in BLOCKS if "writeStream" in block or ".read.format" in block]
    assert len(reading) >= 4
    for block in reading:
        exec(block.replace("localhost:9092", broker.bootstrap), names)
    assert spark.read.parquet(names["target"]).count() == 10
    assert "planned in 1 tasks" in capfd.readouterr().out


def test_every_option_is_on_the_page() -> None:
    named = set(re.findall(r"`([\w.*]+)`", PAGE))
    missing = [
        name
        for name in KNOWN
        if name not in named and not name.startswith(("diskless.storage.", "fetchOffset."))
    ]
    assert not missing
    assert set(WITHOUT_EFFECT) <= set(KNOWN)
