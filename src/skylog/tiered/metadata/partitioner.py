"""Pure: which partition of ``__remote_log_metadata`` holds the records of a partition.

The hash is that of Kafka's ``TopicIdPartition`` in Java, so that both find each other's records.
"""

from __future__ import annotations

from typing import Final

from skylog.client.partitioner import partition_of_key
from skylog.kernel.ids import Uuid
from skylog.tiered.segments import TopicIdPartition

_INT_MASK: Final = 0xFFFF_FFFF


def metadata_partition(partition: TopicIdPartition, count: int) -> int:
    """The partition among ``count``; the count of a topic in use can never change."""
    high, low = _halves(partition.topic_id)
    hashed = (31 + _folded(low)) * 31 + _folded(high)
    hashed = (hashed * 31 + partition.partition_index) & _INT_MASK
    return partition_of_key(hashed.to_bytes(4, "big"), count)


def _halves(id_: Uuid) -> tuple[int, int]:
    return int.from_bytes(id_[:8], "big"), int.from_bytes(id_[8:], "big")


def _folded(half: int) -> int:
    return (half ^ half >> 32) & _INT_MASK
