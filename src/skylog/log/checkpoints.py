"""The small text files of a log directory and of a partition, and the producer snapshot: pure.

An invalid file raises ``Malformed``: the caller decides how to continue without it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from struct import Struct, error
from typing import Final

from crc32c import crc32c

from skylog.kernel.ids import Uuid
from skylog.log.producers import NO_OFFSET, ProducerEntry, RememberedBatch

RECOVERY_POINT_CHECKPOINT: Final = "recovery-point-offset-checkpoint"
HIGH_WATERMARK_CHECKPOINT: Final = "replication-offset-checkpoint"
LOG_START_CHECKPOINT: Final = "log-start-offset-checkpoint"
CLEANER_CHECKPOINT: Final = "cleaner-offset-checkpoint"
LEADER_EPOCH_CHECKPOINT: Final = "leader-epoch-checkpoint"
PARTITION_METADATA: Final = "partition.metadata"
CLEAN_SHUTDOWN: Final = ".kafka_cleanshutdown"
LOCK: Final = ".lock"
NO_BROKER_EPOCH: Final = -1

_VERSION: Final = "0"

TopicPartition = tuple[str, int]
EpochStart = tuple[int, int]


class Malformed(Exception):  # noqa: N818 — what the file is
    """A file does not contain what its name says."""


def _lines(text: str) -> list[str]:
    """The entries of a checkpoint: version, count, then one line each. A new file is empty."""
    lines = text.splitlines()
    if not lines:
        return []
    if lines[0] != _VERSION:
        raise Malformed(f"unknown version {lines[0]!r}")
    entries = lines[2:]
    if len(lines) < 2 or lines[1] != str(len(entries)):
        raise Malformed(f"expected {lines[1:2]} entries, found {len(entries)}")
    return entries


def _checkpoint(entries: list[str]) -> str:
    return "\n".join([_VERSION, str(len(entries)), *entries, ""])


def encode_offsets(offsets: Mapping[TopicPartition, int]) -> str:
    """A checkpoint of offsets by partition."""
    return _checkpoint([f"{topic} {index} {at}" for (topic, index), at in offsets.items()])


def decode_offsets(text: str) -> dict[TopicPartition, int]:
    offsets: dict[TopicPartition, int] = {}
    try:
        for line in _lines(text):
            topic, index, offset = line.split(" ")
            offsets[topic, int(index)] = int(offset)
    except ValueError as fault:
        raise Malformed(str(fault)) from fault
    return offsets


def encode_epochs(epochs: Iterable[EpochStart]) -> str:
    """The leader epochs of a partition and where each began."""
    return _checkpoint([f"{epoch} {start}" for epoch, start in epochs])


def decode_epochs(text: str) -> list[EpochStart]:
    try:
        pairs = [line.split(" ") for line in _lines(text)]
        return [(int(epoch), int(start)) for epoch, start in pairs]
    except ValueError as fault:
        raise Malformed(str(fault)) from fault


def encode_partition_metadata(topic_id: Uuid) -> str:
    return f"version: 0\ntopic_id: {topic_id}"


def decode_partition_metadata(text: str) -> Uuid:
    try:
        values = dict(line.split(": ", 1) for line in text.splitlines())
        if values["version"] != "0":
            raise Malformed(f"unknown version {values['version']!r}")
        return Uuid.parse(values["topic_id"])
    except (KeyError, ValueError) as fault:
        raise Malformed(f"not a partition.metadata file: {fault}") from fault


def encode_clean_shutdown(broker_epoch: int) -> str:
    return json.dumps({"version": 0, "brokerEpoch": broker_epoch}, separators=(",", ":"))


def decode_clean_shutdown(text: str) -> int:
    """The broker's last epoch; whatever it contains, the file marks a clean shutdown."""
    try:
        content = json.loads(text)
        return int(content["brokerEpoch"])
    except (ValueError, KeyError, TypeError):
        return NO_BROKER_EPOCH


_SNAPSHOT_VERSION: Final = 1
_SNAPSHOT_HEADER: Final = Struct(">hIi")
_SNAPSHOT_ENTRY: Final = Struct(">qhiqiqiq")
_SNAPSHOT_CRC_FROM: Final = 6


def encode_snapshot(producers: Iterable[ProducerEntry]) -> bytes:
    """Kafka's ``.snapshot`` file, version 1: only the last batch of each producer is kept."""
    entries = [
        _SNAPSHOT_ENTRY.pack(
            entry.producer_id,
            entry.epoch,
            entry.last_sequence,
            entry.last_offset,
            entry.offset_delta,
            entry.last_timestamp,
            entry.coordinator_epoch,
            entry.txn_first_offset,
        )
        for entry in producers
    ]
    body = len(entries).to_bytes(4, "big") + b"".join(entries)
    head = _SNAPSHOT_VERSION.to_bytes(2, "big") + crc32c(body).to_bytes(4, "big")
    return head + body


def decode_snapshot(data: bytes) -> list[ProducerEntry]:
    try:
        version, crc, count = _SNAPSHOT_HEADER.unpack_from(data)
    except error as fault:
        raise Malformed("snapshot is shorter than its header") from fault
    if version != _SNAPSHOT_VERSION:
        raise Malformed(f"unknown snapshot version {version}")
    if crc32c(data[_SNAPSHOT_CRC_FROM:]) != crc:
        raise Malformed("snapshot's CRC does not match")
    if len(data) != _SNAPSHOT_HEADER.size + count * _SNAPSHOT_ENTRY.size:
        raise Malformed(f"snapshot of {len(data)} bytes claims {count} entries")
    return [_entry(*v) for v in _SNAPSHOT_ENTRY.iter_unpack(data[_SNAPSHOT_HEADER.size :])]


def _entry(  # noqa: PLR0913, PLR0917 — the entry's eight fields
    producer_id: int,
    epoch: int,
    last_sequence: int,
    last_offset: int,
    offset_delta: int,
    timestamp: int,
    coordinator_epoch: int,
    txn_first_offset: int,
) -> ProducerEntry:
    batches: tuple[RememberedBatch, ...] = ()
    if last_offset >= 0:
        batches = (RememberedBatch(last_sequence, last_offset, offset_delta, timestamp),)
    first = txn_first_offset if txn_first_offset >= 0 else NO_OFFSET
    return ProducerEntry(producer_id, epoch, coordinator_epoch, timestamp, first, batches)
