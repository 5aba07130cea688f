"""What one client writes, every client reads, byte for byte."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.interop.clients import CLIENTS, CODECS, Client, Record, kcat

# Clients warn about their own code.
pytestmark = [pytest.mark.interop, pytest.mark.filterwarnings("ignore::DeprecationWarning")]

NOW = 1_750_000_000_000
PLAIN = [
    Record(0, NOW, b"key", b"value"),
    Record(0, NOW + 5, None, b"no key"),
    Record(0, NOW + 1, b"no value", None),
    Record(1, NOW + 2, b"", b""),
    Record(1, NOW - 86_400_000, bytes(range(256)), bytes(range(255, -1, -1))),
    Record(1, NOW + 3, b"headers", b"v", (("a", b"1"), ("b", b""), ("ü", "ß".encode()))),
    Record(0, NOW + 4, b"large", b"x" * 200_000),
]
# kafkajs cannot express these: its headers are an object of strings.
DOUBLE_HEADERS = Record(0, NOW + 7, b"h", b"v", (("same", b"1"), ("other", b"2"), ("same", b"3")))
NULL_HEADER = Record(0, NOW + 8, b"h", b"v", (("null", None),))

Get = Callable[[str], Client]
NewTopic = Callable[..., str]


def records_of(writer: str) -> list[Record]:
    if writer == "kafkajs":
        return PLAIN
    if writer in ("aiokafka", "kafka-python"):
        return [*PLAIN, DOUBLE_HEADERS]
    return [*PLAIN, DOUBLE_HEADERS, NULL_HEADER]


def seen_by(reader: str, records: list[Record]) -> list[Record]:
    """The records as a reader can show them: kafkajs cannot show the order of equal headers."""
    if reader != "kafkajs":
        return records
    return [
        Record(r.partition, r.timestamp, r.key, r.value, tuple(sorted(r.headers, key=str)))
        for r in records
    ]


def in_order(records: list[Record]) -> list[Record]:
    """By partition; within it as they were written."""
    return sorted(records, key=lambda record: record.partition)


@pytest.fixture(scope="module")
def written() -> dict[tuple[str, str], str]:
    """Topics by writer and codec: each is written once and read by all."""
    return {}


@pytest.mark.parametrize("writer", CLIENTS)
@pytest.mark.parametrize("reader", CLIENTS)
def test_every_client_reads_every_client(
    writer: str, reader: str, client: Get, topic: NewTopic, written: dict[tuple[str, str], str]
) -> None:
    sent = in_order(records_of(writer))
    for codec in CODECS[writer]:
        if codec not in CODECS[reader]:
            continue
        if (writer, codec) not in written:
            written[writer, codec] = topic(2)
            client(writer).produce(written[writer, codec], records_of(writer), codec)
        found = client(reader).consume(written[writer, codec], len(sent))
        assert seen_by(reader, found) == seen_by(reader, sent)
        for index in (0, 1):
            offsets = [record.offset for record in found if record.partition == index]
            assert offsets == list(range(len(offsets)))


@pytest.mark.parametrize("writer", CLIENTS)
@pytest.mark.parametrize("acks", ["0", "1"])
def test_other_acks(writer: str, acks: str, client: Get, topic: NewTopic) -> None:
    name = topic()
    sent = [Record(0, NOW + i, b"k%d" % i, b"v") for i in range(50)]
    client(writer).produce(name, sent, acks=acks)
    assert client("librdkafka").consume(name, 50) == sent


@pytest.mark.parametrize("reader", [name for name in CLIENTS if name != "kafkajs"])
def test_reading_from_a_time_on(reader: str, client: Get, topic: NewTopic) -> None:
    name = topic(2)
    sent = [Record(i % 2, NOW + 1000 * i, b"k", b"%d" % i) for i in range(20)]
    client("librdkafka").produce(name, sent, "lz4")
    expected = in_order([record for record in sent if record.timestamp >= NOW + 13_500])
    assert client(reader).consume(name, len(expected), millis=NOW + 13_500) == expected


@pytest.mark.parametrize("writer", CLIENTS)
def test_messages_near_the_limit(writer: str, client: Get, topic: NewTopic) -> None:
    """Messages within the limit are accepted; larger ones are refused and leave nothing."""
    name = topic(max_message_bytes="2000000")
    fits = Record(0, NOW, b"k", b"x" * 1_999_900)
    client(writer).produce(name, [fits])
    with pytest.raises(Exception, match=r"(?i)too[ _]?large|larger than"):
        client(writer).produce(name, [Record(0, NOW, b"k", b"x" * 2_000_000)])
    client(writer).produce(name, [Record(0, NOW, b"k", b"after")])
    assert [len(r.value or b"") for r in client("java").consume(name, 2)] == [1_999_900, 5]


@pytest.mark.parametrize("writer", ["franz-go", "kafkajs"])
def test_a_transaction_is_committed(writer: str, client: Get, topic: NewTopic) -> None:
    name = topic()
    record = Record(0, NOW, b"k", b"v")
    client(writer).produce(name, [record], transaction=f"of-{writer}")
    client(writer).produce(name, [record])


def test_unknown_topics_are_refused(client: Get, kafka_off: str) -> None:
    """Without auto-creation, a producer gets an error."""
    from confluent_kafka import Producer

    producer = Producer(
        {
            "bootstrap.servers": kafka_off,
            "message.timeout.ms": 5_000,
            "topic.metadata.propagation.max.ms": 500,
        }
    )
    errors = []
    producer.produce("nowhere", b"v", on_delivery=lambda error, _: errors.append(error))
    producer.flush(20)
    assert errors
    assert "UNKNOWN_TOPIC" in errors[0].name()


@pytest.fixture
def kafka_off(tmp_path_factory: pytest.TempPathFactory):  # type: ignore[no-untyped-def]
    from tests.interop.support import start_skylog

    node = start_skylog(tmp_path_factory.mktemp("closed"), {"auto.create.topics.enable": "false"})
    yield node.bootstrap
    node.process.stop()


def test_topics_are_made_on_demand(bootstrap: str, client: Get, name: Callable[[str], str]) -> None:
    for writer in ("java", "librdkafka", "aiokafka", "kafka-python"):
        topic = name("made")
        client(writer).produce(topic, [Record(0, NOW, b"k", b"v")])
        assert len(client("librdkafka").consume(topic, 1)) == 1


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_kcat(bootstrap: str, codec: str, topic: NewTopic, client: Get) -> None:
    name = topic()
    lines = [b"key%d:value %d" % (i, i) for i in range(500)]
    kcat(
        bootstrap,
        "-P",
        "-t",
        name,
        "-K:",
        "-z",
        codec,
        "-H",
        "h=1",
        stdin=b"\n".join(lines) + b"\n",
    )
    out = kcat(bootstrap, "-C", "-t", name, "-e", "-q", "-K:", "-o", "beginning")
    assert out.splitlines() == lines
    found = client("java").consume(name, 500)
    assert [(r.key, r.value) for r in found] == [tuple(line.split(b":")) for line in lines]
    assert {r.headers for r in found} == {(("h", b"1"),)}
    assert b"offset 500" in kcat(bootstrap, "-Q", "-t", f"{name}:0:-1")
    last = kcat(bootstrap, "-C", "-t", name, "-e", "-q", "-o", "-3", "-f", "%o %p %s\\n")
    assert last.splitlines() == [b"%d 0 value %d" % (i, i) for i in (497, 498, 499)]
    assert f'topic "{name}" with 1 partitions'.encode() in kcat(bootstrap, "-L", "-t", name)


def test_kcat_nulls_and_groups(bootstrap: str, topic: NewTopic, name: Callable[[str], str]) -> None:
    topic_name, group = topic(3), name("group")
    kcat(bootstrap, "-P", "-t", topic_name, "-K:", "-Z", "-p", "1", stdin=b"k:\n:v\n")
    form = "%p %o %K %S\\n"
    out = kcat(bootstrap, "-C", "-t", topic_name, "-e", "-q", "-f", form)
    assert out.splitlines() == [b"1 0 1 -1", b"1 1 -1 1"]
    out = kcat(
        bootstrap,
        "-G",
        group,
        "-e",
        "-q",
        "-f",
        form,
        "-X",
        "auto.offset.reset=earliest",
        topic_name,
    )
    assert out.splitlines() == [b"1 0 1 -1", b"1 1 -1 1"]
    again = kcat(
        bootstrap,
        "-G",
        group,
        "-e",
        "-q",
        "-f",
        form,
        "-X",
        "auto.offset.reset=earliest",
        topic_name,
    )
    assert again == b""
