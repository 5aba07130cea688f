"""Options of reads: those of Spark's Kafka source are accepted; invalid ones are named."""

from __future__ import annotations

from typing import Any

import pytest

from skylog.bulk.properties import WITHOUT_EFFECT as CLIENT_WITHOUT_EFFECT
from skylog.client.metadata import TopicPartition
from skylog.kernel.errors import ConfigError
from skylog.spark.options import (
    COLUMNS,
    WITHOUT_EFFECT,
    Subscription,
    parse_batch,
    parse_columns,
    parse_stream,
)
from skylog.spark.positions import AtOffsets, AtTime, AtTimes, Everywhere

BASE = {"kafka.bootstrap.servers": "h:9092", "subscribe": "t"}
EARLIEST, LATEST = Everywhere(-2), Everywhere(-1)
T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)


def without(*names: str) -> dict[str, str]:
    return {key: value for key, value in BASE.items() if key not in names}


def test_defaults_of_a_batch_query() -> None:
    parsed = parse_batch(BASE)
    assert parsed.subscription == Subscription(topics=("t",))
    assert (parsed.starting, parsed.ending) == (EARLIEST, LATEST)
    assert parsed.columns == COLUMNS
    assert parsed.client == {"bootstrap.servers": "h:9092"}
    assert parsed.storage == {}
    assert parsed.fail_on_data_loss
    assert not parsed.latest_if_no_match
    assert (parsed.via, parsed.split_bytes) == ("bucket", None)
    assert parsed.min_partitions is parsed.max_records_per_partition is None


def test_a_stream_starts_at_the_latest_offsets() -> None:
    parsed = parse_stream(BASE)
    assert parsed.starting == LATEST
    assert parsed.max_offsets_per_trigger is parsed.min_offsets_per_trigger is None
    assert parsed.max_trigger_delay_ms == 15 * 60_000
    assert parsed.publish_group_id is None


@pytest.mark.parametrize(
    ("options", "field", "value"),
    [
        ({"startingOffsets": "earliest"}, "starting", EARLIEST),
        ({"STARTINGOFFSETS": " Earliest "}, "starting", EARLIEST),
        ({"startingOffsets": "latest"}, "starting", LATEST),
        (
            {"startingOffsets": '{"t":{"0":5,"1":-2}}'},
            "starting",
            AtOffsets({T0: 5, T1: -2}),
        ),
        ({"startingTimestamp": "1000"}, "starting", AtTime(1000)),
        ({"startingOffsetsByTimestamp": '{"t":{"0":7}}'}, "starting", AtTimes({T0: 7})),
        # A global time has precedence over times, times over offsets.
        (
            {"startingTimestamp": "1", "startingOffsetsByTimestamp": '{"t":{"0":7}}'},
            "starting",
            AtTime(1),
        ),
        (
            {"startingOffsetsByTimestamp": '{"t":{"0":7}}', "startingOffsets": "earliest"},
            "starting",
            AtTimes({T0: 7}),
        ),
        ({"startingOffsetsByTimestampStrategy": "LATEST"}, "latest_if_no_match", True),
        ({"failOnDataLoss": "False"}, "fail_on_data_loss", False),
        ({"includeHeaders": "true"}, "columns", (*COLUMNS, "headers")),
        (
            {"columns": "value, OFFSET,timestamptype"},
            "columns",
            ("value", "offset", "timestampType"),
        ),
        ({"columns": "headers"}, "columns", ("headers",)),
        ({"minPartitions": "12"}, "min_partitions", 12),
        ({"maxRecordsPerPartition": "3"}, "max_records_per_partition", 3),
        ({"maxOffsetsPerTrigger": "100"}, "max_offsets_per_trigger", 100),
        ({"minOffsetsPerTrigger": "10"}, "min_offsets_per_trigger", 10),
        ({"maxTriggerDelay": "90"}, "max_trigger_delay_ms", 90),
        ({"maxTriggerDelay": "2min"}, "max_trigger_delay_ms", 120_000),
        ({"maxTriggerDelay": "3 h"}, "max_trigger_delay_ms", 3 * 3_600_000),
        ({"maxTriggerDelay": "1500us"}, "max_trigger_delay_ms", 1),
        ({"read.via": "broker"}, "via", "broker"),
        ({"read.split.bytes": "1048576"}, "split_bytes", 1_048_576),
        ({"read.timestamp.min": "7"}, "timestamp_min", 7),
        ({"read.timestamp.max": "9"}, "timestamp_max", 9),
        ({"read.push.filters": "true"}, "push_filters", True),
        ({"publish.group.id": "lag"}, "publish_group_id", "lag"),
        (
            {"diskless.storage.url": "s3://bucket/p", "diskless.storage.s3.region": "x"},
            "storage",
            {"diskless.storage.url": "s3://bucket/p", "diskless.storage.s3.region": "x"},
        ),
    ],
)
def test_each_option(options: dict[str, str], field: str, value: Any) -> None:
    assert getattr(parse_stream({**BASE, **options}), field) == value


@pytest.mark.parametrize(
    ("option", "value", "expected"),
    [
        ("subscribe", " a, b ,a,", Subscription(topics=("a", "b"))),
        ("subscribePattern", "a.*", Subscription(pattern="a.*")),
        (
            "assign",
            '{"a":[0,2],"b":[1,1]}',
            Subscription(
                partitions=(
                    TopicPartition("a", 0),
                    TopicPartition("a", 2),
                    TopicPartition("b", 1),
                )
            ),
        ),
    ],
)
def test_what_is_read(option: str, value: str, expected: Subscription) -> None:
    assert parse_batch({**without("subscribe"), option: value}).subscription == expected


def test_a_pattern_is_looked_for_anywhere_in_the_name() -> None:
    subscription = parse_batch({**without("subscribe"), "subscribePattern": "b.d"}).subscription
    assert subscription.matches("abcde")
    assert not subscription.matches("bd")
    assert not Subscription(topics=("t",)).matches("t")


def test_security_goes_to_the_client() -> None:
    security = {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "SCRAM-SHA-512",
        "sasl.jaas.config": "org.apache.kafka.common.security.scram.ScramLoginModule required"
        ' username="u" password="p";',
        "request.timeout.ms": "5000",
    }
    parsed = parse_batch({**BASE, **{f"kafka.{key}": value for key, value in security.items()}})
    assert parsed.client == {"bootstrap.servers": "h:9092", **security}


def test_what_only_tunes_other_clients_is_accepted() -> None:
    tuning = {f"kafka.{name}": "1" for name in CLIENT_WITHOUT_EFFECT}
    tuning |= dict.fromkeys(WITHOUT_EFFECT, "1")
    assert parse_batch({**BASE, **tuning}) == parse_batch(BASE)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({}, ["subscribe", "subscribePattern", "assign", "none"]),
        ({"subscribe": "a", "assign": '{"a":[0]}'}, ["subscribe and assign", "exactly one"]),
        ({"subscribe": " , "}, ["subscribe", "empty"]),
        ({"subscribePattern": ""}, ["subscribePattern", "empty"]),
        ({"subscribePattern": "a("}, ["subscribePattern", "a("]),
        ({"assign": "[1]"}, ["assign", '{"topicA":[0,1]']),
        ({"assign": '{"a":[-1]}'}, ["assign"]),
        ({"assign": '{"a":["0"]}'}, ["assign"]),
        ({"assign": "{}"}, ["assign", "no partitions"]),
        ({"subscribe": "t", "startingOffsets": "yesterday"}, ["startingOffsets", "earliest"]),
        ({"subscribe": "t", "startingOffsets": '{"t":{"0":-3}}'}, ["startingOffsets", "-3"]),
        ({"subscribe": "t", "startingOffsets": '{"t":{"x":1}}'}, ["startingOffsets"]),
        ({"subscribe": "t", "startingOffsets": '{"t":{"0":1.5}}'}, ["startingOffsets"]),
        ({"subscribe": "t", "startingOffsets": '{"t":{"0":true}}'}, ["startingOffsets"]),
        ({"subscribe": "t", "startingOffsets": "[" * 100_000}, ["startingOffsets"]),
        ({"subscribe": "t", "startingTimestamp": "soon"}, ["startingTimestamp", "soon"]),
        ({"subscribe": "t", "startingOffsetsByTimestamp": "1"}, ["startingOffsetsByTimestamp"]),
        (
            {"subscribe": "t", "startingOffsetsByTimestampStrategy": "first"},
            ["startingOffsetsByTimestampStrategy", "first", "error, latest"],
        ),
        ({"subscribe": "t", "failOnDataLoss": "maybe"}, ["failOnDataLoss", "true, false"]),
        ({"subscribe": "t", "includeHeaders": "1"}, ["includeHeaders", "false, true"]),
        ({"subscribe": "t", "minPartitions": "0"}, ["minPartitions", "1"]),
        ({"subscribe": "t", "minPartitions": "-1"}, ["minPartitions", "-1"]),
        ({"subscribe": "t", "maxRecordsPerPartition": "x"}, ["maxRecordsPerPartition"]),
        ({"subscribe": "t", "read.via": "air"}, ["read.via", "bucket, broker"]),
        ({"subscribe": "t", "read.split.bytes": "1"}, ["read.split.bytes", "65536"]),
        ({"subscribe": "t", "diskless.storage.url": "gopher://x"}, ["diskless.storage.url", "s3://"]),
        ({"subscribe": "t", "read.timestamp.min": "-5"}, ["read.timestamp.min"]),
        (
            {"subscribe": "t", "read.timestamp.min": "6", "read.timestamp.max": "5"},
            ["read.timestamp.min is 6", "read.timestamp.max=5"],
        ),
        ({"subscribe": "t", "read.push.filters": "yes"}, ["read.push.filters", "false, true"]),
        ({"subscribe": "t", "columns": "value,vlaue"}, ["columns", "vlaue", "timestampType"]),
        ({"subscribe": "t", "columns": "value,Value"}, ["columns", "twice"]),
        ({"subscribe": "t", "columns": " "}, ["columns"]),
        ({"subscribe": "t", "maxTriggerDelay": "1 year"}, ["maxTriggerDelay", "1 year"]),
        ({"subscribe": "t", "startingOfsets": "earliest"}, ["startingofsets", "startingOffsets?"]),
        ({"subscribe": "t", "path": "/x", "zap": "1"}, ["path", "zap", "read.via"]),
        ({"subscribe": "t", "kafka.bootstrap.server": "h:1"}, ["kafka.bootstrap.server"]),
        ({"subscribe": "t", "kafka.bootstrap.servers": " "}, ["kafka.bootstrap.servers"]),
        ({"subscribe": "t", "kafka.bootstrap.servers": "host"}, ["bootstrap.servers", "host:port"]),
        ({"subscribe": "t", "kafka.auto.offset.reset": "earliest"}, ["auto.offset.reset"]),
        ({"subscribe": "t", "kafka.key.deserializer": "x"}, ["kafka.key.deserializer", "bytes"]),
        ({"subscribe": "t", "kafka.value.deserializer": "x"}, ["kafka.value.deserializer"]),
        ({"subscribe": "t", "kafka.enable.auto.commit": "true"}, ["kafka.enable.auto.commit"]),
        ({"subscribe": "t", "kafka.interceptor.classes": "x"}, ["kafka.interceptor.classes"]),
        ({"subscribe": "t", "kafka.security.protocol": "HTTPS"}, ["security.protocol", "SASL_SSL"]),
        ({"subscribe": "t", "kafka.security.protocol": "SASL_SSL"}, ["sasl.jaas.config"]),
        ({"subscribe": "t", "kafka.ssl.engine.factory.class": "x"}, ["ssl.engine.factory.class"]),
        ({"subscribe": "t", "kafka.request.timeout.ms": "1s"}, ["request.timeout.ms", "1s"]),
    ],
)  # fmt: skip
def test_errors_of_any_query_are_named(options: dict[str, str], words: list[str]) -> None:
    for parse in (parse_batch, parse_stream):
        with pytest.raises(ConfigError) as raised:
            parse({"kafka.bootstrap.servers": "h:9092", **options})
        for word in words:
            assert word in str(raised.value)


def test_servers_must_be_given() -> None:
    with pytest.raises(ConfigError, match=r"kafka\.bootstrap\.servers"):
        parse_batch({"subscribe": "t"})


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"startingOffsets": "latest"}, ["startingOffsets", "latest"]),
        ({"startingOffsets": '{"t":{"0":1,"1":-1}}'}, ["startingOffsets", "t-1"]),
        ({"endingOffsets": "earliest"}, ["endingOffsets", "earliest"]),
        ({"endingOffsets": '{"t":{"0":-2}}'}, ["endingOffsets", "t-0"]),
        (
            {"startingOffsets": '{"t":{"0":1}}', "endingOffsets": '{"t":{"1":5}}'},
            ["t-0", "t-1", "same partitions"],
        ),
        (
            {"startingOffsets": '{"t":{"0":6}}', "endingOffsets": '{"t":{"0":5}}'},
            ["6", "5", "t-0"],
        ),
        (
            {
                "startingOffsetsByTimestamp": '{"t":{"0":6}}',
                "endingOffsetsByTimestamp": '{"t":{"0":5}}',
            },
            ["timestamp", "t-0"],
        ),
        (
            {"startingTimestamp": "6", "endingTimestamp": "5"},
            ["startingTimestamp", "endingTimestamp"],
        ),
        ({"publish.group.id": "g"}, ["publish.group.id", "streaming"]),
    ],
)
def test_errors_of_a_batch_query_are_named(options: dict[str, str], words: list[str]) -> None:
    with pytest.raises(ConfigError) as raised:
        parse_batch({**BASE, **options})
    for word in words:
        assert word in str(raised.value)


def test_latest_is_no_number_to_compare() -> None:
    parsed = parse_batch(
        {**BASE, "startingOffsets": '{"t":{"0":6}}', "endingOffsets": '{"t":{"0":-1}}'}
    )
    assert parsed.ending == AtOffsets({T0: -1})


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"endingOffsets": "latest"}, ["endingOffsets"]),
        ({"endingTimestamp": "1"}, ["endingTimestamp"]),
        ({"endingOffsetsByTimestamp": '{"t":{"0":5}}'}, ["endingOffsetsByTimestamp"]),
        (
            {"minOffsetsPerTrigger": "3", "maxOffsetsPerTrigger": "2"},
            ["minOffsetsPerTrigger (3)", "maxOffsetsPerTrigger (2)"],
        ),
        ({"maxOffsetsPerTrigger": "0"}, ["maxOffsetsPerTrigger"]),
        ({"publish.group.id": " "}, ["publish.group.id"]),
    ],
)
def test_errors_of_a_stream_are_named(options: dict[str, str], words: list[str]) -> None:
    with pytest.raises(ConfigError) as raised:
        parse_stream({**BASE, **options})
    for word in words:
        assert word in str(raised.value)


def test_columns_are_known_before_the_kind_of_query_is() -> None:
    assert parse_columns({**BASE, "startingOffsets": "latest", "columns": "key"}) == ("key",)
    with pytest.raises(ConfigError, match="exactly one"):
        parse_columns(without("subscribe"))


def test_no_secret_is_repeated_in_an_error() -> None:
    with pytest.raises(ConfigError) as raised:
        parse_batch(
            {**BASE, "kafka.security.protocol": "SASL_SSL", "kafka.sasl.jaas.config": "hunter2"}
        )
    assert "hunter2" not in str(raised.value)
