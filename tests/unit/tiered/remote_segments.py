"""A remote segment for tests: that of the plugin's own."""

from __future__ import annotations

from typing import Any

from skylog.kernel.ids import Uuid
from skylog.tiered.segments import RemoteSegment, TopicIdPartition

TOPIC_ID = Uuid.parse("lZ6vvmajTWKDBUTV6SQAtQ")
SEGMENT_ID = Uuid.parse("adh9f8BMS4anaUnD8KWfWg")


def remote_segment(**changes: Any) -> RemoteSegment:
    given: dict[str, Any] = {
        "topic": "topic1",
        "partition": TopicIdPartition(TOPIC_ID, 42),
        "id": SEGMENT_ID,
        "start_offset": 0,
        "end_offset": 1000,
        "broker_id": 2,
        "max_timestamp_ms": 1_000_000_000,
        "event_timestamp_ms": 2_000_000_000,
        "epochs": ((0, 100), (1, 200), (2, 300)),
        "size": 1000,
    }
    return RemoteSegment(**given | changes)
