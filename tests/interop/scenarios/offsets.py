"""ListOffsets, OffsetForLeaderEpoch, DeleteRecords."""

from __future__ import annotations

from typing import Any

from skylog.wire.apis import ApiKey
from tests.interop.scenarios.batches import NOW, batch, fill
from tests.interop.wire import Side, scenario, served


def ask(side: Side, label: str, name: str, timestamp: int, version: int, **more: Any) -> None:
    values = {
        "partition_index": more.pop("index", 0),
        "timestamp": timestamp,
        **more.pop("part", {}),
    }
    side.call(
        ApiKey.LIST_OFFSETS,
        version,
        label=label,
        topics=[{"name": name, "partitions": [values]}],
        **more,
    )


@scenario
def list_offsets(side: Side) -> None:
    name, empty = side.create(), side.create("empty")
    fill(
        side,
        name,
        batch(b"a", b"b"),
        batch(b"c", b"d", at=NOW + 1000, codec=1),
        batch(b"e", at=NOW + 500),
    )
    for version in served(ApiKey.LIST_OFFSETS):
        for topic in (name, empty):
            for timestamp in (
                *range(-10, 3),
                NOW - 1,
                NOW,
                NOW + 1,
                NOW + 2,
                NOW + 1000,
                NOW + 1001,
                NOW + 2000,
            ):
                ask(side, f"{topic} at {timestamp}", topic, timestamp, version)
        ask(side, "no such partition", name, -1, version, index=5)
        ask(side, "no such topic", side.name("no"), -1, version)
        if version >= 2:
            ask(side, "committed", name, -1, version, isolation_level=1)
        if version >= 4:
            for epoch in (0, 1, 7):
                ask(side, f"epoch {epoch}", name, -1, version, part={"current_leader_epoch": epoch})
        ask(side, "as a replica", name, -1, version, replica_id=1)
        ask(side, "as a debugger", name, -1, version, replica_id=-2)


@scenario
def list_offsets_twice(side: Side) -> None:
    name = side.create(partitions=2)
    fill(side, name, batch(b"a"))
    twice = [{"partition_index": 0, "timestamp": -1}] * 2
    for version in (5, 9):
        side.call(ApiKey.LIST_OFFSETS, version, topics=[{"name": name, "partitions": twice}])
        other = [{"partition_index": 0, "timestamp": -1}, {"partition_index": 0, "timestamp": -2}]
        side.call(ApiKey.LIST_OFFSETS, version, topics=[{"name": name, "partitions": other}])
        side.call(ApiKey.LIST_OFFSETS, version, topics=[])


@scenario
def list_offsets_of_times(side: Side) -> None:
    """Records with unordered timestamps, compressed and not."""
    for codec in range(5):
        name = side.create(f"codec{codec}")
        for base in (0, 1000, 500, 3000):
            times = [NOW + base, NOW + base + 50, NOW + base + 20]
            fill(side, name, batch(b"1", b"2", b"3", timestamps=times, codec=codec))
        for delta in (0, 10, 20, 21, 50, 51, 500, 999, 1000, 1051, 3000, 3051):
            ask(side, f"codec {codec} at {delta}", name, NOW + delta, 7)
        for special in (-1, -2, -3):
            ask(side, f"codec {codec} {special}", name, special, 7)


@scenario
def epochs(side: Side) -> None:
    name = side.create()
    fill(side, name, batch(b"a", b"b"))
    for version in served(ApiKey.OFFSET_FOR_LEADER_EPOCH):
        for epoch in (-1, 0, 1, 9, -5):
            for current in (-1, 0, 1):
                values = {"partition": 0, "leader_epoch": epoch, "current_leader_epoch": current}
                side.call(
                    ApiKey.OFFSET_FOR_LEADER_EPOCH,
                    version,
                    topics=[{"topic": name, "partitions": [values]}],
                )
        for topic, index in [(name, 4), (side.name("no"), 0)]:
            side.call(
                ApiKey.OFFSET_FOR_LEADER_EPOCH,
                version,
                topics=[{"topic": topic, "partitions": [{"partition": index}]}],
            )


def delete(
    side: Side, *asked: tuple[str, int, int], version: int = 2, timeout_ms: int = 5_000
) -> None:
    def ordered(answer: Any) -> Any:
        answer["topics"].sort(key=str)
        for topic in answer["topics"]:
            topic["partitions"].sort(key=str)
        return answer

    topics: dict[str, list[Any]] = {}
    for name, index, offset in asked:
        topics.setdefault(name, []).append({"partition_index": index, "offset": offset})
    side.call(
        ApiKey.DELETE_RECORDS,
        version,
        timeout_ms=timeout_ms,
        keep=ordered,
        topics=[{"name": name, "partitions": found} for name, found in topics.items()],
    )


@scenario
def delete_records(side: Side) -> None:
    side.warm()
    name = side.create(partitions=2)
    fill(side, name, *(batch(b"a", b"b") for _ in range(6)))
    for version in served(ApiKey.DELETE_RECORDS):
        delete(side, (name, 0, 1 + version), version=version)
    for offset in (2, 3, 0, 13, 99, -2, -5):
        delete(side, (name, 0, offset))
    delete(side, (name, 9, 0), (name, 0, 4), (side.name("no"), 0, 0), (name, 1, 0), (name, 1, -1))
    delete(side, (name, 0, -1))
    delete(side, (name, 0, 12), timeout_ms=0)
    for timestamp in (-1, -2, -4):
        ask(side, f"then {timestamp}", name, timestamp, 9)
    delete(side)
    compacted = side.create("compacted", cleanup_policy="compact")
    delete(side, (compacted, 0, 0))
    both = side.create("both", cleanup_policy="compact,delete")
    delete(side, (both, 0, 0))
    delete(side, ("__consumer_offsets", 0, 0), ("__cluster_metadata", 0, 0))
