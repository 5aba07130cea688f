"""Pure: the objects of a remote segment as Kafka's LocalTieredStorage names them.

A file for the log and for each index, as beside a log; there is no manifest. Kafka's own tests
write this layout, so that each of the two can read what the other has written.
"""

from __future__ import annotations

from typing import Final

from skylog.objects.keys import LOCAL_TIERED_ROOT, ObjectKey
from skylog.tiered.segments import IndexType, RemoteSegment

LOG: Final = "log"
INDEX_SUFFIXES: Final = {
    IndexType.OFFSET: "index",
    IndexType.TIMESTAMP: "timeindex",
    IndexType.PRODUCER_SNAPSHOT: "snapshot",
    IndexType.LEADER_EPOCH: "leader_epoch_checkpoint",
    IndexType.TRANSACTION: "txnindex",
}
SUFFIXES: Final = (LOG, *INDEX_SUFFIXES.values())


def object_key(segment: RemoteSegment, suffix: str) -> ObjectKey:
    topic_id, index = segment.partition
    folder = f"{LOCAL_TIERED_ROOT}/{segment.topic}-{index}-{topic_id}"
    return ObjectKey.parse(f"{folder}/{segment.start_offset:020}-{segment.id}.{suffix}")
