"""Reading from remote segments: offsets and records in every state of a partition."""

from __future__ import annotations

from typing import Any

from skylog.wire.apis import ApiKey
from tests.interop.scenarios.batches import batch, fill
from tests.interop.scenarios.remote import (
    EVERY_SPECIAL,
    GONE,
    START_MS,
    TINY,
    alter,
    ask,
    await_ready,
    metadata,
    produce,
    settle,
    tiered,
)
from tests.interop.scenarios.transaction_data import batch as transactional
from tests.interop.scenarios.transaction_data import look, write
from tests.interop.scenarios.transactions import Producer, warm
from tests.interop.wire import Side, served

TWO = {"segment_index_bytes": "24"}


def part(index: int = 0, offset: int = 0, size: int = 1 << 20, **more: Any) -> dict[str, Any]:
    return {"partition": index, "fetch_offset": offset, "partition_max_bytes": size, **more}


def fetch(side: Side, label: str, name: str, *parts: dict[str, Any], **more: Any) -> None:
    version = more.pop("version", 17)
    who = {"topic": name} if version < 13 else {"topic_id": side.topic_id(name)}
    given: dict[str, Any] = {"max_wait_ms": 50, "min_bytes": 1, "max_bytes": 1 << 20, **more}
    if version < 3:
        del given["max_bytes"]
    side.call(
        ApiKey.FETCH, version, label=label, topics=[{**who, "partitions": list(parts)}], **given
    )


def times(count: int) -> tuple[int, ...]:
    """Before, at and between all records, and behind them."""
    return tuple(START_MS + 500 * step for step in range(-1, 2 * count + 2))


@tiered
def list_offsets(side: Side) -> None:
    """Empty; local only; copied and local; remote; cut in the remote part; cut whole."""
    name = side.create(**{**TINY, **TWO})
    versions = served(ApiKey.LIST_OFFSETS)

    def look_at_all(label: str) -> None:
        for version in versions:
            ask(side, f"{label} v{version}", name, *EVERY_SPECIAL, version=version)
        ask(side, label, name, *times(11), 0, -7)

    look_at_all("empty")
    produce(side, name, range(1))
    await_ready(side, name)
    look_at_all("one record")
    produce(side, name, range(1, 7))
    settle(side, name, latest_tiered=5)
    look_at_all("copied")
    alter(side, name, **GONE)
    settle(side, name, earliest_local=6)
    look_at_all("remote")
    produce(side, name, range(7, 10))
    settle(side, name, earliest_local=8)
    delete(side, name, 3)
    look_at_all("the remote part is cut")
    delete(side, name, 4)
    delete(side, name, 2)
    look_at_all("cut at a segment's start")
    delete(side, name, -1)
    # Not compared when all is cut: −3, where Kafka finds a deleted record.
    ask(side, "cut whole", name, -1, -2, -4, -5, -6)
    produce(side, name, range(10, 11))
    # Nor by time: Kafka's search ends in the segment that is cut whole, and finds nothing.
    ask(side, "one more", name)


def delete(side: Side, name: str, offset: int) -> None:
    asked = [{"partition_index": 0, "offset": offset}]
    side.call(
        ApiKey.DELETE_RECORDS,
        2,
        label=f"delete before {offset}",
        topics=[{"name": name, "partitions": asked}],
        timeout_ms=30_000,
    )


@tiered
def fetch_in_every_version(side: Side) -> None:
    name = side.create(**{**TINY, **TWO, **GONE})
    produce(side, name, range(9))
    settle(side, name, earliest_local=8)
    for version in served(ApiKey.FETCH):
        for offset in range(-1, 11):
            fetch(side, f"from {offset}", name, part(offset=offset), version=version)
    delete(side, name, 3)
    for offset in range(10):
        fetch(side, f"cut, from {offset}", name, part(offset=offset))


@tiered
def fetch_limits(side: Side) -> None:
    name = side.create(**{**TINY, **GONE, "segment_index_bytes": "48"})
    produce(side, name, range(9))
    settle(side, name, earliest_local=8)
    # Not compared: a limit of 0, at which Kafka brings nothing.
    for size in (1, 68, 69, 70, 138, 140, 1000):
        for offset in (0, 1, 3, 5):
            fetch(side, f"{size} from {offset}", name, part(offset=offset, size=size))
            fetch(side, f"all {size} from {offset}", name, part(offset=offset), max_bytes=size)
    fetch(side, "no wait", name, part(), max_wait_ms=0, min_bytes=0)
    fetch(side, "more than there is", name, part(), min_bytes=1 << 20)
    fetch(side, "this epoch", name, part(current_leader_epoch=0))
    fetch(side, "a later epoch", name, part(current_leader_epoch=1))
    fetch(side, "fetched epoch", name, part(last_fetched_epoch=0))
    # Not compared: a fetched epoch that the leader never had. We say out of range, as for local
    # offsets; Kafka then reads from remote.
    fetch(side, "log start", name, part(log_start_offset=5))
    fetch(side, "no such partition", name, part(7))
    for replica in (-2, 1, 5):
        fetch(side, f"as {replica}", name, part(), version=12, replica_id=replica)


@tiered
def fetch_of_batches(side: Side) -> None:
    """Batches of several records, compressed and not: from within, too."""
    name = side.create(**{**TINY, **GONE, "segment_index_bytes": "36"})
    for number in range(10):
        values = [b"%d.%d" % (number, index) for index in range(3)]
        fill(side, name, batch(*values, at=START_MS + 1000 * number, codec=number % 5))
    settle(side, name, earliest_local=27)
    for offset in range(0, 31, 2):
        fetch(side, f"from {offset}", name, part(offset=offset))
        fetch(side, f"one from {offset}", name, part(offset=offset, size=1))
    ask(side, "by time", name, *(START_MS + step for step in range(0, 9000, 333)))
    ask(side, "within batches", name, *(START_MS + 4000 + step for step in range(4)))


@tiered
def many_partitions(side: Side) -> None:
    """Remote, local and empty ones in one request."""
    name = side.create(partitions=4, **{**TINY, **GONE})
    for index in (0, 1, 3):
        produce(side, name, range(1 if index == 1 else 5), index=index)
    for index in (0, 3):
        settle(side, name, index, earliest_local=4)
    order = [part(0, 1), part(1), part(2), part(3, 2)]
    fetch(side, "all", name, *order, max_bytes=50 << 20)
    # A remote partition takes its limit from what the request may bring, however little it has.
    fetch(side, "as much as one may have", name, *order)
    fetch(side, "all but remote ones", name, *order[1:3], max_wait_ms=0, min_bytes=0)
    fetch(side, "two remote ones", name, part(0), part(3))
    fetch(side, "remote and out of range", name, part(0), part(3, 99))
    fetch(side, "remote and no such", name, part(0), part(9))
    for version in (1, 7, 11):
        ask(side, f"v{version}", name, -2, -1, START_MS + 500, version=version, index=3)
    asked = [{"partition_index": index, "timestamp": START_MS + 1500} for index in range(5)]
    side.call(
        ApiKey.LIST_OFFSETS, 11, topics=[{"name": name, "partitions": asked}], timeout_ms=30_000
    )


@tiered
def committed(side: Side) -> None:
    """Aborted, committed and open transactions whose records are remote."""
    warm(side)
    name = side.create(**{**TINY, **GONE})
    producer = Producer(side, "producer").start()
    sequence = 0
    for commit in (True, False, True, False):
        producer.add("add", [(name, [0])])
        for _ in range(2):
            write(producer, "write", name, transactional(producer, sequence, b"data"), 11)
            sequence += 1
        producer.end("end", commit=commit, version=3)
        producer.settle()
    producer.add("add", [(name, [0])])
    write(producer, "open", name, transactional(producer, sequence, b"open"), 11)
    produce(side, name, range(3))
    settle(side, name, latest_tiered=11, earliest_local=12)
    for offset in range(16):
        look(side, "open", name, offset)
    ask(side, "open", name, -1, -2, -4, -5, -6)
    producer.end("end", version=3)
    producer.settle()
    settle(side, name, latest_tiered=15, earliest_local=16)
    for offset in range(18):
        look(side, "all ended", name, offset)
    side.note("metadata", [one[:6] + one[7:] for one in metadata(side, name)])


@tiered
def other_questions(side: Side) -> None:
    """Epochs and sizes of a log whose beginning is remote."""
    name = side.create(**{**TINY, **GONE})
    produce(side, name, range(6))
    settle(side, name, earliest_local=5)
    for epoch in (-1, 0, 1):
        values = {"partition": 0, "leader_epoch": epoch, "current_leader_epoch": -1}
        asked = [{"topic": name, "partitions": [values]}]
        side.call(ApiKey.OFFSET_FOR_LEADER_EPOCH, 4, topics=asked)
    for version in served(ApiKey.DESCRIBE_LOG_DIRS):
        topics = [{"topic": name, "partitions": [0]}]
        side.call(ApiKey.DESCRIBE_LOG_DIRS, version, topics=topics)
    asked_offsets = [{"name": name, "partition_indexes": [0]}]
    side.call(ApiKey.DESCRIBE_PRODUCERS, 0, topics=asked_offsets)
