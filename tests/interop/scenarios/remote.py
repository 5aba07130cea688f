"""What scenarios of tiered storage share: tiny segments, waiting, and the metadata topic.

They have their own table, for they need brokers with tiered storage.
"""

from __future__ import annotations

import time
from typing import Any, Final

from skylog.kernel.errors import ErrorCode
from skylog.wire.apis import ApiKey
from skylog.wire.batch import split_batches
from skylog.wire.messages.remote_partition_delete_metadata_record import (
    RemotePartitionDeleteMetadataRecord,
)
from skylog.wire.metadata_records import decode_remote_log
from skylog.wire.records import decode_records
from tests.interop.scenarios.batches import batch, fill
from tests.interop.wire import Scenario, Side

TIERED: dict[str, Scenario] = {}
# The same on both sides; young enough for every retention that a scenario does not set itself.
START_MS: Final = int(time.time() * 1000)
METADATA_TOPIC = "__remote_log_metadata"
METADATA_PARTITIONS = 5
SETTLE_SECONDS_MAX = 60
ATTEMPTS_MAX = 4
_NOT_READY: Final = -109
LATEST, EARLIEST, MAX_TIMESTAMP, EARLIEST_LOCAL, LATEST_TIERED, EARLIEST_PENDING = range(-1, -7, -1)
EVERY_SPECIAL = tuple(range(-1, -7, -1))
# One batch per segment, and nothing stays local but the active segment.
TINY: Final = {
    "segment_index_bytes": "12",
    "index_interval_bytes": "1",
    "file_delete_delay_ms": "0",
    "remote_storage_enable": "true",
    "retention_ms": "-1",
}
GONE: Final = {"local_retention_bytes": "1"}


def tiered(function: Scenario) -> Scenario:
    """A scenario for two brokers with tiered storage."""
    TIERED[function.__name__] = function
    return function


def produce(side: Side, name: str, numbers: range, index: int = 0, at: int = START_MS) -> None:
    """One batch of one record per number, a second apart."""
    for number in numbers:
        fill(side, name, batch(b"%d" % number, at=at + 1000 * number), index=index)


def offset(side: Side, name: str, timestamp: int, index: int = 0) -> int:
    asked = [{"partition_index": index, "timestamp": timestamp, "current_leader_epoch": -1}]
    found = side.quiet(
        ApiKey.LIST_OFFSETS, 11, topics=[{"name": name, "partitions": asked}], timeout_ms=30_000
    )
    part = found.topics[0].partitions[0]
    return int(part.offset) if part.error_code == 0 else -100 - int(part.error_code)


def settle(side: Side, name: str, index: int = 0, **wanted: int) -> None:
    """Wait until the offsets are as wanted, by the names of this module in lower case."""
    timestamps = {key: globals()[key.upper()] for key in wanted}
    deadline = time.monotonic() + SETTLE_SECONDS_MAX
    while True:
        found = {key: offset(side, name, at, index) for key, at in timestamps.items()}
        if found == wanted:
            return
        assert time.monotonic() < deadline, f"{name} at {side.address}: {found}, not {wanted}"
        time.sleep(0.05)


def await_ready(side: Side, name: str) -> None:
    """Until the broker knows the remote segments: before, it does not answer by time."""
    deadline = time.monotonic() + SETTLE_SECONDS_MAX
    while offset(side, name, START_MS) == _NOT_READY:
        assert time.monotonic() < deadline, name


def ask(
    side: Side,
    label: str,
    name: str,
    *timestamps: int,
    version: int = 11,
    index: int = 0,
    **more: Any,
) -> None:
    """ListOffsets, compared."""
    given = {"timeout_ms": 30_000, **more} if version >= 10 else more
    for timestamp in timestamps or EVERY_SPECIAL:
        asked = [{"partition_index": index, "timestamp": timestamp}]
        answer = listed(side, version, topics=[{"name": name, "partitions": asked}], **given)
        side.note(f"{ApiKey.LIST_OFFSETS.name} v{version} {label}: {timestamp}", answer)


def listed(side: Side, version: int, **given: Any) -> Any:
    """The answer of ListOffsets for one partition. Kafka overlooks at times that its search of
    remote segments has ended, and answers when the time is up; then it is asked again."""
    for _ in range(ATTEMPTS_MAX):
        answer = side.quiet(ApiKey.LIST_OFFSETS, version, **given)
        if answer.topics[0].partitions[0].error_code != ErrorCode.REQUEST_TIMED_OUT:
            break
    return answer


def alter(side: Side, name: str, *, quiet: bool = False, **configs: str | None) -> None:
    """Change a topic's settings; the error and its words are compared."""
    changes = [
        {
            "name": key.replace("_", "."),
            "config_operation": 1 if value is None else 0,
            "value": value,
        }
        for key, value in configs.items()
    ]
    resource = {"resource_type": 2, "resource_name": name, "configs": changes}
    answer = side.quiet(ApiKey.INCREMENTAL_ALTER_CONFIGS, 1, resources=[resource])
    found = answer.responses[0]
    if not quiet:
        side.note(f"alter {configs}", (found.error_code, found.error_message))


def metadata(side: Side, name: str) -> list[Any]:
    """The records of a topic's segments as the metadata topic has them; ids are numbered."""
    known: dict[Any, int] = {}
    return [
        _plain(record, known)
        for partition in range(METADATA_PARTITIONS)
        for record in _records(side, partition)
        if _topic(record) == name
    ]


def _records(side: Side, partition: int) -> list[Any]:
    found: list[Any] = []
    while True:
        asked = [
            {"partition": partition, "fetch_offset": len(found), "partition_max_bytes": 1 << 20}
        ]
        answer = side.quiet(
            ApiKey.FETCH,
            12,
            max_wait_ms=0,
            max_bytes=1 << 20,
            session_epoch=-1,
            topics=[{"topic": METADATA_TOPIC, "partitions": asked}],
        )
        part = answer.responses[0].partitions[0]
        assert part.error_code == 0, part
        for one in split_batches(part.records):
            found += [decode_remote_log(record.value) for record in decode_records(one)]
        if len(found) >= part.high_watermark:
            return found


def _topic(record: Any) -> str:
    if isinstance(record, RemotePartitionDeleteMetadataRecord):
        return str(record.topic_id_partition.name)
    return str(record.remote_log_segment_id.topic_id_partition.name)


def _plain(record: Any, known: dict[Any, int]) -> Any:
    """Without ids and times, and without the two fields that Kafka does not have."""
    if isinstance(record, RemotePartitionDeleteMetadataRecord):
        return "partition", record.remote_partition_delete_state
    number = known.setdefault(record.remote_log_segment_id.id, len(known))
    state = record.remote_log_segment_state
    if not hasattr(record, "start_offset"):
        return number, state, record.broker_id, record.custom_metadata
    epochs = [(one.leader_epoch, one.offset) for one in record.segment_leader_epochs]
    return (
        number, state, record.broker_id, record.custom_metadata,
        record.start_offset, record.end_offset, record.max_timestamp_ms, epochs,
        record.segment_size_in_bytes, record.txn_index_empty,
    )  # fmt: skip
