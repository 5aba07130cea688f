"""``skylog.read`` against what librdkafka consumes from the same topic, row by row."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pytest
from confluent_kafka import TopicPartition
from confluent_kafka.admin import AdminClient

import skylog
from skylog.bulk.errors import DataLossError
from skylog.bulk.process import close_process
from skylog.bulk.schema import SCHEMA
from skylog.kernel.errors import ConfigError, ErrorCode, KafkaError, StorageError
from skylog.testing import Broker
from tests.integration.frames_support import (
    BASE_MS,
    consumed,
    create,
    produce,
    read,
    rows_of,
)

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    store = tmp_path_factory.mktemp("objects")
    with Broker({"diskless.storage.url": store.as_uri()}) as running:
        yield running
        close_process()


@pytest.fixture(params=["true", "false"], ids=["diskless", "classic"])
def diskless(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.mark.parametrize("codec", CODECS)
def test_rows_are_what_a_consumer_reads(broker: Broker, diskless: str, codec: str) -> None:
    topic = create(broker, f"codec-{codec}-{diskless}", **{"diskless.enable": diskless})
    produce(broker, topic, 500, **{"compression.type": codec})
    expected = consumed(broker, topic)
    assert len(expected) == 500
    assert rows_of(read(broker, topic).to_arrow()) == expected
    assert rows_of(read(broker, topic, via="broker").to_arrow()) == expected


def test_log_append_time(broker: Broker, diskless: str) -> None:
    topic = create(
        broker,
        f"appended-{diskless}",
        **{"diskless.enable": diskless, "message.timestamp.type": "LogAppendTime"},
    )
    produce(broker, topic, 100, **{"compression.type": "lz4"})
    expected = consumed(broker, topic)
    assert {row["timestampType"] for row in expected} == {1}
    for via in ("bucket", "broker"):
        assert rows_of(read(broker, topic, via=via).to_arrow()) == expected


def test_offsets_that_cut_batches(broker: Broker, diskless: str) -> None:
    topic = create(broker, f"cut-{diskless}", **{"diskless.enable": diskless})
    produce(broker, topic, 300)
    everything = consumed(broker, topic)
    for via in ("bucket", "broker"):
        found = read(broker, topic, start=5, end=41, via=via).to_arrow()
        assert rows_of(found) == [row for row in everything if 5 <= row["offset"] < 41]
    by_partition = read(
        broker, topic, partitions=[0, 2], start={0: 99, 2: "earliest"}, end={0: "latest", 2: 1}
    )
    assert [(row["partition"], row["offset"]) for row in rows_of(by_partition.to_arrow())] == [
        (0, 99),
        (2, 0),
    ]
    assert read(broker, topic, start="latest").to_arrow().num_rows == 0
    assert read(broker, topic, start=50, end=20).to_arrow().num_rows == 0
    assert rows_of(read(broker, topic, start=90, end=10_000).to_arrow()) == [
        row for row in everything if row["offset"] >= 90
    ]
    assert read(broker, topic, start=10_000).to_arrow().num_rows == 0


def test_times(broker: Broker, diskless: str) -> None:
    topic = create(broker, f"times-{diskless}", **{"diskless.enable": diskless})
    produce(broker, topic, 300)
    start = datetime.fromtimestamp((BASE_MS + 1000) / 1000, UTC)
    end = datetime.fromtimestamp((BASE_MS + 2000) / 1000, UTC)
    found = rows_of(read(broker, topic, start=start, end=end).to_arrow())
    assert found == [row for row in consumed(broker, topic) if start <= row["timestamp"] < end]
    assert len(found) == 100
    never = datetime.fromtimestamp((BASE_MS + 10**9) / 1000, UTC)
    assert read(broker, topic, start=never).to_arrow().num_rows == 0


def test_a_deleted_prefix(broker: Broker, diskless: str) -> None:
    topic = create(broker, f"deleted-{diskless}", **{"diskless.enable": diskless})
    produce(broker, topic, 300)
    before = read(broker, topic)  # planned before the records are deleted
    admin = AdminClient({"bootstrap.servers": broker.bootstrap, "log_level": 0})
    for future in admin.delete_records([TopicPartition(topic, 1, 33)]).values():
        future.result()
    expected = consumed(broker, topic)
    assert min(row["offset"] for row in expected if row["partition"] == 1) == 33
    for via in ("bucket", "broker"):
        assert rows_of(read(broker, topic, via=via).to_arrow()) == expected
        with pytest.raises(DataLossError, match="partition 1: offsets 10 to 32 are gone"):
            read(broker, topic, start=10, via=via)
        lenient = read(broker, topic, start=10, via=via, fail_on_data_loss=False)
        assert rows_of(lenient.to_arrow()) == [row for row in expected if row["offset"] >= 10]
    with pytest.raises(DataLossError, match="partition 1: offsets 0 to 32 are gone"):
        before.to_arrow()


def test_a_recreated_topic_is_not_the_planned_one(broker: Broker, diskless: str) -> None:
    topic = create(broker, f"anew-{diskless}", **{"diskless.enable": diskless})
    produce(broker, topic, 30)
    planned = read(broker, topic)
    lenient = read(broker, topic, fail_on_data_loss=False)
    admin = AdminClient({"bootstrap.servers": broker.bootstrap, "log_level": 0})
    for future in admin.delete_topics([topic]).values():
        future.result()
    create(broker, topic, **{"diskless.enable": diskless})
    produce(broker, topic, 30)
    with pytest.raises(DataLossError, match="the topic is gone"):
        planned.to_arrow()
    assert lenient.to_arrow().num_rows == 0


def test_columns_and_frames(broker: Broker) -> None:
    topic = create(broker, "frames", **{"diskless.enable": "true"})
    produce(broker, topic, 200)
    expected = consumed(broker, topic)
    found = read(broker, topic, columns=["offset", "partition", "value"])
    assert found.schema.names == ["offset", "partition", "value"]
    assert "columns offset, partition, value" in repr(found)
    values = [row["value"] for row in expected]
    assert found.to_polars()["value"].to_list() == values
    pandas = found.to_pandas()
    assert [None if value is None else bytes(value) for value in pandas["value"]] == values
    assert pa.table(found).num_rows == 200
    assert sum(batch.num_rows for batch in found.batches()) == 200


def test_duckdb_reads_the_stream(broker: Broker) -> None:
    duckdb = pytest.importorskip("duckdb")
    topic = create(broker, "duck", **{"diskless.enable": "true"})
    produce(broker, topic, 200)
    stream = read(broker, topic).to_reader()
    assert stream.schema == SCHEMA  # DuckDB finds the variable by its name
    counted = duckdb.sql('select count(*), max("offset") from stream').fetchall()
    assert counted == [(200, 66)]
    table = read(broker, topic).to_arrow()
    assert duckdb.from_arrow(table).aggregate("count(*)").fetchall() == [(200,)]


def test_many_threads_give_the_same_rows(
    broker: Broker, diskless: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    topic = create(broker, f"threads-{diskless}", **{"diskless.enable": diskless})
    produce(broker, topic, 3000, **{"compression.type": "snappy"})
    monkeypatch.setattr("skylog.bulk.frame.TASK_BYTES", 2000)
    found = read(broker, topic, threads=4)
    assert len(found._tasks) > 8
    assert rows_of(found.to_arrow()) == consumed(broker, topic)


def test_a_read_that_ends_early_leaves_no_thread(broker: Broker) -> None:
    topic = create(broker, "early", **{"diskless.enable": "true"})
    produce(broker, topic, 500)
    batches = read(broker, topic, threads=3).batches()
    assert next(batches).num_rows > 0
    batches.close()
    assert not [one for one in threading.enumerate() if one.name.startswith("skylog-read")]


def test_invalid_arguments_are_named_before_anything_is_read(broker: Broker) -> None:
    topic = create(broker, "mistakes", **{"diskless.enable": "true"})
    with pytest.raises(KafkaError) as missing:
        read(broker, "no-such-topic")
    assert missing.value.code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert "no-such-topic" in str(missing.value)
    for options, why in (
        ({"columns": ["key", "size"]}, "columns has key, size; allowed are some of key"),
        ({"partitions": [1, 9]}, "partitions has 9; topic mistakes has 0 to 2"),
        ({"start": -5}, "start is -5; allowed are earliest"),
        ({"end": "earliest"}, "end is earliest; allowed are latest"),
        ({"start": datetime(2020, 1, 1)}, "start is .*; allowed are .*time zone"),
        ({"start": {0: 1}}, r"start does not say where for partitions \[1, 2\]"),
        ({"via": "ship"}, "via is 'ship'; allowed are bucket, broker"),
        ({"threads": 0}, "threads is 0"),
        ({"storage": {"bucket": "x"}}, "unknown storage options bucket; allowed are diskless"),
        ({"config": {"security.protocol": "TLS"}}, "security.protocol is 'TLS'"),
        ({"config": {"nonsense": "1"}}, "unknown setting 'nonsense'; allowed are those of a"),
        ({"config": {"sasl.mechanisms": "PLAIN"}}, r"'sasl.mechanisms' \(is it sasl.mechanism\?\)"),
        ({"config": {"request.timeout.ms": 5}}, "config request.timeout.ms is 5; allowed is text"),
        ({"config": {"bootstrap.servers": "h:1"}}, "bootstrap.servers in config 'h:1': set one"),
    ):
        with pytest.raises(ConfigError, match=why):
            read(broker, topic, **options)


def test_no_broker_at_the_address() -> None:
    with pytest.raises(KafkaError) as refused:
        skylog.read("t", bootstrap="127.0.0.1:1", config={"default.api.timeout.ms": "300"})
    assert refused.value.code is ErrorCode.NETWORK_EXCEPTION
    assert "127.0.0.1:1" in str(refused.value)


def test_a_missing_bucket(broker: Broker, tmp_path: Path) -> None:
    topic = create(broker, "elsewhere", **{"diskless.enable": "true"})
    produce(broker, topic, 10)
    nowhere = {"diskless.storage.url": (tmp_path / "nowhere").as_uri()}
    with pytest.raises(ConfigError, match="nowhere is not a directory on this machine"):
        read(broker, topic, storage=nowhere).to_arrow()
    (tmp_path / "empty").mkdir()
    empty = {"diskless.storage.url": (tmp_path / "empty").as_uri()}
    with pytest.raises(StorageError, match="topic elsewhere partition 0 offset 0: cannot read wal"):
        read(broker, topic, storage=empty).to_arrow()


def test_memory_is_read_through_the_broker() -> None:
    """Only the broker can read a store in its own memory."""
    with Broker({"diskless.storage.url": "memory://"}) as running:
        topic = create(running, "memory", **{"diskless.enable": "true"})
        produce(running, topic, 60)
        assert rows_of(read(running, topic).to_arrow()) == consumed(running, topic)


PAGE = Path(__file__).parents[2] / "docs" / "frames.md"


def test_the_examples_of_the_page_work(broker: Broker, monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs every example of the page, in order, on a topic of that name."""
    pytest.importorskip("duckdb")
    create(broker, "orders", **{"diskless.enable": "true"})
    produce(broker, "orders", 100)
    original = skylog.read
    here = {"bootstrap": broker.bootstrap}
    monkeypatch.setattr(
        skylog, "read", lambda topic, **more: original(topic, **{**more, **here}), raising=False
    )
    names: dict[str, object] = {}
    examples = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    assert len(examples) == 5
    for example in examples:
        exec(example, names)
    assert names["rows"] == 100
    assert names["table"].num_rows == 100  # type: ignore[attr-defined]
