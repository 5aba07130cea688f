"""The hash by which a group detects changes of its topics, as Kafka 4.3 computes it."""

from __future__ import annotations

import struct
from collections.abc import Iterable
from functools import lru_cache

from skylog.groups.consumer.world import TopicInfo, Topics
from skylog.groups.consumer.xxh3 import xxh3_64

_MAGIC = b"\x00"


def metadata_hash(names: Iterable[str], topics: Topics) -> int:
    """The hash of existing topics: ids, names, partitions and racks; 0 for none."""
    found = (topics.info(name) for name in sorted(names, key=_java_order))
    hashes = [topic_hash(topic) for topic in found if topic is not None]
    return _signed(xxh3_64(struct.pack(f"<{len(hashes)}Q", *hashes))) if hashes else 0


# Many groups have the same topics, and all of them check when one has changed.
@lru_cache(maxsize=10_000)
def topic_hash(topic: TopicInfo) -> int:
    high, low = struct.unpack(">QQ", topic.topic_id)
    parts = [_MAGIC, struct.pack("<QQ", high, low), _text(topic.name)]
    parts.append(struct.pack("<i", topic.partition_count))
    for partition, racks in enumerate(topic.racks):
        parts.append(struct.pack("<i", partition))
        for rack in sorted(racks, key=_java_order):
            parts += (struct.pack("<i", _units(rack)), _text(rack))
    return xxh3_64(b"".join(parts))


def _text(text: str) -> bytes:
    """A string as hash4j processes it: its UTF-16 units, then their number."""
    return text.encode("utf-16-le", "surrogatepass") + struct.pack("<i", _units(text))


def _units(text: str) -> int:
    return len(_java_order(text)) // 2


def _java_order(text: str) -> bytes:
    """Java compares strings by their UTF-16 units."""
    return text.encode("utf-16-be", "surrogatepass")


def _signed(value: int) -> int:
    return value - 2**64 if value >= 2**63 else value
