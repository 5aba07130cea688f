"""The size of a commit in the metadata log, and the contents of its record."""

from __future__ import annotations

import random

import pytest

from skylog.diskless.coordinator.machine import CoordinatorMachine
from skylog.diskless.coordinator.memory import MemoryState
from skylog.diskless.coordinator.requests import CommitFile, CreatePartitions
from skylog.diskless.coordinator.state import Applied, batch_id
from skylog.diskless.coordinator.turn import encode_records
from skylog.diskless.plane import FileToCommit
from skylog.diskless.rules.times import PlaneRules
from skylog.kernel.ids import Uuid
from skylog.objects.keys import ObjectKey
from skylog.wire.messages.file_committed_record import FileCommittedRecord
from skylog.wire.metadata_records import encode_diskless
from skylog.wire.records import encode_batch
from tests.unit.diskless.batches import to_commit

BATCHES = 64
NOW_MS = 1_700_000_000_000
TOPIC = Uuid(b"topic-a---------")


def committed(partitions: int, rng: random.Random) -> FileCommittedRecord:
    """The record of a file as a busy broker writes it: idempotent producers, odd sizes."""
    machine = CoordinatorMachine(0, MemoryState(), PlaneRules())
    created = machine.handle(CreatePartitions([(TOPIC, "a", range(partitions))]), NOW_MS)
    machine.apply(created.records, Applied(partitions, NOW_MS))
    key = ObjectKey.new("wal", NOW_MS, rng).text
    batches, end = [], 1
    for index in range(BATCHES):
        size = rng.randrange(500, 60_000)
        count = rng.randrange(1, 200)
        batches.append(
            to_commit(
                key,
                topic_id=TOPIC,
                partition=index * partitions // BATCHES,
                byte_offset=end,
                byte_size=size,
                base_offset=0,
                last_offset=count - 1,
                batch_max_timestamp=NOW_MS - rng.randrange(3000),
                producer_id=4000 + rng.randrange(100) + index * 1000,
                producer_epoch=rng.randrange(3),
                base_sequence=(first := rng.randrange(1_000_000)),
                last_sequence=first + count - 1,
            )
        )
        end += size
    file = FileToCommit(object_key=key, size=end, batches=batches, coordinator_ids=(0,))
    (record,) = machine.handle(CommitFile(file), NOW_MS).records
    assert isinstance(record, FileCommittedRecord)
    return record


@pytest.mark.parametrize("partitions", [1, 8, 64])
def test_a_batch_takes_few_bytes_of_the_log(partitions: int) -> None:
    record = committed(partitions, random.Random(3))
    plain = encode_batch([(None, encode_diskless(record))], timestamp=NOW_MS)
    assert len(plain) / BATCHES <= 72
    assert len(encode_records([record], NOW_MS)) / BATCHES <= 45


def test_batches_of_one_file_have_different_ids() -> None:
    # Q26
    ids = {batch_id(7, byte_offset) for byte_offset in range(1, 100_000, 61)}
    assert len(ids) == len(range(1, 100_000, 61))
    assert ids.isdisjoint({batch_id(8, byte_offset) for byte_offset in range(1, 100_000, 61)})
    assert batch_id(2**36, 2**31 - 1) < 2**63
