"""Clients that work while nodes fail: producers, transactions, readers, members of a group."""

from __future__ import annotations

import sys
import threading
import time
import traceback
from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import Any

import confluent_kafka
from confluent_kafka import KafkaException, TopicPartition

from tests.chaos.history import Commits, History, Place, value

QUIET: dict[str, Any] = {
    "log_level": 0,
    "error_cb": lambda _: None,
    "reconnect.backoff.max.ms": 500,
    "topic.metadata.refresh.interval.ms": 2000,
    "socket.timeout.ms": 10_000,
}
CALL_SECONDS_MAX = 30
END_SECONDS_MAX = 120
_EOF = confluent_kafka.KafkaError._PARTITION_EOF
# Errors that a reader must never see: the log has changed.
DEADLY = (
    confluent_kafka.KafkaError._AUTO_OFFSET_RESET,
    confluent_kafka.KafkaError._LOG_TRUNCATION,
    confluent_kafka.KafkaError.OFFSET_OUT_OF_RANGE,
)

# The record is definitely not in the log.
_REFUSED = (confluent_kafka.KafkaError.KAFKA_STORAGE_ERROR,)


class Worker(threading.Thread):
    """A client in a thread; ``done`` counts its progress."""

    def __init__(self, name: str, history: History) -> None:
        super().__init__(name=name, daemon=True)
        self.history = history
        self.done = 0
        self._enough = threading.Event()

    def run(self) -> None:
        try:
            self.work()
        except BaseException as error:  # noqa: BLE001 - the campaign fails with it
            self.history.complaints.append(f"{self.name} ended: {error!r}")

    def work(self) -> None:
        raise AssertionError

    @property
    def goes_on(self) -> bool:
        return not self._enough.is_set()

    def rest(self, seconds: float) -> None:
        self._enough.wait(seconds)

    def stop(self) -> None:
        self._enough.set()

    def end(self) -> None:
        self.stop()
        self.join(END_SECONDS_MAX)
        if self.is_alive():
            self.history.complaints.append(f"V15 {self.name} does not end; it is {self.where()}")

    def where(self) -> str:
        """The line that it is executing."""
        frame = sys._current_frames().get(self.ident or 0)
        return "gone" if frame is None else "".join(traceback.format_stack(frame)[-1:]).strip()


class Sender(Worker):
    """An idempotent producer that sends numbers to every partition, at a limited rate."""

    def __init__(
        self, name: str, history: History, bootstrap: str, places: Sequence[Place], rate: int
    ) -> None:
        super().__init__(name, history)
        self._places = places
        self._pause = 1 / rate
        self._settings = {
            "bootstrap.servers": bootstrap,
            "enable.idempotence": True,
            "acks": "all",
            "linger.ms": 5,
            "message.timeout.ms": 0,
            "request.timeout.ms": 10_000,
            "retry.backoff.ms": 50,
            **QUIET,
        }

    def work(self) -> None:
        producer = confluent_kafka.Producer(self._settings)
        turn = 0
        while self.goes_on:
            place = self._places[turn % len(self._places)]
            turn += 1
            self.send(producer, place)
            producer.poll(0)
            self.rest(self._pause)
        left = producer.flush(END_SECONDS_MAX)
        if left:
            self.history.complaints.append(f"V15 {self.name}: {left} never answered")

    def send(self, producer: Any, place: Place) -> None:
        """Send one more, and keep the acknowledgement."""
        who = (self.name, place)
        number = self.history.sent[who]

        def told(error: Any, message: Any) -> None:
            if error is None:
                # The client may not know the offset of a duplicate.
                offset = message.offset()
                self.history.acked[who][number] = -1 if offset is None else offset
                self.done += 1
            else:
                self.history.complaints.append(f"{self.name} {place} {number}: {error}")

        try:
            producer.produce(
                place[0], value(self.name, number), partition=place[1], on_delivery=told
            )
        except BufferError:
            producer.poll(0.5)
        else:
            self.history.sent[who] += 1


def try_once(history: History, bootstrap: str, place: Place) -> Any:
    """One large record without retries; returns the error or None. If refused, it must not be
    seen."""
    settings = {"bootstrap.servers": bootstrap, "acks": "all", "retries": 0, **QUIET}
    producer = confluent_kafka.Producer({**settings, "message.timeout.ms": 60_000})
    who = ("once" * 5_000, place)
    number = history.sent[who]
    history.sent[who] += 1
    found: list[Any] = []

    def told(error: Any, message: Any) -> None:
        found.append(error)
        if error is None:
            history.acked[who][number] = message.offset()

    sent = value(who[0], number)
    producer.produce(place[0], sent, partition=place[1], on_delivery=told)
    producer.flush(CALL_SECONDS_MAX)
    error = found[0] if found else None
    if error is not None and error.code() in _REFUSED:
        history.refused.add((place, sent))
    return error


class Probe:
    """Writes one record to each place and waits until all are acknowledged."""

    def __init__(
        self, history: History, bootstrap: str, places: Sequence[Place], name: str = "probe"
    ) -> None:
        self._history = history
        self._places = places
        self._sender = Sender(name, history, bootstrap, places, 1)
        settings = self._sender._settings | {"linger.ms": 0, "request.timeout.ms": 5000}
        self._producer = confluent_kafka.Producer(settings)

    def not_taken(self, seconds_max: float, places: Sequence[Place] = ()) -> list[Place]:
        """The places whose records were not acknowledged in time."""
        tried = places or self._places
        for place in tried:
            self._sender.send(self._producer, place)
        self._producer.flush(seconds_max)
        history, name = self._history, self._sender.name
        return [p for p in tried if len(history.acked[name, p]) < history.sent[name, p]]


def persist(call: Callable[[float], Any], goes_on: Callable[[], bool]) -> None:
    """Repeat while the client reports a retriable error."""
    while True:
        try:
            call(CALL_SECONDS_MAX)
        except KafkaException as failure:
            if not failure.args[0].retriable() or not goes_on():
                raise
        else:
            return


class Transactor(Worker):
    """Writes a value to every partition in each transaction; each fifth is aborted."""

    def __init__(
        self, name: str, history: History, bootstrap: str, places: Sequence[Place]
    ) -> None:
        super().__init__(name, history)
        self._places = places
        self._end = time.monotonic() + 1e9
        self._settings = {
            "bootstrap.servers": bootstrap,
            "transactional.id": name,
            "transaction.timeout.ms": 60_000,
            "linger.ms": 1,
            "retry.backoff.ms": 50,
            **QUIET,
        }

    def stop(self) -> None:
        super().stop()
        self._end = time.monotonic() + CALL_SECONDS_MAX

    def _may(self) -> bool:
        return time.monotonic() < self._end

    def work(self) -> None:
        producer = self._new()
        number = 0
        while self.goes_on:
            name = f"txn-{self.name}:{number}".encode()
            number += 1
            self.history.outcomes[name] = "unknown"
            try:
                self.history.outcomes[name] = self._one(producer, name, commit=number % 5 != 0)
                self.done += 1
            except KafkaException as failure:
                if not failure.args[0].txn_requires_abort():
                    producer = self._new()
                    continue
                persist(producer.abort_transaction, self._may)
                self.history.outcomes[name] = "aborted"
            self.rest(0.02)

    def _new(self) -> Any:
        producer = confluent_kafka.Producer(self._settings)
        persist(producer.init_transactions, self._may)
        return producer

    def _one(self, producer: Any, name: bytes, *, commit: bool) -> str:
        producer.begin_transaction()
        for topic, partition in self._places:
            producer.produce(topic, name, partition=partition)
        if not commit:
            # Otherwise nothing might have been sent, and there would be nothing to abort.
            producer.flush(CALL_SECONDS_MAX)
        persist(producer.commit_transaction if commit else producer.abort_transaction, self._may)
        return "committed" if commit else "aborted"


def reader(bootstrap: str, places: Sequence[Place], **settings: Any) -> Any:
    """A consumer that reads from the beginning and never resets its offset."""
    consumer = confluent_kafka.Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "readers",
            "enable.auto.commit": False,
            "auto.offset.reset": "error",
            "fetch.wait.max.ms": 100,
            **QUIET,
            **settings,
        }
    )
    beginning = confluent_kafka.OFFSET_BEGINNING
    consumer.assign([TopicPartition(topic, part, beginning) for topic, part in places])
    return consumer


class Follower(Worker):
    """Follows the log from the beginning."""

    def __init__(
        self, name: str, history: History, bootstrap: str, places: Sequence[Place]
    ) -> None:
        super().__init__(name, history)
        self._servers = bootstrap
        self._places = places
        self._seen: dict[Place, list[tuple[int, bytes]]] = {place: [] for place in places}
        history.followed[name] = self._seen

    def work(self) -> None:
        consumer = reader(self._servers, self._places)
        try:
            while self.goes_on:
                for message in consumer.consume(500, 0.5):
                    self._take(message)
        finally:
            consumer.close()

    def _take(self, message: Any) -> None:
        error = message.error()
        if error is None:
            place = (message.topic(), message.partition())
            self._seen[place].append((message.offset(), message.value()))
            self.done += 1
        elif error.code() in DEADLY:
            self.history.complaints.append(f"V7 {self.name}: {error}")


class Member(Worker):
    """A member of a group; commits what it has read, and knows where it should resume."""

    def __init__(
        self, name: str, history: History, bootstrap: str, topics: Sequence[str], commits: Commits
    ) -> None:
        super().__init__(name, history)
        self._topics = list(topics)
        self._commits = commits
        self._floors: dict[Place, int] = {}
        self._assignment = 0
        self._settings = {
            "bootstrap.servers": bootstrap,
            "group.id": "workers",
            "enable.auto.commit": False,
            "auto.offset.reset": "earliest",
            "session.timeout.ms": 10_000,
            **QUIET,
        }

    def work(self) -> None:
        consumer = confluent_kafka.Consumer(self._settings)
        consumer.subscribe(self._topics, on_assign=self._assigned)
        try:
            while self.goes_on:
                self._turn(consumer)
        finally:
            consumer.close()

    def _assigned(self, consumer: Any, partitions: Sequence[Any]) -> None:
        self._assignment += 1
        self._floors.clear()
        for each in partitions:
            place = (each.topic, each.partition)
            self._floors[place] = self._commits.certain.get(place, 0)

    def _turn(self, consumer: Any) -> None:
        ends: dict[Place, int] = {}
        assignment = self._assignment
        # One at a time: a batch could mix records of two assignments.
        for turn in range(200):
            message = consumer.poll(0 if turn else 0.5)
            if self._assignment != assignment:
                assignment = self._assignment
                ends.clear()
            if message is None:
                break
            if message.error() is None:
                place, offset = self._take(message)
                ends[place] = offset + 1
        if ends:
            self._commit(consumer, ends)

    def _take(self, message: Any) -> tuple[Place, int]:
        place = (message.topic(), message.partition())
        floor = self._floors.pop(place, None)
        if floor is not None:
            self._commits.begin(place, message.offset(), floor, self.name)
        self.done += 1
        return place, message.offset()

    def _commit(self, consumer: Any, ends: dict[Place, int]) -> None:
        for place, offset in ends.items():
            self._commits.attempt(place, offset)
        wanted = [TopicPartition(topic, part, offset) for (topic, part), offset in ends.items()]
        try:
            told = consumer.commit(offsets=wanted, asynchronous=False)
        except KafkaException:
            return
        for each in told:
            if each.error is None:
                self._commits.success((each.topic, each.partition), each.offset)


def read_all(bootstrap: str, places: Sequence[Place], **settings: Any) -> dict[Place, Any]:
    """Read everything from beginning to end once; raises if it takes too long."""
    consumer = reader(bootstrap, places, **{"enable.partition.eof": True}, **settings)
    found: dict[Place, list[tuple[int, bytes]]] = defaultdict(list)
    ended: set[Place] = set()
    give_up = time.monotonic() + END_SECONDS_MAX
    try:
        while len(ended) < len(places):
            if time.monotonic() > give_up:
                left = sorted(set(places) - ended)
                raise TimeoutError(f"V15 no end of {left} in {END_SECONDS_MAX} s")
            for message in consumer.consume(1000, 1):
                place = (message.topic(), message.partition())
                error = message.error()
                if error is None:
                    found[place].append((message.offset(), message.value()))
                elif error.code() == _EOF:
                    ended.add(place)
                elif error.code() in DEADLY:
                    raise AssertionError(f"V7 {place}: {error}")
    finally:
        consumer.close()
    return {place: found[place] for place in places}
