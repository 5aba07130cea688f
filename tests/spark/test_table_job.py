"""A topic becomes a table: every record once, in the table or in the bad rows."""

from __future__ import annotations

import io
import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import duckdb
import fastavro
import pyarrow.dataset as ds
import pytest
from pyiceberg.catalog.sql import SqlCatalog
from pyspark.sql import SparkSession

from skylog.kernel.errors import ConfigError, KafkaError
from skylog.spark.jobs.cluster import JobCluster
from skylog.spark.jobs.table import job as table
from skylog.spark.jobs.table.job import TableJob
from skylog.testing import Broker
from tests.spark.support import Message, Row, Topics


def job(broker: Broker, topic: str, to: Path, **more: Any) -> TableJob:
    cluster = JobCluster({"bootstrap.servers": broker.bootstrap})
    return TableJob(cluster, topic, str(to), **more)


def catalog(to: Path) -> SqlCatalog:
    return SqlCatalog("skylog", uri=f"sqlite:///{to}/catalog.db", warehouse=f"file://{to}")


def iceberg(to: Path, name: str) -> list[dict[str, Any]]:
    return catalog(to).load_table(f"default.{name}").scan().to_arrow().to_pylist()


def parquet(folder: Path) -> list[dict[str, Any]]:
    files = sorted(str(path) for path in folder.glob("*.parquet"))
    return ds.dataset(files).to_table().to_pylist() if files else []


def record(row: dict[str, Any], topic: str) -> Row:
    """A row of a raw table from librdkafka's record."""
    headers = row["_headers"]
    return Row(
        topic,
        row["_partition"],
        row["_offset"],
        row["_key"],
        row["value"],
        round(row["_timestamp"].timestamp() * 1000),
        0,
        tuple((one["key"], one["value"]) for one in headers) if headers else None,
    )


def messages(count: int, first: int = 0) -> list[Message]:
    return [
        Message(
            None if i % 7 == 0 else b"v%d" % i,
            None if i % 5 == 0 else b"k%d" % i,
            i % 2,
            1_700_000_000_000 + i,
            [("h", b"%d" % i), ("none", None)] if i % 3 == 0 else [],
        )
        for i in range(first, first + count)
    ]


@pytest.mark.parametrize(("form", "diskless"), [("iceberg", True), ("parquet", False)])
def test_a_topic_becomes_a_table_in_several_runs(
    spark: SparkSession, broker: Broker, topics: Topics, tmp_path: Path, form: str, diskless: bool
) -> None:
    name = topics.create(f"table.{form}.{diskless}", 2, diskless=diskless)
    topics.produce(name, messages(250), "zstd")
    wanted = job(broker, name, tmp_path, form=form, chunk_records=100)
    first = table.run(spark, wanted)
    assert (first.good_rows, first.bad_rows, first.chunks) == (250, 0, 3)
    topics.produce(name, messages(50, 250))
    topics.grow(name, 3)
    topics.produce(name, [Message(b"new", b"k", 2)])
    second = table.run(spark, wanted)
    assert (second.good_rows, second.chunks) == (51, 1)
    assert second.next_offsets == {0: 150, 1: 150, 2: 1}
    again = table.run(spark, wanted)
    assert (again.good_rows, again.chunks) == (0, 0)

    flat = name.replace(".", "_")
    rows = iceberg(tmp_path, flat) if form == "iceberg" else parquet(tmp_path / flat)
    assert sorted(record(row, name) for row in rows) == topics.rows(name, 3)
    assert all(row["_tombstone"] == (row["value"] is None) for row in rows)
    if form == "iceberg":
        found = catalog(tmp_path).load_table(f"default.{flat}")
        scan = found.scan().to_arrow()
        total = duckdb.sql("select count(*), max(_offset) from scan").fetchall()
        assert scan.num_rows == 301
        assert total == [(301, 149)]
        offsets = found.current_snapshot().summary.additional_properties["skylog.offsets"]  # type: ignore[union-attr]
        assert json.loads(offsets) == {"0": 150, "1": 150, "2": 1}
    else:
        assert sorted(parquet(tmp_path / flat), key=str) == sorted(rows, key=str)
        assert spark.read.parquet(str(tmp_path / flat)).count() == 301


JSON = [
    b'{"id": 1, "name": "a", "tags": ["x"], "_key": "mine", "d.e": 1}',
    b'{"id": 2, "at": {"x": 1.5, "y": null}}',
    b'{"id": "three"}',
    b"not json",
    b'{"id": 4} {"id": 5}',
    b'[{"id": 6}]',
    b"null",
    b"",
    b'{"name": "\xff"}',
    b'{"ID": 7, "at": {}}',
    None,
]


@pytest.mark.parametrize("form", ["iceberg", "parquet"])
def test_json_without_a_schema(
    spark: SparkSession, broker: Broker, topics: Topics, tmp_path: Path, form: str
) -> None:
    name = topics.create(f"json-{form}", 1)
    # Valid records come first: they define the types of the columns.
    topics.produce(name, [Message(value, b"k%d" % i) for i, value in enumerate(JSON[:2])])
    wanted = job(broker, name, tmp_path, form=form, values="json", chunk_records=1000)
    table.run(spark, wanted)
    topics.produce(name, [Message(value) for value in JSON[2:]])
    topics.produce(name, [Message(b'{"id": 8, "more": {"a": 1}, "at": {"z": true}}')])
    second = table.run(spark, wanted)
    assert (second.good_rows, second.bad_rows) == (3, 7)

    if form == "iceberg":
        rows, bad = iceberg(tmp_path, name), iceberg(tmp_path, f"{name}_bad")
    else:
        rows, bad = parquet(tmp_path / name), parquet(tmp_path / f"{name}_bad")
        latest = spark.read.option("mergeSchema", "true").parquet(str(tmp_path / name))
        rows = [row.asDict(recursive=True) for row in latest.collect()]
    by_offset = {row["_offset"]: row for row in rows}
    assert sorted(by_offset) == [0, 1, 9, 10, 11]
    assert (by_offset[0]["id"], by_offset[0]["name"], by_offset[0]["tags"]) == (1, "a", ["x"])
    assert (by_offset[0]["_key_"], by_offset[0]["_key"], by_offset[0]["d_e"]) == ("mine", b"k0", 1)
    assert by_offset[1]["at"]["x"] == 1.5
    assert (by_offset[9]["ID_"], by_offset[9]["id"]) == (7, None)
    assert by_offset[10]["_tombstone"] is True
    assert by_offset[10]["id"] is None
    assert by_offset[11]["more"] == {"a": 1}
    assert by_offset[11]["at"] == {"x": None, "z": True}
    errors = {row["offset"]: row["error"] for row in bad}
    assert sorted(errors) == [2, 3, 4, 5, 6, 7, 8]
    assert [row["value"] for row in sorted(bad, key=lambda row: row["offset"])] == JSON[2:9]
    assert errors[3] == "is not JSON"
    assert errors[8] == "is not UTF-8"
    assert errors[2] == "is not an object that fits the columns of the table"


def test_json_with_a_schema(
    spark: SparkSession, broker: Broker, topics: Topics, tmp_path: Path
) -> None:
    name = topics.create("json-schema", 1)
    topics.produce(
        name,
        [
            Message(b'{"id": 1, "at": "2026-01-02T03:04:05Z", "price": "1.5", "unknown": 1}'),
            Message(b'{"id": 1, "at": "nonsense"}'),
        ],
    )
    schema = "id int, at timestamp, price decimal(10,2), tags map<string,bigint>"
    wanted = job(broker, name, tmp_path, values="json", schema=schema)
    done = table.run(spark, wanted)
    assert (done.good_rows, done.bad_rows) == (1, 1)
    (row,) = iceberg(tmp_path, name)
    assert (row["id"], str(row["price"]), row["at"].year, row["tags"]) == (1, "1.50", 2026, None)
    assert "unknown" not in row
    # A schema may grow, not change.
    topics.produce(name, [Message(b'{"id": 3000000000, "more": "x"}')])
    table.run(spark, job(broker, name, tmp_path, values="json", schema="id bigint, more string"))
    assert {row["more"] for row in iceberg(tmp_path, name)} == {None, "x"}
    with pytest.raises(ConfigError, match="price is string, the table has decimal"):
        table.run(spark, job(broker, name, tmp_path, values="json", schema="price string"))


def framed(number: int, schema: Any, value: Any) -> bytes:
    stream = io.BytesIO()
    fastavro.schemaless_writer(stream, fastavro.parse_schema(schema), value)
    return b"\0" + number.to_bytes(4, "big") + stream.getvalue()


def avro(*fields: tuple[str, Any], name: str = "Order") -> Any:
    return {
        "type": "record",
        "name": name,
        "fields": [{"name": field, "type": kind} for field, kind in fields],
    }


def test_avro_of_several_schemas(
    spark: SparkSession, broker: Broker, topics: Topics, tmp_path: Path
) -> None:
    first = avro(("id", "int"), ("name", ["null", "string"]))
    second = avro(
        ("id", "long"),
        ("at", {"type": "long", "logicalType": "timestamp-millis"}),
        ("lines", {"type": "array", "items": avro(("sku", "string"), ("n", "int"), name="Line")}),
        ("either", ["int", "string"]),
        ("sums", {"type": "map", "values": "double"}),
    )
    third = avro(("id", "string"))
    schemas = tmp_path / "schemas"
    schemas.mkdir()
    for number, schema in {1: first, 2: second, 3: third}.items():
        (schemas / f"{number}.avsc").write_text(json.dumps(schema))
    (schemas / "4.avsc").write_text("nonsense")
    name = topics.create("avro-many", 1)
    line = {"sku": "s", "n": 2}
    order = {"id": 2**40, "at": 1_700_000_000_000, "lines": [line], "either": 5, "sums": {"a": 1.0}}
    whole = framed(2, second, order)
    values = [
        framed(1, first, {"id": 1, "name": "a"}),
        whole,
        framed(3, third, {"id": "x"}),
        framed(4, first, {"id": 1, "name": "a"}),
        framed(9, first, {"id": 1, "name": "a"}),
        whole[:-3],
        whole + b"more",
        b"\1abcdef",
        b"",
        None,
        framed(1, first, {"id": 2, "name": None}),
    ]
    topics.produce(name, [Message(value) for value in values])
    wanted = job(broker, name, tmp_path / "t", values="avro", schemas=str(schemas))
    done = table.run(spark, wanted)
    assert (done.good_rows, done.bad_rows) == (4, 7)
    rows = {row["_offset"]: row for row in iceberg(tmp_path / "t", name)}
    assert sorted(rows) == [0, 1, 9, 10]
    assert (rows[0]["id"], rows[0]["name"], rows[0]["at"]) == (1, "a", None)
    assert (rows[1]["id"], rows[1]["lines"], rows[1]["either"]) == (2**40, [line], "5")
    assert rows[1]["at"].timestamp() == 1_700_000_000
    # PyIceberg shows null lists of structs as empty ones; in the files they are null.
    folder = tmp_path / "t" / "default" / name / "data"
    stored = {row["_offset"]: row for path in folder.iterdir() for row in parquet(path)}
    assert (stored[0]["lines"], stored[0]["_headers"], stored[1]["lines"]) == (None, None, [line])
    assert dict(rows[1]["sums"]) == {"a": 1.0}
    errors = {row["offset"]: row["error"] for row in iceberg(tmp_path / "t", f"{name}_bad")}
    assert "id is string, the table has int64" in errors[2]
    assert "is not a valid Avro schema" in errors[3]
    assert "schema 9 is not in" in errors[4]
    assert "not of this Avro schema" in errors[5]
    assert "4 bytes follow" in errors[6]
    assert errors[7] == errors[8]


def test_avro_of_one_schema(
    spark: SparkSession, broker: Broker, topics: Topics, tmp_path: Path
) -> None:
    schema = avro(("id", "int"), ("day", {"type": "int", "logicalType": "date"}))
    name = topics.create("avro-plain", 1)
    topics.produce(name, [Message(framed(0, schema, {"id": i, "day": i})[5:]) for i in range(5)])
    (tmp_path / "order.avsc").write_text(json.dumps(schema))
    file = str(tmp_path / "order.avsc")
    done = table.run(
        spark, job(broker, name, tmp_path / "t", form="parquet", values="avro", schema=file)
    )
    assert done.good_rows == 5
    rows = parquet(tmp_path / "t" / name)
    assert sorted(row["id"] for row in rows) == list(range(5))
    assert {row["day"].year for row in rows} == {1970}


def test_records_deleted_by_retention_are_skipped_and_reported(
    spark: SparkSession, broker: Broker, topics: Topics, tmp_path: Path
) -> None:
    name = topics.create("table-late", 1)
    topics.produce(name, [Message(b"v%d" % i) for i in range(10)])
    table.run(spark, job(broker, name, tmp_path))
    for part in range(4):
        topics.produce(name, [Message(b"w%d" % (part * 5 + i)) for i in range(5)])
    topics.delete_records(name, 0, 20)
    done = table.run(spark, job(broker, name, tmp_path))
    assert (done.good_rows, done.skipped) == (10, {0: 10})
    assert sorted(row["_offset"] for row in iceberg(tmp_path, name)) == [*range(10), *range(20, 30)]

    topics.delete(name)
    topics.create(name, 1)
    topics.produce(name, [Message(b"new")])
    with pytest.raises(ConfigError, match="created again"):
        table.run(spark, job(broker, name, tmp_path))
    done = table.run(spark, job(broker, name, tmp_path, accept_new_topic=True))
    assert done.good_rows == 1


def test_a_killed_job_goes_on(
    spark: SparkSession, broker: Broker, topics: Topics, tmp_path: Path
) -> None:
    name = topics.create("table-killed", 2)
    values = [b"bad" if i % 9 == 0 else b'{"id": %d}' % i for i in range(150)]
    topics.produce(name, [Message(value, b"k", i % 2) for i, value in enumerate(values)])
    driver = [sys.executable, "-m", "tests.spark.table_driver", broker.bootstrap, name]
    process = subprocess.Popen(
        [*driver, str(tmp_path), "iceberg", "good", "2"],
        start_new_session=True,
        cwd=Path(__file__).parents[2],
        stderr=subprocess.DEVNULL,
    )
    try:
        assert process.wait(250) == -signal.SIGKILL
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
    assert len(iceberg(tmp_path, name)) < len(iceberg(tmp_path, f"{name}_bad")) * 8 < 8 * 17
    table.run(spark, job(broker, name, tmp_path, values="json", schema="id bigint"))
    good = [(row["_partition"], row["_offset"], row["id"]) for row in iceberg(tmp_path, name)]
    bad = [(row["partition"], row["offset"]) for row in iceberg(tmp_path, f"{name}_bad")]
    rows = topics.rows(name, 2)
    wanted = [row for row in rows if row.value != b"bad"]
    ids = [json.loads(row.value or b"")["id"] for row in wanted]
    assert sorted(good) == [(r.partition, r.offset, i) for r, i in zip(wanted, ids, strict=True)]
    assert sorted(bad) == [(row.partition, row.offset) for row in rows if row.value == b"bad"]


def test_errors_of_a_table_are_named(
    spark: SparkSession, broker: Broker, topics: Topics, tmp_path: Path
) -> None:
    name = topics.create("table-errors", 1)
    for wrong, message in (
        ({"values": "avro"}, "needs one of --schema and --schemas"),
        ({"schema": "a int"}, "not raw"),
        ({"values": "json", "schema": "a nonsense("}, "not a valid Spark schema"),
        ({"values": "json", "schema": "a interval day"}, "Iceberg does not support it"),
        ({"values": "json", "schema": "no-such-file"}, "No such file"),
        ({"values": "avro", "schema": '{"type": "x"}'}, "not a valid Avro schema"),
        ({"form": "parquet", "table": "_x"}, "must begin with a letter"),
    ):
        with pytest.raises(ConfigError, match=message):
            table.run(spark, job(broker, name, tmp_path, **wrong))
    with pytest.raises(KafkaError, match="no-such-topic"):
        table.run(spark, job(broker, "no-such-topic", tmp_path))
    table.run(spark, job(broker, name, tmp_path))
    with pytest.raises(ConfigError, match="as raw, not topic table-errors as json"):
        table.run(spark, job(broker, name, tmp_path, values="json"))
