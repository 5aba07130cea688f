"""One Spark session for all tests here, and topics that real clients wrote."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, DataFrameReader, SparkSession

from skylog.testing import Broker
from tests.spark.support import Topics

HERE = Path(__file__).parent
Load = Callable[..., DataFrame]


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """A JVM is heavy: one worker of the suite runs all tests that need it, before others.

    Nodes that tests kill leave files open, and Py4J uses select, which is limited to file
    descriptors below 1,024.
    """
    ours = [item for item in items if HERE in item.path.parents]
    for item in ours:
        item.add_marker(pytest.mark.xdist_group("spark"))
        item.add_marker(pytest.mark.timeout(300))
    items[:] = [*ours, *(item for item in items if HERE not in item.path.parents)]


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    os.environ["PYSPARK_PYTHON"] = sys.executable
    directory = tmp_path_factory.mktemp("spark")
    session = (
        SparkSession.builder.master("local[2]")
        .appName("skylog-tests")
        .config("spark.ui.enabled", "false")
        .config("spark.driver.memory", "1g")
        # Many short queries: full JIT compilation would take longer than running them.
        .config("spark.driver.extraJavaOptions", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.sql.warehouse.dir", str(directory / "warehouse"))
        .config("spark.local.dir", str(directory / "local"))
        .config("spark.ui.showConsoleProgress", "false")
        .getOrCreate()
    )
    session.sparkContext.setLogLevel("OFF")
    yield session
    session.stop()


@pytest.fixture(scope="session")
def broker() -> Iterator[Broker]:
    with Broker({"auto.create.topics.enable": "false"}) as running:
        yield running


@pytest.fixture(scope="session")
def topics(broker: Broker) -> Topics:
    return Topics(broker.bootstrap)


@pytest.fixture
def reader(spark: SparkSession, broker: Broker) -> Callable[..., DataFrameReader]:
    """``reader(subscribe="t", …)``: a batch reader with options."""

    def make(**options: str) -> DataFrameReader:
        given = {"kafka.bootstrap.servers": broker.bootstrap, **options}
        return spark.read.format("skylog").options(**given)

    return make
