"""kill -9 during transactions: read_committed sees all or nothing, and no commit is lost.

Once at random moments of a long load, and once at each point of the end of one transaction.
"""

from __future__ import annotations

import random
import threading
from collections import defaultdict
from pathlib import Path
from typing import Any

import confluent_kafka
import confluent_kafka.admin as confluent
import pytest

from skylog.wire.messages.list_transactions_request import ListTransactionsRequest
from tests.integration.processes import BrokerProcess
from tests.integration.wire_client import Wire
from tests.ports import free_port
from tests.waiting import until

SEED = 17
KILLS = 4
PARTITIONS = 3
TOPIC = "load"
QUIET: dict[str, Any] = {"log_level": 0, "error_cb": lambda _: None}
CALL_SECONDS_MAX = 60
# Where the node crashes once: before a call of a function, after a number of calls.
POINTS = {
    "when it is decided": (
        "skylog.transactions.coordinator",
        "TransactionCoordinator._carry_out",
        0,
    ),
    "before the first marker": ("skylog.broker.handlers.txn_markers", "_write", 0),
    "between markers": ("skylog.broker.handlers.txn_markers", "_write", 2),
    "before it is complete": (
        "skylog.transactions.coordinator",
        "TransactionCoordinator._written",
        0,
    ),
}
DEADLY = """
import importlib, os, signal
module = importlib.import_module({module!r})
owner, _, name = {function!r}.rpartition(".")
holder = getattr(module, owner) if owner else module
original, calls = getattr(holder, name), []
def deadly(*args, **more):
    calls.append(1)
    if len(calls) > {after}:
        os.kill(os.getpid(), signal.SIGKILL)
    return original(*args, **more)
setattr(holder, name, deadly)
"""


def listeners() -> dict[str, str]:
    """The same address whenever a node is started."""
    given = f"PLAINTEXT://127.0.0.1:{free_port()},CONTROLLER://127.0.0.1:{free_port()}"
    return {"listeners": given, "transaction.state.log.num.partitions": "4"}


def create(address: str) -> None:
    admin = confluent.AdminClient({"bootstrap.servers": address, **QUIET})
    admin.create_topics([confluent.NewTopic(TOPIC, PARTITIONS, 1)])[TOPIC].result()


def new_producer(address: str, transactional_id: str) -> confluent_kafka.Producer:
    producer = confluent_kafka.Producer(
        {
            "bootstrap.servers": address,
            "transactional.id": transactional_id,
            "transaction.timeout.ms": 60_000,
            "linger.ms": 1,
            "reconnect.backoff.max.ms": 200,
            "retry.backoff.ms": 20,
            **QUIET,
        }
    )
    persist(producer.init_transactions)
    return producer


def persist(call: Any) -> None:
    """Repeat while the client reports a retriable error."""
    while True:
        try:
            call(CALL_SECONDS_MAX)
        except confluent_kafka.KafkaException as failure:
            if not failure.args[0].retriable():
                raise
        else:
            return


class Producing(threading.Thread):
    """One number to every partition in each transaction; each fifth is aborted."""

    def __init__(self, address: str, name: str) -> None:
        super().__init__(daemon=True)
        self._address = address
        self.name = name
        self._enough = threading.Event()
        self.outcomes: dict[str, str] = {}
        self.failure: BaseException | None = None

    def run(self) -> None:
        try:
            self._run()
        except BaseException as error:  # noqa: BLE001 - the test looks at it
            self.failure = error

    def _run(self) -> None:
        producer, number = new_producer(self._address, self.name), 0
        while not self._enough.is_set():
            value = f"{self.name}-{number}"
            number += 1
            # If anything fails from here on, the outcome is unknown.
            self.outcomes[value] = "unknown"
            try:
                self._transaction(producer, value, commit=number % 5 != 0)
            except confluent_kafka.KafkaException as failure:
                if failure.args[0].txn_requires_abort():
                    persist(producer.abort_transaction)
                    self.outcomes[value] = "aborted"
                else:
                    producer = new_producer(self._address, self.name)

    def _transaction(self, producer: confluent_kafka.Producer, value: str, *, commit: bool) -> None:
        producer.begin_transaction()
        for partition in range(PARTITIONS):
            producer.produce(TOPIC, value.encode(), partition=partition)
        if commit:
            persist(producer.commit_transaction)
            self.outcomes[value] = "committed"
        else:
            persist(producer.abort_transaction)
            self.outcomes[value] = "aborted"

    def wait_for(self, more: int) -> None:
        target = len(self.outcomes) + more
        while len(self.outcomes) < target and self.is_alive():
            self.join(0.005)

    def stop(self) -> None:
        self._enough.set()
        self.join()
        if self.failure is not None:
            raise self.failure


def read(address: str) -> dict[str, list[int]]:
    """Committed records: the partitions of each value, with duplicates."""
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
        [confluent_kafka.TopicPartition(TOPIC, index, beginning) for index in range(PARTITIONS)]
    )
    found: dict[str, list[int]] = defaultdict(list)
    ended: set[int] = set()
    while len(ended) < PARTITIONS:
        for message in consumer.consume(500, 1):
            if message.error() is None:
                found[message.value().decode()].append(message.partition())
            elif message.error().code() == confluent_kafka.KafkaError._PARTITION_EOF:
                ended.add(message.partition())
    consumer.close()
    return found


def settle(address: str) -> None:
    """Wait until no transaction is being ended."""
    with Wire(address) as wire:

        def settled() -> bool:
            answer = wire.ask(ListTransactionsRequest())
            states = {found.transaction_state for found in answer.transaction_states}
            return not answer.error_code and not states & {"PrepareCommit", "PrepareAbort"}

        until(settled)


def check(outcomes: dict[str, str], found: dict[str, list[int]]) -> None:
    everywhere = list(range(PARTITIONS))
    assert set(found) <= set(outcomes)
    for value, outcome in outcomes.items():
        where = sorted(found.get(value, ()))
        assert where in ([], everywhere), f"{value} is half there: {where}"
        if outcome == "committed":
            assert where == everywhere, f"{value} was committed and is lost"
        elif outcome == "aborted":
            assert where == [], f"{value} was aborted and is there"


def test_all_or_nothing_whenever_it_is_killed(tmp_path: Path) -> None:
    rng = random.Random(SEED)
    with BrokerProcess(tmp_path / "data", listeners()) as broker:
        create(broker.address)
        producers = [Producing(broker.address, name) for name in ("a", "b")]
        for producer in producers:
            producer.start()
        for _ in range(KILLS):
            producers[0].wait_for(rng.randint(5, 40))
            broker.kill()
            broker.start()
        producers[1].wait_for(20)
        for producer in producers:
            producer.stop()
        outcomes = producers[0].outcomes | producers[1].outcomes
        assert list(outcomes.values()).count("committed") > 20
        settle(broker.address)
        check(outcomes, read(broker.address))


@pytest.mark.parametrize("commit", [True, False], ids=["commit", "abort"])
@pytest.mark.parametrize("point", POINTS)
def test_killed_at_each_point_of_the_end(tmp_path: Path, point: str, commit: bool) -> None:
    module, function, after = POINTS[point]
    before = DEADLY.format(module=module, function=function, after=after)
    settings = listeners()
    with BrokerProcess(tmp_path / "data", settings, before=before) as doomed:
        create(doomed.address)
        producer = new_producer(doomed.address, "id")
        producer.begin_transaction()
        for partition in range(PARTITIONS):
            producer.produce(TOPIC, b"value", partition=partition)
        assert producer.flush(CALL_SECONDS_MAX) == 0
        end = producer.commit_transaction if commit else producer.abort_transaction
        ending = threading.Thread(target=persist, args=(end,), daemon=True)
        ending.start()
        doomed.wait()
        with BrokerProcess(tmp_path / "data", settings) as heir:
            ending.join(CALL_SECONDS_MAX)
            assert not ending.is_alive()
            settle(heir.address)
            check({"value": "committed" if commit else "aborted"}, read(heir.address))
