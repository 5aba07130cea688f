"""The transaction coordinator: producers, partitions, ends, timeouts, descriptions."""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import Any

from skylog.replicated.partitioning import partition_of
from skylog.wire.apis import ApiKey
from skylog.wire.batch import split_batches
from skylog.wire.coordinator_records import decode_transaction_record
from skylog.wire.records import decode_records
from tests.interop.wire import Side, scenario, served

STATE_PARTITIONS = 4
TIMEOUT_MS = 60_000
CONCURRENT = 51
LAST_CLIENT_VERSION = 3
WAIT_SECONDS_MAX = 60


def warm(side: Side) -> None:
    """Create the topic of transactions and wait until it is loaded."""
    side.warm()
    side.producer_id()
    while (
        side.quiet(ApiKey.FIND_COORDINATOR, 4, key_type=1, coordinator_keys=["t"])
        .coordinators[0]
        .error_code
    ):
        pass
    side.await_leader("__transaction_state", STATE_PARTITIONS)
    names = [f"warm{number}" for number in range(40)]
    not_found = 105
    while any(
        found.error_code != not_found
        for found in side.quiet(
            ApiKey.DESCRIBE_TRANSACTIONS, 0, transactional_ids=names
        ).transaction_states
    ):
        pass


def init(
    side: Side,
    label: str,
    name: str,
    *,
    version: int = 5,
    timeout_ms: int = TIMEOUT_MS,
    quiet: bool = False,
) -> Any:
    values: dict[str, Any] = {"transactional_id": name, "transaction_timeout_ms": timeout_ms}
    if quiet:
        return side.quiet(ApiKey.INIT_PRODUCER_ID, version, **values)
    return side.call(ApiKey.INIT_PRODUCER_ID, version, label=label, **values)


class Producer:
    """A manual producer that tracks its epoch as clients do."""

    def __init__(self, side: Side, what: str, timeout_ms: int = TIMEOUT_MS) -> None:
        self.side = side
        self.name = side.name(what)
        self.timeout_ms = timeout_ms
        self.producer_id = self.epoch = -1

    def start(self) -> Producer:
        deadline = time.monotonic() + WAIT_SECONDS_MAX
        while True:
            found = init(self.side, "", self.name, timeout_ms=self.timeout_ms, quiet=True)
            if found.error_code != CONCURRENT:
                break
            assert time.monotonic() < deadline
        assert found.error_code == 0, found
        self.producer_id, self.epoch = found.producer_id, found.producer_epoch
        return self

    def ids(self, **changed: int) -> dict[str, Any]:
        given = {"producer_id": self.producer_id, "producer_epoch": self.epoch, **changed}
        return {"transactional_id": self.name, **given}

    def add(
        self,
        label: str,
        topics: Iterable[tuple[str, list[int]]],
        *,
        version: int = LAST_CLIENT_VERSION,
        **changed: Any,
    ) -> Any:
        ids = {f"v3_and_below_{key}": value for key, value in {**self.ids(), **changed}.items()}
        asked = [{"name": name, "partitions": indexes} for name, indexes in topics]
        return self.side.call(
            ApiKey.ADD_PARTITIONS_TO_TXN, version, label=label, v3_and_below_topics=asked, **ids
        )

    def end(self, label: str, *, commit: bool = True, version: int = 5, **changed: Any) -> Any:
        return self.side.call(
            ApiKey.END_TXN,
            version,
            label=f"{label} commit={commit}",
            committed=commit,
            **{**self.ids(), **changed},
        )

    def describe(self, label: str) -> Any:
        return self.side.call(
            ApiKey.DESCRIBE_TRANSACTIONS, 0, label=label, transactional_ids=[self.name]
        )

    def settle(self) -> None:
        """Wait until nothing is in progress."""
        deadline = time.monotonic() + WAIT_SECONDS_MAX
        while True:
            answer = self.side.quiet(ApiKey.DESCRIBE_TRANSACTIONS, 0, transactional_ids=[self.name])
            if not answer.transaction_states[0].transaction_state.startswith("Prepare"):
                return
            assert time.monotonic() < deadline, answer


@scenario
def find_coordinator(side: Side) -> None:
    warm(side)
    for version in served(ApiKey.FIND_COORDINATOR):
        if version < 1:
            continue
        for key in ("t", "", "ä", "x" * 300):
            named = {"coordinator_keys": [key]} if version >= 4 else {"key": key}
            side.call(ApiKey.FIND_COORDINATOR, version, label=f"{key!r:.10}", key_type=1, **named)


@scenario
def init_producer_id(side: Side) -> None:
    warm(side)
    for version in served(ApiKey.INIT_PRODUCER_ID):
        name = side.name(f"v{version}")
        init(side, "without a name", "", version=version)
        for timeout_ms in (0, -1, 900_001, 2**31 - 1):
            init(side, f"time-out {timeout_ms}", name, version=version, timeout_ms=timeout_ms)
        init(side, "first", name, version=version, timeout_ms=900_000)
        found = init(side, "second", name, version=version, timeout_ms=1)
        if version < 3:
            continue
        ids = (found.producer_id, found.producer_epoch)
        for label, producer_id, epoch in (
            ("without an id", -1, 0),
            ("without an epoch", ids[0], -1),
            ("another id", ids[0] + 100_000, ids[1]),
            ("an old epoch", ids[0], ids[1] - 1),
            ("a later epoch", ids[0], ids[1] + 1),
            ("its epoch", ids[0], ids[1]),
            ("once more", ids[0], ids[1]),
            ("two epochs back", ids[0], ids[1] - 1),
        ):
            side.call(
                ApiKey.INIT_PRODUCER_ID,
                version,
                label=label,
                transactional_id=name,
                transaction_timeout_ms=TIMEOUT_MS,
                producer_id=producer_id,
                producer_epoch=epoch,
            )
    new = side.name("new")
    side.call(
        ApiKey.INIT_PRODUCER_ID,
        5,
        label="an id that is not known",
        transactional_id=new,
        transaction_timeout_ms=TIMEOUT_MS,
        producer_id=77,
        producer_epoch=7,
    )


@scenario
def add_partitions(side: Side) -> None:
    warm(side)
    topic = side.create(partitions=3)
    for version in range(LAST_CLIENT_VERSION + 1):
        producer = Producer(side, f"v{version}").start()
        whole = [(topic, [0, 1])]
        for label, changed in (
            ("an id that is not known", {"transactional_id": side.name("unknown")}),
            ("without a name", {"transactional_id": ""}),
            ("another producer", {"producer_id": producer.producer_id + 100_000}),
            ("an old epoch", {"producer_epoch": producer.epoch - 1}),
            ("a later epoch", {"producer_epoch": producer.epoch + 1}),
        ):
            producer.add(label, whole, version=version, **changed)
        producer.add("no such partition", [(topic, [0, 9])], version=version)
        producer.add("no such topic", [(topic, [0]), (side.name("no"), [0])], version=version)
        producer.add("an internal topic", [("__consumer_offsets", [0])], version=version)
        producer.add("nothing", [], version=version)
        producer.describe("after nothing was added")
        producer.add("two", whole, version=version)
        producer.add("twice", whole, version=version)
        producer.add("one more", [(topic, [2])], version=version)
        producer.describe("after partitions were added")
        producer.end("at the end", commit=False)
        producer.settle()


@scenario
def batches_of_brokers(side: Side) -> None:
    """Versions for brokers: several transactions, and verification."""
    warm(side)
    topic = side.create(partitions=3)
    for version in (4, 5):
        first = Producer(side, f"first{version}").start()
        second = Producer(side, f"second{version}").start()
        both = [{"name": topic, "partitions": [0, 1]}]

        def ask(label: str, *transactions: dict[str, Any], version: int = version) -> None:
            side.call(ApiKey.ADD_PARTITIONS_TO_TXN, version, label=label, transactions=transactions)

        ask("verified before", {**first.ids(), "verify_only": True, "topics": both})
        ask(
            "added",
            {**first.ids(), "topics": both[:1]},
            {**second.ids(), "topics": [{"name": topic, "partitions": [2]}]},
        )
        three = [{"name": topic, "partitions": [0, 1, 2]}]
        ask(
            "verified after",
            {**first.ids(), "verify_only": True, "topics": three},
            {**second.ids(), "verify_only": True, "topics": three},
        )
        for label, changed in (
            ("another producer", {"producer_id": first.producer_id + 100_000}),
            ("an old epoch", {"producer_epoch": first.epoch - 1}),
            ("a later epoch", {"producer_epoch": first.epoch + 1}),
            ("without a name", {"transactional_id": ""}),
            ("not known", {"transactional_id": side.name("unknown")}),
        ):
            for verify_only in (False, True):
                given = {**first.ids(), **changed, "verify_only": verify_only}
                ask(f"{label} {verify_only}", {**given, "topics": both})
        ask("no such topic", {**first.ids(), "topics": [{"name": "no", "partitions": [0]}]})
        ask(
            "an internal topic",
            {**first.ids(), "topics": [{"name": "__consumer_offsets", "partitions": [0]}]},
        )
        first.describe("first")
        second.describe("second")
        first.end("first")
        second.end("second", commit=False)
        first.settle()
        second.settle()
        first.describe("first at the end")
        second.describe("second at the end")


@scenario
def add_offsets(side: Side) -> None:
    warm(side)
    for version in served(ApiKey.ADD_OFFSETS_TO_TXN):
        producer = Producer(side, f"v{version}").start()

        def add(
            label: str, version: int = version, producer: Producer = producer, **changed: Any
        ) -> None:
            given = {"group_id": side.name("group"), **producer.ids(), **changed}
            side.call(ApiKey.ADD_OFFSETS_TO_TXN, version, label=label, **given)

        add("another producer", producer_id=producer.producer_id + 100_000)
        add("an old epoch", producer_epoch=producer.epoch - 1)
        add("a later epoch", producer_epoch=producer.epoch + 1)
        add("without a name", transactional_id="")
        add("not known", transactional_id=side.name("unknown"))
        add("a group")
        add("twice")
        add("without a group", group_id="")
        producer.describe("with offsets")
        producer.end("at the end", version=4)
        producer.settle()
        producer.describe("at the end")


@scenario
def ends(side: Side) -> None:
    ends_in(side, served(ApiKey.END_TXN))


def ends_in(side: Side, versions: Iterable[int]) -> None:
    """Every state, every epoch near it, both outcomes, in some versions."""
    warm(side)
    topic = side.create()
    for version in versions:
        for state in ("empty", "committed", "aborted"):
            for commit in (True, False):
                producer = Producer(side, f"{version}-{state}-{commit}").start()
                where = f"{state} v{version}"
                if state != "empty":
                    producer.add("begun", [(topic, [0])])
                    ended = producer.end(where, commit=state == "committed", version=version)
                    producer.settle()
                    if version >= 5:
                        producer.epoch = ended.producer_epoch
                for change in (-2, -1, 1, 2):
                    epoch = producer.epoch + change
                    if epoch < -1:
                        continue
                    producer.end(
                        f"{where} {change:+}", commit=commit, version=version, producer_epoch=epoch
                    )
                producer.end(
                    f"another producer {where}",
                    commit=commit,
                    version=version,
                    producer_id=producer.producer_id + 100_000,
                )
                producer.end(f"now {where}", commit=commit, version=version)
                producer.settle()
                producer.end(f"again {where}", commit=commit, version=version)
                producer.settle()
                producer.describe(where)


@scenario
def ends_of_nobody(side: Side) -> None:
    warm(side)
    for version in served(ApiKey.END_TXN):
        for name in ("", side.name("unknown")):
            side.call(
                ApiKey.END_TXN,
                version,
                transactional_id=name,
                producer_id=1,
                producer_epoch=0,
                committed=True,
            )


@scenario
def an_open_transaction_and_wrong_epochs(side: Side) -> None:
    warm(side)
    topic = side.create()
    for version in served(ApiKey.END_TXN):
        producer = Producer(side, f"v{version}").start().start()
        producer.add("begun", [(topic, [0])])
        for change in (-1, 1):
            epoch = producer.epoch + change
            producer.end(f"{change:+}", version=version, producer_epoch=epoch)
        wrong = producer.producer_id + 100_000
        producer.end("another producer", version=version, producer_id=wrong)
        producer.describe("still open")
        producer.end("at last", version=version)
        producer.settle()
        producer.describe("at the end")


@scenario
def taking_over(side: Side) -> None:
    """A new producer aborts the open transaction and fences the previous producer."""
    warm(side)
    topic = side.create()
    for version in served(ApiKey.INIT_PRODUCER_ID):
        old = Producer(side, f"v{version}").start()
        old.add("begun", [(topic, [0])])
        init(side, "while one is open", old.name, version=version)
        old.settle()
        old.describe("aborted")
        new = Producer(side, f"v{version}").start()
        side.note("epochs on", new.epoch - old.epoch)
        for add_version in range(LAST_CLIENT_VERSION + 1):
            old.add("fenced", [(topic, [0])], version=add_version)
        for end_version in served(ApiKey.END_TXN):
            old.end("fenced", version=end_version)
        if version >= 3:
            side.call(
                ApiKey.INIT_PRODUCER_ID,
                version,
                label="fenced",
                transactional_id=old.name,
                transaction_timeout_ms=TIMEOUT_MS,
                producer_id=old.producer_id,
                producer_epoch=old.epoch,
            )


@scenario
def time_outs(side: Side) -> None:
    warm(side)
    topic = side.create()
    producer = Producer(side, "slow", timeout_ms=100).start()
    producer.add("begun", [(topic, [0])])
    deadline = time.monotonic() + WAIT_SECONDS_MAX
    state = ""
    while state != "CompleteAbort":
        assert time.monotonic() < deadline, state
        answer = side.quiet(ApiKey.DESCRIBE_TRANSACTIONS, 0, transactional_ids=[producer.name])
        state = answer.transaction_states[0].transaction_state
    producer.describe("timed out")
    for version in range(LAST_CLIENT_VERSION + 1):
        producer.add("too late", [(topic, [0])], version=version)
    for version in served(ApiKey.END_TXN):
        producer.end("too late", version=version)
    side.call(
        ApiKey.INIT_PRODUCER_ID,
        5,
        label="going on",
        transactional_id=producer.name,
        transaction_timeout_ms=TIMEOUT_MS,
        producer_id=producer.producer_id,
        producer_epoch=producer.epoch,
    )
    producer.describe("at the end")


@scenario
def describe(side: Side) -> None:
    warm(side)
    names = [side.name("unknown"), ""]
    side.call(ApiKey.DESCRIBE_TRANSACTIONS, 0, transactional_ids=names)
    side.call(ApiKey.DESCRIBE_TRANSACTIONS, 0, transactional_ids=[])
    producer = Producer(side, "known", timeout_ms=12_345).start()
    side.call(ApiKey.DESCRIBE_TRANSACTIONS, 0, transactional_ids=[producer.name, *names])


@scenario
def list_transactions(side: Side) -> None:
    warm(side)
    topic = side.create()
    idle, busy = Producer(side, "idle").start(), Producer(side, "busy").start()
    busy.add("begun", [(topic, [0])])
    done = Producer(side, "done").start()
    done.add("begun", [(topic, [0])])
    done.end("done")
    done.settle()

    def only_ours(answer: dict[str, Any]) -> Any:
        """Other scenarios have left transactions behind."""
        answer["transaction_states"] = [
            found
            for found in answer["transaction_states"]
            if found["transactional_id"].startswith(side.prefix)
        ]
        answer["unknown_state_filters"].sort()
        return answer

    def ask(version: int, **more: Any) -> None:
        values = {"state_filters": [], "producer_id_filters": [], **more}
        side.call(ApiKey.LIST_TRANSACTIONS, version, keep=only_ours, label=f"{more}", **values)

    for version in served(ApiKey.LIST_TRANSACTIONS):
        ask(version)
        for states in (["Ongoing"], ["Empty", "CompleteCommit"], ["ongoing"], ["Dead", "x", "y"]):
            ask(version, state_filters=states)
        for label, ids in (("idle", [idle.producer_id]), ("none", [2**62])):
            side.call(
                ApiKey.LIST_TRANSACTIONS,
                version,
                keep=only_ours,
                label=f"of the {label}",
                state_filters=[],
                producer_id_filters=ids,
            )
    for duration_ms in (-2, 0, 3_600_000, 2**62):
        ask(1, duration_filter=duration_ms)
    for pattern in (None, "", ".*idle", "idle", f"{side.prefix}-(idle|busy)", "no", "(", "[z-a]"):
        ask(2, transactional_id_pattern=pattern)
    busy.end("at the end", commit=False)
    busy.settle()


@scenario
def the_log(side: Side) -> None:
    log_of(side, (3, 4, 5))


def log_of(side: Side, versions: Iterable[int]) -> None:
    """The records of ``__transaction_state``, one by one."""
    warm(side)
    topic = side.create(partitions=2)
    producer = Producer(side, "logged").start()
    version = 0
    for version in versions:
        producer.add("begun", [(topic, [0])])
        producer.add("more", [(topic, [1, 0])])
        ended = producer.end("end", commit=version != 4, version=version)
        producer.settle()
        if version >= 5:
            producer.epoch = ended.producer_epoch
    producer.end("end of nothing", commit=False, version=version)
    producer.settle()
    producer.start()
    producer.add("left open", [(topic, [1])])
    init(side, "taking over", producer.name)
    producer.settle()
    for label, record in _records(side, producer.name):
        side.note(label, record)


def _records(side: Side, name: str) -> list[tuple[str, Any]]:
    topic_id = side.topic_id("__transaction_state")
    index = partition_of(name, STATE_PARTITIONS)
    partition = {"partition": index, "fetch_offset": 0, "partition_max_bytes": 1 << 24}
    answer = side.quiet(
        ApiKey.FETCH,
        13,
        max_wait_ms=0,
        max_bytes=1 << 24,
        topics=[{"topic_id": topic_id, "partitions": [partition]}],
    )
    found = []
    records = answer.responses[0].partitions[0].records
    for batch in split_batches(records):
        for record in decode_records(batch):
            decoded = decode_transaction_record(record.key, record.value)
            assert decoded is not None
            key, value = decoded
            if key.transactional_id == name:  # type: ignore[attr-defined]
                found.append((f"record {len(found)}", _plain_record(record.value, value)))
    assert found
    return found


def _plain_record(raw: Any, value: Any) -> Any:
    partitions = value.transaction_partitions
    return {
        "version": bytes(raw[:2]),
        "epoch": value.producer_epoch,
        "same id as before": value.previous_producer_id == value.producer_id,
        "next id": min(value.next_producer_id, 0),
        "next epoch": value.next_producer_epoch,
        "timeout": value.transaction_timeout_ms,
        "status": value.transaction_status,
        "partitions": partitions
        and sorted((found.topic, sorted(found.partition_ids)) for found in partitions),
        "began": min(value.transaction_start_timestamp_ms, 0),
        "updated": min(value.transaction_last_update_timestamp_ms, 0),
        "client version": value.client_transaction_version,
    }
