"""A whole cluster is stopped under load, and starts again."""

from __future__ import annotations

import threading
import time

from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from skylog.testing.cluster import Cluster, start_together

DEADLINE_SECONDS = 120.0
SETTINGS = {
    "min.insync.replicas": "2",
    "diskless.metadata.topic.min.isr": "2",
    "diskless.metadata.topic.num.partitions": "3",
    "log.level": "ERROR",
}
QUIET = {"log_level": 0}


def produce_for_ever(bootstrap: str, ended: threading.Event, acked: dict[str, int]) -> None:
    producer = Producer({"bootstrap.servers": bootstrap, "enable.idempotence": True, **QUIET})

    def note(error: object, message: object) -> None:
        if error is None:
            acked[message.topic()] += 1  # type: ignore[attr-defined]

    while not ended.is_set():
        for topic in acked:
            producer.produce(topic, b"x" * 100, on_delivery=note)
        producer.poll(0.01)
    producer.flush(DEADLINE_SECONDS)


def test_a_cluster_that_was_stopped_under_load_starts_again() -> None:
    # Followers must be able to fetch from a broker whose coordinators are still being loaded.
    with Cluster(3, settings=SETTINGS) as cluster:
        admin = AdminClient({"bootstrap.servers": cluster.bootstrap})
        topics = [
            NewTopic("classic", 3, 3),
            NewTopic("diskless", 3, -1, config={"diskless.enable": "true"}),
        ]
        for future in admin.create_topics(topics).values():
            future.result(DEADLINE_SECONDS)
        ended, acked = threading.Event(), {"classic": 0, "diskless": 0}
        load = threading.Thread(target=produce_for_ever, args=(cluster.bootstrap, ended, acked))
        load.start()
        try:
            wait_for_more(acked)
            stopping = [threading.Thread(target=each.stop) for each in cluster.brokers]
            for thread in stopping:
                thread.start()
            for thread in stopping:
                thread.join()
            start_together(cluster.brokers)
            wait_for_more(acked)
        finally:
            ended.set()
            load.join()
        for topic, count in acked.items():
            assert readable(cluster, topic) >= count


def wait_for_more(acked: dict[str, int]) -> None:
    """Wait until both topics accept records."""
    before = dict(acked)
    deadline = time.monotonic() + DEADLINE_SECONDS
    while any(acked[topic] < before[topic] + 50 for topic in acked):
        assert time.monotonic() < deadline, (before, acked)
        time.sleep(0.05)


def readable(cluster: Cluster, topic: str) -> int:
    consumer = Consumer({"bootstrap.servers": cluster.bootstrap, "group.id": "check", **QUIET})
    try:
        ends = [consumer.get_watermark_offsets(TopicPartition(topic, p), 60) for p in range(3)]
        return sum(end for _, end in ends)
    finally:
        consumer.close()
