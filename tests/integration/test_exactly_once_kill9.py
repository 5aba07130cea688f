"""kill -9 between reading and writing: each record of the source is copied exactly once.

The consumed offsets are committed in the transaction that writes the results, so a restarted
process resumes at the last commit.
"""

from __future__ import annotations

import random
import threading
from collections import Counter
from pathlib import Path

import confluent_kafka
import confluent_kafka.admin as confluent
import pytest

from skylog.client.metadata import TopicPartition
from skylog.client.records import records_of
from tests.integration.broker_client import Client
from tests.integration.processes import BrokerProcess
from tests.integration.test_partition_transactions import Transactional, fetch_offset
from tests.integration.test_transactions_kill9 import (
    CALL_SECONDS_MAX,
    QUIET,
    listeners,
    settle,
)
from tests.integration.wire_client import Closed

SEED = 5
KILLS = 3
SOURCE, OUTPUT = "source", "output"
PARTITIONS = 2
RECORDS = 1200
AT_ONCE = 20


def prepare(address: str, *, diskless: bool) -> None:
    admin = confluent.AdminClient({"bootstrap.servers": address, **QUIET})
    source = confluent.NewTopic(SOURCE, 1, 1, config={"diskless.enable": str(diskless).lower()})
    made = admin.create_topics([source, confluent.NewTopic(OUTPUT, PARTITIONS, 1)])
    for done in made.values():
        done.result(CALL_SECONDS_MAX)
    producer = confluent_kafka.Producer({"bootstrap.servers": address, **QUIET})
    for number in range(RECORDS):
        producer.produce(SOURCE, str(number))
    assert producer.flush(CALL_SECONDS_MAX) == 0


class Copying(threading.Thread):
    """Reads, writes and commits a few records at a time, and starts over after any failure."""

    def __init__(self, address: str) -> None:
        super().__init__(daemon=True)
        self._address = address
        self.commits = 0
        self.lives = 0
        self.failure: BaseException | None = None

    def run(self) -> None:
        try:
            while not self._live():
                self.lives += 1
        except BaseException as error:  # noqa: BLE001 - the test looks at it
            self.failure = error

    def _live(self) -> bool:
        """Whether everything was copied; any error ends this attempt."""
        try:
            with Client(self._address) as client:
                self._copy(client, Transactional(client, "copier"))
        except (OSError, Closed, AssertionError):
            return False
        return True

    def _copy(self, client: Client, producer: Transactional) -> None:
        at = -1
        while at < RECORDS:
            offset, code = fetch_offset(client, "copiers", SOURCE, stable=True)
            if code:  # the last transaction is being ended
                continue
            at = max(offset, 0)
            found = client.fetch(SOURCE, at, isolation_level=1)
            records, _ = records_of(TopicPartition(SOURCE, 0), found, at, committed_only=True)
            if not records:
                continue
            del records[AT_ONCE:]
            at = records[-1].offset + 1
            by_partition: dict[int, list[bytes]] = {index: [] for index in range(PARTITIONS)}
            for record in records:
                number = int(record.value or b"")
                by_partition[number % PARTITIONS].append(record.value or b"")
            for index, values in by_partition.items():
                assert producer.send(OUTPUT, *values, index=index).error_code == 0
            assert producer.commit_offsets("copiers", SOURCE, at) == 0
            producer.end(commit=True)
            self.commits += 1

    def wait_for(self, commits: int) -> None:
        while self.commits < commits and self.is_alive():
            self.join(0.005)


def copied(address: str) -> Counter[int]:
    consumer = confluent_kafka.Consumer(
        {
            "bootstrap.servers": address,
            "group.id": "readers",
            "isolation.level": "read_committed",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            **QUIET,
        }
    )
    beginning = confluent_kafka.OFFSET_BEGINNING
    consumer.assign(
        [confluent_kafka.TopicPartition(OUTPUT, index, beginning) for index in range(PARTITIONS)]
    )
    found: Counter[int] = Counter()
    ended: set[int] = set()
    while len(ended) < PARTITIONS:
        for message in consumer.consume(500, 1):
            if message.error() is None:
                found[int(message.value())] += 1
            elif message.error().code() == confluent_kafka.KafkaError._PARTITION_EOF:
                ended.add(message.partition())
    consumer.close()
    return found


@pytest.mark.parametrize("source", ["classic", "diskless"])
def test_each_record_is_copied_once_whenever_it_is_killed(tmp_path: Path, source: str) -> None:
    rng = random.Random(SEED)
    with BrokerProcess(tmp_path / "data", listeners()) as broker:
        prepare(broker.address, diskless=source == "diskless")
        copying = Copying(broker.address)
        copying.start()
        for _ in range(KILLS):
            copying.wait_for(copying.commits + rng.randint(3, 15))
            broker.kill()
            broker.start()
        copying.join()
        if copying.failure is not None:
            raise copying.failure
        settle(broker.address)
        found = copied(broker.address)
    assert copying.commits > KILLS
    assert found == Counter(dict.fromkeys(range(RECORDS), 1))
