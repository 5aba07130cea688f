"""Topics by librdkafka: created, filled, and read to their ends."""

from __future__ import annotations

from collections.abc import Mapping

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, Message, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

SECONDS_MAX = 60


def create_topic(
    bootstrap: str, topic: str, partitions: int = 1, config: Mapping[str, str] | None = None
) -> str:
    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.create_topics([NewTopic(topic, partitions, 1, config=dict(config or {}))])[topic].result()
    return topic


def partitions_of(bootstrap: str) -> dict[str, int]:
    """All topics, and how many partitions each has."""
    found = AdminClient({"bootstrap.servers": bootstrap}).list_topics(timeout=SECONDS_MAX).topics
    return {name: len(topic.partitions) for name, topic in found.items()}


def read_topic(
    bootstrap: str, topic: str, partitions: int = 1, isolation: str = "read_committed"
) -> list[Message]:
    """Everything that this reader may read now, each partition in order."""
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "nobody",
            "isolation.level": isolation,
            "enable.auto.commit": False,
            "enable.partition.eof": True,
        }
    )
    consumer.assign([TopicPartition(topic, i, OFFSET_BEGINNING) for i in range(partitions)])
    found: list[Message] = []
    ended: set[int] = set()
    while len(ended) < partitions:
        message = consumer.poll(SECONDS_MAX)
        assert message is not None, f"no end after {len(found)} records"
        if message.error() is None:
            found.append(message)
        else:
            assert message.error().code() == KafkaError._PARTITION_EOF, message.error()
            ended.add(message.partition())
    consumer.close()
    return found
