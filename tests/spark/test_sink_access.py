"""Writers without permission: refused on the driver with the topic's name, and nothing is partly
written."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka.admin import AclOperation
from pyspark.sql import DataFrame, SparkSession

from skylog.bulk.process import close_process
from tests.spark.secured import Secured
from tests.spark.support import Message, Topics

pytestmark = pytest.mark.timeout(300)


@pytest.fixture(scope="module")
def secured() -> Iterator[Secured]:
    with Secured() as running:
        yield running
        close_process()


@pytest.fixture
def admin(secured: Secured) -> Topics:
    return secured.topics("admin")


def may_ask(secured: Secured, user: str, *topics: str) -> None:
    """All permissions of a writer but WRITE."""
    for topic in topics:
        secured.allow(user, AclOperation.DESCRIBE_CONFIGS, topic)
        secured.allow(user, AclOperation.DESCRIBE, topic)


def numbers(spark: SparkSession, sql: str = "") -> DataFrame:
    return spark.range(0, 100, 1, 4).selectExpr("cast(id as string) as value", *filter(None, [sql]))


def save(frame: DataFrame, options: dict[str, str]) -> None:
    frame.write.format("skylog").options(**options).mode("append").save()


def values(topics: Topics, topic: str) -> Counter[bytes | None]:
    return Counter(row.value for row in topics.rows(topic, 1))


@pytest.mark.parametrize("diskless", [True, False])
def test_without_write_no_task_is_started(
    spark: SparkSession, secured: Secured, admin: Topics, diskless: bool
) -> None:
    topic = admin.create(f"denied-{diskless}", diskless=diskless)
    other = admin.create(f"other-{diskless}", diskless=diskless)
    options = {**secured.options("alice"), "topic": topic}
    with pytest.raises(Exception, match="TOPIC_AUTHORIZATION_FAILED"):
        save(numbers(spark), options)
    may_ask(secured, "alice", topic)
    secured.allow("alice", AclOperation.WRITE, other)
    frame = numbers(spark).selectExpr("if(value < 0, value, raise_error('ran')) as value")
    with pytest.raises(Exception, match=f"not allowed to write to topic {topic}"):
        save(frame, options)
    assert not values(admin, topic)
    secured.allow("alice", AclOperation.WRITE, topic)
    save(numbers(spark), options)
    assert values(admin, topic) == Counter(b"%d" % i for i in range(100))


def test_one_topic_of_several_that_may_not_be_written(
    spark: SparkSession, secured: Secured, admin: Topics
) -> None:
    """Only the last row goes to a forbidden topic, but the rows before it are not written
    either."""
    open_, closed = admin.create("open"), admin.create("closed")
    may_ask(secured, "bob", open_, closed)
    secured.allow("bob", AclOperation.WRITE, open_)
    frame = numbers(spark, f"if(id = 99, '{closed}', '{open_}') as topic")
    with pytest.raises(Exception, match=f"not allowed to write to topic {closed}"):
        save(frame, secured.options("bob"))
    assert not values(admin, open_) and not values(admin, closed)


def test_a_stream_that_may_not_write_goes_on_when_it_may(
    spark: SparkSession, secured: Secured, admin: Topics, tmp_path: Path
) -> None:
    source, target = admin.create("stream-source"), admin.create("stream-target")
    admin.produce(source, [Message(b"%d" % i) for i in range(50)])
    may_ask(secured, "bob", source, target)
    secured.allow("bob", AclOperation.READ, source)

    def run() -> None:
        query = (
            spark.readStream.format("skylog")
            .options(**secured.options("bob"), subscribe=source, startingOffsets="earliest")
            .load()
            .select("value")
            .writeStream.format("skylog")
            .options(**secured.options("bob"), topic=target, checkpointLocation=str(tmp_path))
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()

    with pytest.raises(Exception, match=f"not allowed to write to topic {target}"):
        run()
    assert not values(admin, target)
    secured.allow("bob", AclOperation.WRITE, target)
    run()
    assert values(admin, target) == Counter(b"%d" % i for i in range(50))
