"""WAL objects with real batches of two partitions."""

from __future__ import annotations

from random import Random
from typing import NamedTuple

from skylog.diskless.batch import BatchToCommit, Extent, Stamp
from skylog.diskless.layout import HEADER
from skylog.diskless.plane import FileToCommit
from skylog.objects.keys import ObjectKey
from skylog.tiered.segments import TopicIdPartition
from skylog.wire.records import encode_batch


class Written(NamedTuple):
    """An acknowledged record of the first partition, and the number and size of its batch."""

    value: bytes
    timestamp: int
    batch: int
    batch_bytes: int


class WalObject(NamedTuple):
    data: bytes
    file: FileToCommit
    written: list[Written]


def wal_object(
    key: ObjectKey,
    now_ms: int,
    rng: Random,
    partitions: tuple[TopicIdPartition, TopicIdPartition],
    number: int,
) -> WalObject:
    """A few batches, most of them of the first partition; ``number`` is the first one's."""
    data, batches, written = HEADER, [], list[Written]()
    for batch in range(number, number + rng.randint(1, 3)):
        values = [b"%d.%d" % (batch, one) for one in range(rng.randint(1, 3))]
        records = encode_batch([(None, value) for value in values], timestamp=now_ms)
        is_first = rng.random() < 0.8
        batches.append(
            BatchToCommit(
                topic_id=partitions[not is_first].topic_id,
                partition=0,
                extent=Extent(key.text, len(data), len(records)),
                stamp=Stamp(0, len(values) - 1, -1, now_ms),
            )
        )
        data += records
        if is_first:
            written += [Written(one, now_ms, batch, len(records)) for one in values]
    file = FileToCommit(object_key=key.text, size=len(data), batches=batches)
    return WalObject(data, file, written)
