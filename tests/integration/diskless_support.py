"""Load on diskless topics, its history, and a check of the invariants afterwards."""

from __future__ import annotations

import threading
import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Self

from confluent_kafka import Consumer, KafkaError, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

SECONDS_MAX = 120.0


def create_topic(bootstrap: str, name: str, partitions: int = 1, **configs: str) -> None:
    admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": 0})
    topic = NewTopic(name, partitions, 1, config={"diskless.enable": "true", **configs})
    for future in admin.create_topics([topic]).values():
        future.result()


def read_all(
    bootstrap: str, topic: str, ends: Mapping[int, int], **more: object
) -> dict[int, list[bytes]]:
    """The values of each partition from its beginning up to the given end; offsets are dense."""
    consumer = Consumer(
        {"bootstrap.servers": bootstrap, "group.id": "none", "log_level": 0, **more}
    )
    consumer.assign([TopicPartition(topic, index, 0) for index in ends])
    found: dict[int, list[bytes]] = {index: [] for index in ends}
    deadline = time.monotonic() + SECONDS_MAX
    while any(len(found[index]) < end for index, end in ends.items()):
        assert time.monotonic() < deadline, {index: len(values) for index, values in found.items()}
        for message in consumer.consume(5_000, 0.5):
            if message.error() is not None:
                continue  # the store fails: the consumer retries
            values = found[message.partition()]
            assert message.offset() == len(values)
            values.append(message.value())
    consumer.close()
    return found


def end_offsets(bootstrap: str, topic: str, partitions: int) -> dict[int, int]:
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "none", "log_level": 0})
    try:
        return {
            index: consumer.get_watermark_offsets(TopicPartition(topic, index), SECONDS_MAX)[1]
            for index in range(partitions)
        }
    finally:
        consumer.close()


@dataclass(slots=True)
class History:
    """What a producer sent, in order, and the acknowledgements."""

    sent: dict[int, list[bytes]] = field(default_factory=lambda: defaultdict(list))
    # Value → its offset.
    acknowledged: dict[int, dict[bytes, int]] = field(default_factory=lambda: defaultdict(dict))
    failed: dict[bytes, KafkaError] = field(default_factory=dict)

    @property
    def acknowledged_count(self) -> int:
        return sum(len(known) for known in self.acknowledged.values())

    def heard(self, error: KafkaError | None, message: Any) -> None:
        if error is None:
            self.acknowledged[message.partition()][message.value()] = message.offset()
        else:
            self.failed[message.value()] = error

    def check(self, found: Mapping[int, Sequence[bytes]]) -> None:
        """V1, V3–V6 for an idempotent producer: acknowledged records once, at the acknowledged
        offset, in order; nothing that was not sent; no duplicates."""
        for partition, sent in self.sent.items():
            values = found[partition]
            for value, offset in self.acknowledged[partition].items():
                assert values[offset] == value
            assert len(set(values)) == len(values)
            place = {value: number for number, value in enumerate(sent)}
            order = [place[value] for value in values]
            assert order == sorted(order)


class Load:
    """An idempotent producer in a thread."""

    def __init__(
        self,
        bootstrap: str,
        topic: str,
        partitions: int,
        *,
        per_second: int = 2_000,
        **more: object,
    ) -> None:
        self.history = History()
        self._topic = topic
        self._partitions = partitions
        self._pause = 20 / per_second
        self._ended = threading.Event()
        self._more = threading.Condition()
        self._thread = threading.Thread(target=self._run)
        self._producer = Producer(
            {
                "bootstrap.servers": bootstrap,
                "enable.idempotence": True,
                "linger.ms": 2,
                "retry.backoff.ms": 20,
                "retry.backoff.max.ms": 100,
                "reconnect.backoff.ms": 20,
                "reconnect.backoff.max.ms": 100,
                "message.timeout.ms": 120_000,
                "log_level": 0,
                **more,
            }
        )

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._ended.set()
        self._thread.join()

    def wait_for(self, count: int) -> None:
        """Wait until ``count`` more records have been acknowledged."""
        goal = self.history.acknowledged_count + count
        with self._more:
            reached = self._more.wait_for(
                lambda: self.history.acknowledged_count >= goal, SECONDS_MAX
            )
        assert reached, (
            self.history.acknowledged_count,
            goal,
            list(self.history.failed.items())[:3],
        )

    def finish(self) -> History:
        """Stop sending and wait for the last acknowledgements."""
        self._ended.set()
        self._thread.join()
        assert self._producer.flush(SECONDS_MAX) == 0
        return self.history

    def _run(self) -> None:
        number = 0
        while not self._ended.is_set():
            for _ in range(20):
                partition = number % self._partitions
                value = b"%d" % number
                try:
                    self._producer.produce(
                        self._topic, value, partition=partition, on_delivery=self._heard
                    )
                except BufferError:
                    break
                self.history.sent[partition].append(value)
                number += 1
            self._producer.poll(self._pause)

    def _heard(self, error: KafkaError | None, message: Any) -> None:
        self.history.heard(error, message)
        with self._more:
            self._more.notify_all()
