"""Groups on a real partition: the next coordinator reads what the last one wrote."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from skylog.groups.coordinator import GroupCoordinator
from skylog.groups.requests import ClientContext
from skylog.groups.settings import GroupSettings
from skylog.kernel.clock import ManualClock
from skylog.kernel.errors import ErrorCode, KafkaError
from skylog.kernel.executor import InlineExecutor
from skylog.kernel.ids import Uuid
from skylog.kernel.limits import GROUP_LOAD_READ_BYTES
from skylog.kernel.topics import CONSUMER_OFFSETS
from skylog.log.producers import Marker, TransactionEnd
from skylog.replicated.log import LoadedBatch
from skylog.replicated.machine import InTransaction
from skylog.replicated.topic_log import TopicLog
from skylog.replication.partition import Partition
from skylog.wire.messages.offset_fetch_request import OffsetFetchRequest
from skylog.wire.records import encode_batch
from tests.unit.groups.support import commit_request
from tests.unit.log.support import open_log
from tests.unit.replicated.support import ManualTimers
from tests.unit.replication.support import Host, state

CLOCK = ManualClock()


def led_partition(directory: Path) -> Partition:
    log = open_log(directory)
    partition = Partition(Host(), CONSUMER_OFFSETS, 0, Uuid(b"o" * 16), log)
    partition.update(state(epoch=3))
    return partition


async def loaded(log: TopicLog) -> list[LoadedBatch]:
    return [batch async for batch in log.read_all()]


async def started(partition: Partition) -> GroupCoordinator:
    coordinator = GroupCoordinator(
        GroupSettings(offsets_topic_partitions=1), CLOCK, random.Random(1), ManualTimers(CLOCK)
    )
    coordinator.partition_led(0, TopicLog(partition, CLOCK, InlineExecutor()))
    await coordinator.loaded()
    return coordinator


async def test_a_commit_outlives_its_coordinator(tmp_path: Path) -> None:
    partition = led_partition(tmp_path)
    coordinator = await started(partition)
    context = ClientContext(7, "client", "127.0.0.1")
    committed = await coordinator.offset_commit(commit_request(offset=77), context)
    assert committed.topics[0].partitions[0].error_code == ErrorCode.NONE
    await coordinator.close()
    partition.log.close()

    next_coordinator = await started(led_partition(tmp_path))
    fetched = await next_coordinator.offset_fetch(OffsetFetchRequest("group", None), context)
    assert fetched.topics[0].partitions[0].committed_offset == 77
    await next_coordinator.close()


async def test_listeners_learn_of_the_high_watermark_until_they_unsubscribe(tmp_path: Path) -> None:
    log = TopicLog(led_partition(tmp_path), CLOCK, InlineExecutor())
    heard: list[int] = []
    unsubscribe = log.on_high_watermark(heard.append)
    assert log.append([(b"k", b"v"), (b"k", None)]) == log.end_offset == 2
    unsubscribe()
    log.append([(b"k", b"v")])
    assert (heard, log.high_watermark) == ([2], 3)


async def test_a_log_larger_than_one_read_comes_back_whole_and_in_order(tmp_path: Path) -> None:
    log = TopicLog(led_partition(tmp_path), CLOCK, InlineExecutor())
    value = bytes(GROUP_LOAD_READ_BYTES // 3)
    for number in range(10):
        log.append([(b"%d" % number, value), (b"tombstone", None)])
    batches = await loaded(log)
    assert [batch.base_offset for batch in batches] == list(range(0, 20, 2))
    assert [batch.records[0][0] for batch in batches] == [b"%d" % n for n in range(10)]
    assert all(batch.records[1] == (b"tombstone", None) for batch in batches)


async def test_transactional_batches_are_marked(tmp_path: Path) -> None:
    log = TopicLog(led_partition(tmp_path), CLOCK, InlineExecutor())
    log.append([(b"first", b"")])
    producer = InTransaction(5, 0, is_verified=False)
    log.append_in_transaction([(b"pending", b"")], producer)
    end = TransactionEnd(5, 0, Marker(3, True))
    log.end_transaction(end)
    log.append([(b"last", b"")])
    batches = await loaded(log)
    assert [batch.transaction for batch in batches] == [None, InTransaction(5, 0), end, None]
    assert [list(batch.records) for batch in batches] == [
        [(b"first", b"")],
        [(b"pending", b"")],
        [],
        [(b"last", b"")],
    ]


async def test_a_batch_has_a_largest_size(tmp_path: Path) -> None:
    partition = led_partition(tmp_path)
    whole = len(encode_batch([(b"k", b"v")], timestamp=CLOCK.now_ms()))
    TopicLog(partition, CLOCK, InlineExecutor(), batch_bytes_max=whole).append([(b"k", b"v")])
    small = TopicLog(partition, CLOCK, InlineExecutor(), batch_bytes_max=whole - 1)
    with pytest.raises(KafkaError, match="MESSAGE_TOO_LARGE"):
        small.append([(b"k", b"v")])
    assert small.end_offset == 1
