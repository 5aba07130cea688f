"""Makes the data directory under ``tests/golden/data-dir-v1``: ``python -m`` this, from the root.

Every release must open it. It is never regenerated; a new format gets a new directory.
"""

from __future__ import annotations

import asyncio
import shutil
import sys
from pathlib import Path

from skylog.kernel.clock import ManualClock
from skylog.kernel.ids import Uuid
from skylog.quorum.log import MetadataLogConfig
from skylog.replicated.log import KeyValue
from skylog.wire.messages.config_record import ConfigRecord
from skylog.wire.messages.partition_record import PartitionRecord
from skylog.wire.messages.topic_record import TopicRecord
from skylog.wire.metadata_records import encode_metadata
from skylog.wire.schema import Message
from tests.unit.quorum.support import NOW_MS, Rig, started

GOLDEN = Path(__file__).parents[2] / "golden" / "data-dir-v1"
TOPIC_ID = Uuid.parse("J8aAPcfLQt2bqs1JT_rMgQ")
BEFORE_SNAPSHOT: list[Message] = [
    TopicRecord(name="orders", topic_id=TOPIC_ID),
    PartitionRecord(
        partition_id=0, topic_id=TOPIC_ID, replicas=[1], isr=[1], leader=1, leader_epoch=0
    ),
]
AFTER_SNAPSHOT: list[Message] = [
    ConfigRecord(resource_type=2, resource_name="orders", name="retention.ms", value="60000"),
    ConfigRecord(resource_type=2, resource_name="orders", name="retention.ms", value=None),
]


def encoded(records: list[Message]) -> list[KeyValue]:
    # Versions by number: a later release's highest version would be another record.
    return [(None, encode_metadata(record, 0)) for record in records]


async def make(directory: Path) -> None:
    clock = ManualClock(NOW_MS)
    config = MetadataLogConfig(segment_bytes=500)
    rig: Rig = await started(directory, clock=clock, config=config)
    await rig.commit(list(rig.storage.bootstrap))
    clock.advance(1000)
    await rig.commit(encoded(BEFORE_SNAPSHOT))
    state = [*rig.storage.bootstrap, *encoded(BEFORE_SNAPSHOT)]
    await rig.node.write_snapshot(rig.node.end_offset, state)
    await rig.node.close()
    clock.advance(1000)
    rig = await started(directory, clock=clock, config=config)
    for record in encoded(AFTER_SNAPSHOT):
        await rig.commit([record])
    # Not closed: most directories were last used by a process that was killed.


if __name__ == "__main__":
    shutil.rmtree(GOLDEN, ignore_errors=True)
    asyncio.run(make(GOLDEN))
    for lock in list(GOLDEN.rglob(".lock")):
        lock.unlink()
    sys.stdout.write(f"{sum(1 for _ in GOLDEN.rglob('*'))} entries in {GOLDEN}\n")
