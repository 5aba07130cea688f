"""Quirks that only a real Spark shows; if a test here fails, its quirk is no longer needed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrameReader, SparkSession
from pyspark.sql.datasource import DataSource, DataSourceReader, Filter, InputPartition

from skylog.spark.quirks import FIND_PUSHDOWN
from tests.spark.support import Message, Topics

PUSHDOWN = "spark.sql.python.filterPushdown.enabled"


@pytest.fixture
def pushdown(spark: SparkSession) -> Iterator[None]:
    spark.conf.set(PUSHDOWN, "true")
    yield
    spark.conf.unset(PUSHDOWN)


def test_a_worker_finds_the_socket_that_its_task_comes_from(spark: SparkSession) -> None:
    class Sent:
        """Like a reader: it looks for the socket when it is deserialized."""

        found: Any = None

        def __setstate__(self, state: object) -> None:
            import os
            import stat

            from skylog.spark.quirks import worker_input

            self.found = stat.S_ISSOCK(os.fstat(worker_input().fileno()).st_mode)

        def __getstate__(self) -> object:
            return "something"

    sent = Sent()
    assert spark.sparkContext.parallelize([0], 1).map(lambda _: sent.found).collect() == [True]


def test_readers_with_filters_are_still_refused_while_pushdown_is_off(spark: SparkSession) -> None:
    class Reader(DataSourceReader):
        def pushFilters(self, filters: list[Filter]) -> list[Filter]:
            return filters

        def read(self, partition: InputPartition) -> Iterator[tuple[int]]:
            yield (1,)

    class Source(DataSource):
        @classmethod
        def name(cls) -> str:
            return "takes-filters"

        def schema(self) -> str:
            return "number int"

        def reader(self, schema: object) -> DataSourceReader:
            return Reader()

    spark.dataSource.register(Source)
    frame = spark.read.format("takes-filters").load().filter("number = 1")
    try:
        frame.collect()
    except PySparkException as error:
        assert "DATA_SOURCE_PUSHDOWN_DISABLED" in str(error)
    else:
        pytest.fail(f"Spark takes them: delete {FIND_PUSHDOWN}")


@pytest.mark.usefixtures("pushdown")
def test_spark_still_uses_the_plan_of_one_filter_for_another(
    topics: Topics, reader: Callable[..., DataFrameReader]
) -> None:
    name = topics.create("pushed-twice", 2)
    topics.produce(name, [Message(b"v", partition=i % 2) for i in range(10)])
    base = reader(**{"subscribe": name, "read.push.filters": "true"}).load()
    assert base.filter("partition = 0").count() == 5
    assert base.count() < 10, "filters may be pushed by default: read.push.filters is not needed"
