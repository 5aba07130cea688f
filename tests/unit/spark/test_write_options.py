"""Options and schemas of writes: accepted ones, and errors before a job runs."""

from __future__ import annotations

import pickle
from typing import Any

import pytest
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    DoubleType,
    IntegerType,
    LongType,
    NullType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from skylog.bulk.writer import Written
from skylog.kernel.errors import ConfigError
from skylog.spark.sink import (
    SinkMessage,
    StreamWriter,
    WriteError,
    _has_failed_task,
    _query,
    batch_writer,
    check_schema,
)
from skylog.spark.write_options import WRITE_ID_CHARACTERS_MAX, parse_write
from skylog.wire.batch import Compression

SERVERS = {"kafka.bootstrap.servers": "localhost:9092"}
HEADER = StructType([StructField("key", StringType()), StructField("value", BinaryType())])


def parse(*, streaming: bool = False, **options: str) -> Any:
    named = {key.replace("__", "."): value for key, value in options.items()}
    return parse_write({**SERVERS, **named}, streaming=streaming)


def test_what_spark_and_kafka_users_write() -> None:
    found = parse(
        topic=" t ",
        writeID="nightly-2026-11-15",
        kafka__compression__type="ZSTD",
        kafka__acks="1",
        kafka__batch__size="100",
        checkpointLocation="/tmp/x",
        includeHeaders="true",
        diskless__storage__s3__region="eu",
        write__batch__bytes="2048",
        write__object__bytes="65536",
    )
    assert (found.topic, found.write_id, found.codec) == (
        "t",
        "nightly-2026-11-15",
        Compression.ZSTD,
    )
    assert found.storage == {"diskless.storage.s3.region": "eu"}
    assert (found.batch_bytes, found.object_bytes) == (2048, 65536)
    assert dict(found.client) == {"bootstrap.servers": "localhost:9092"}
    assert pickle.loads(pickle.dumps(found)) == found
    assert found.context().codec is Compression.ZSTD
    assert parse().codec is Compression.NONE
    assert parse(compression="lz4", kafka__compression__type="lz4").codec is Compression.LZ4


@pytest.mark.parametrize(
    ("options", "what"),
    [
        ({"compresion": "lz4"}, r"compresion \(is it compression\?\)"),
        ({"subscribe": "t"}, "unknown options subscribe"),
        ({"kafka__nonsense": "1"}, "kafka.nonsense"),
        ({"kafka__transactional__id": "x"}, "kafka.transactional.id is not supported"),
        ({"kafka__key__serializer": "x"}, "kafka.key.serializer is not supported"),
        ({"kafka__partitioner__class": "x"}, "kafka.partitioner.class is not supported"),
        ({"topic": " "}, "option topic is empty"),
        ({"compression": "brotli"}, "option compression is 'brotli'; allowed are none, gzip"),
        (
            {"compression": "lz4", "kafka__compression__type": "zstd"},
            "compression=lz4 and kafka.compression.type=zstd contradict",
        ),
        ({"writeId": ""}, "option writeId is ''"),
        ({"writeId": " x"}, "option writeId is ' x'"),
        ({"writeId": "x" * (WRITE_ID_CHARACTERS_MAX + 1)}, "option writeId is"),
        ({"write__batch__bytes": "10"}, "option write.batch.bytes is '10'; allowed are 1024"),
        ({"write__object__bytes": "x"}, "option write.object.bytes is 'x'"),
    ],
)
def test_options_that_are_refused_by_name(options: dict[str, str], what: str) -> None:
    with pytest.raises(ConfigError, match=what):
        parse(**options)


def test_a_stream_has_no_write_id_and_servers_must_be_named() -> None:
    with pytest.raises(ConfigError, match="writeId is allowed in batch writes only"):
        parse(streaming=True, writeId="x")
    with pytest.raises(ConfigError, match=r"kafka\.bootstrap\.servers is not set"):
        parse_write({"topic": "t"}, streaming=False)


def fields(**types: Any) -> StructType:
    return StructType([StructField(name, kind) for name, kind in types.items()])


def test_schemas_that_can_be_written() -> None:
    everything = fields(
        key=StringType(),
        value=BinaryType(),
        topic=StringType(),
        partition=IntegerType(),
        headers=ArrayType(HEADER),
        timestamp=TimestampType(),
        offset=LongType(),
    )
    check_schema(everything, parse())
    check_schema(fields(value=StringType(), timestamp=LongType()), parse(topic="t"))
    check_schema(fields(value=NullType(), key=NullType()), parse(topic="t"))
    # The option takes precedence over the column.
    check_schema(fields(value=StringType(), topic=IntegerType()), parse(topic="t"))


@pytest.mark.parametrize(
    ("schema", "what"),
    [
        (fields(key=StringType()), "no column value; it has key"),
        (fields(value=DoubleType()), "column value is double; allowed are string, binary"),
        (fields(value=StringType(), key=IntegerType()), "column key is int"),
        (fields(value=StringType(), partition=LongType()), "column partition is bigint"),
        (fields(value=StringType(), headers=StringType()), "column headers is string"),
        (fields(value=StringType(), timestamp=StringType()), "column timestamp is string"),
        (
            StructType([StructField("value", StringType()), StructField("value", StringType())]),
            "2 columns value",
        ),
    ],
)
def test_schemas_that_are_refused_by_name(schema: StructType, what: str) -> None:
    with pytest.raises(ConfigError, match=what):
        check_schema(schema, parse(topic="t"))
    with pytest.raises(ConfigError):
        StreamWriter(schema, parse(streaming=True, topic="t"))


def test_no_topic_and_overwriting_are_refused() -> None:
    with pytest.raises(ConfigError, match="neither a column topic nor the option topic"):
        check_schema(fields(value=StringType()), parse())
    with pytest.raises(ConfigError, match="column topic is int"):
        check_schema(fields(value=StringType(), topic=IntegerType()), parse())
    with pytest.raises(ConfigError, match="mode overwrite"):
        batch_writer(fields(value=StringType()), parse(topic="t"), True)


def test_a_driver_that_cannot_be_reached_is_named_before_the_job() -> None:
    options = parse_write(
        {
            "kafka.bootstrap.servers": "127.0.0.1:1",
            "kafka.default.api.timeout.ms": "1",
            "topic": "t",
        },
        streaming=False,
    )
    with pytest.raises(WriteError, match=r"127\.0\.0\.1:1"):
        batch_writer(fields(value=StringType()), options, False)


def test_tasks_say_which_query_they_belong_to() -> None:
    one, other = SinkMessage(Written(), "q"), SinkMessage(Written(), "r")
    assert pickle.loads(pickle.dumps(one)) == one
    assert _query([one, None, one]) == "q"
    assert _query([None]) is None
    for wrong in ([one, other], [one, SinkMessage(Written())]):
        with pytest.raises(WriteError, match="disagree"):
            _query(wrong)
    assert _has_failed_task([one, None])
    assert not _has_failed_task([one, one])
