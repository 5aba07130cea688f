"""Segments of tiered topics on a real broker: copied, expired, deleted, whatever the store does."""

from __future__ import annotations

import random
import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import confluent_kafka
import pytest

from skylog.broker.assembly.tiered import TieredStorage
from skylog.kernel.errors import ErrorCode
from skylog.log.checkpoints import LEADER_EPOCH_CHECKPOINT, LOG_START_CHECKPOINT
from skylog.objects.faulty import Faults, FaultyStore
from skylog.replication.partition import Partition
from skylog.testing import Broker
from skylog.tiered.segments import RemoteSegment, SegmentState, TopicIdPartition
from skylog.wire.messages.create_partitions_request import (
    CreatePartitionsRequest,
    CreatePartitionsTopic,
)
from skylog.wire.messages.delete_records_request import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from skylog.wire.messages.incremental_alter_configs_request import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from tests.integration.broker_client import Client, values
from tests.waiting import until

SETTINGS = {
    "remote.log.storage.system.enable": "true",
    "remote.log.manager.task.interval.ms": "100",
    "remote.log.manager.task.retry.backoff.ms": "10",
    "remote.log.manager.task.retry.backoff.max.ms": "50",
    "log.retention.check.interval.ms": "100",
    "rlmm.config.remote.log.metadata.topic.num.partitions": "3",
}
# Three records of 500 bytes in each segment.
PER_SEGMENT = 3
TIERED = {
    "remote.storage.enable": "true",
    "internal.segment.bytes": "2000",
    "local.retention.bytes": "1",
    "file.delete.delay.ms": "0",
}


@pytest.fixture
def own() -> Iterator[Broker]:
    """A broker that a test may spoil."""
    with Broker(SETTINGS) as running:
        yield running


def tiered(broker: Broker) -> TieredStorage:
    found = broker.node._services.tiered
    assert found is not None
    return found


def replica(broker: Broker, topic: str, index: int = 0) -> Partition:
    found = broker.node._services.replicas.get(topic, index)
    assert found is not None
    return found


def value(number: int) -> bytes:
    return b"%d " % number + bytes(500)


def fill(client: Client, topic: str, count: int, *, index: int = 0, **more: Any) -> None:
    """Records that are numbered from the end of the partition on."""
    more.setdefault("timestamp", int(time.time() * 1000))
    answer = client.produce(topic, value(0), index=index, **more)
    assert answer.error_code == 0, answer
    for number in range(1, count):
        assert client.produce(topic, value(number), index=index, **more).error_code == 0


def segments(broker: Broker, topic: str, index: int = 0) -> list[RemoteSegment]:
    """Those that are finished."""
    partition = replica(broker, topic, index)
    remote = tiered(broker).logs.get(TopicIdPartition(partition.topic_id, index))
    if remote is None:
        return []
    return [one for one in remote.all() if one.state is SegmentState.COPY_FINISHED]


def unfinished(broker: Broker, topic: str) -> list[RemoteSegment]:
    partition = replica(broker, topic)
    remote = tiered(broker).logs.get(TopicIdPartition(partition.topic_id, 0))
    assert remote is not None
    return remote.unfinished()


def objects(broker: Broker, topic: str) -> list[Path]:
    directory = Path(broker.node.settings.node.log_dirs[0]) / "tiered-objects"
    return [path for path in directory.glob(f"{topic}-*/*/*") if path.is_file()]


def ends(broker: Broker, topic: str, index: int = 0) -> list[int]:
    return [one.end_offset for one in segments(broker, topic, index)]


def starts(broker: Broker, topic: str) -> tuple[int, int]:
    log = replica(broker, topic).log
    return log.log_start_offset, log.local_log_start_offset


# A broker that has just started does not know its remote segments yet.
NOT_YET = (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.REPLICA_NOT_AVAILABLE)


def read_all(client: Client, topic: str, start: int, end: int) -> list[bytes]:
    found: list[bytes] = []
    deadline = time.monotonic() + 60
    while start + len(found) < end:
        assert time.monotonic() < deadline
        answer = client.fetch(topic, start + len(found), wait_ms=500)
        assert answer.error_code == 0 or answer.error_code in NOT_YET, answer
        found += values(answer.records)
    return found[: end - start]


def alter(client: Client, topic: str, **configs: str) -> int:
    changes = [
        AlterableConfig(key.replace("_", "."), 0, new_value) for key, new_value in configs.items()
    ]
    request = IncrementalAlterConfigsRequest(resources=[AlterConfigsResource(2, topic, changes)])
    answer = client.ask(request).responses[0]
    return int(answer.error_code)


def delete_records(client: Client, topic: str, offset: int) -> None:
    wanted = DeleteRecordsTopic(topic, [DeleteRecordsPartition(0, offset)])
    answer = client.ask(DeleteRecordsRequest(topics=[wanted], timeout_ms=30_000))
    assert answer.topics[0].partitions[0].error_code == 0, answer


# -- copying ---------------------------------------------------------------------------------------


def test_rolled_segments_are_copied_dropped_locally_and_read_from_the_store(
    broker: Broker, client: Client
) -> None:
    client.create("copied", configs=TIERED)
    fill(client, "copied", 20)
    until(lambda: ends(broker, "copied") == [2, 5, 8, 11, 14, 17])
    until(lambda: starts(broker, "copied") == (0, 18))
    assert len(objects(broker, "copied")) == 6 * 3
    assert read_all(client, "copied", 0, 20) == [value(number) for number in range(20)]
    assert not unfinished(broker, "copied")


def test_a_topic_becomes_remote_later(broker: Broker, client: Client) -> None:
    client.create("later", configs={"internal.segment.bytes": "2000"})
    fill(client, "later", 10)
    assert not objects(broker, "later")
    assert alter(client, "later", remote_storage_enable="true", local_retention_bytes="1") == 0
    until(lambda: ends(broker, "later") == [2, 5, 8])
    until(lambda: starts(broker, "later") == (0, 9))


def test_new_partitions_are_copied(broker: Broker, client: Client) -> None:
    client.create("wider", configs=TIERED)
    fill(client, "wider", 7)
    request = CreatePartitionsRequest([CreatePartitionsTopic("wider", 3, None)], 30_000)
    assert client.ask(request).results[0].error_code == 0
    until(lambda: broker.node._services.replicas.get("wider", 2))
    fill(client, "wider", 7, index=2)
    until(lambda: ends(broker, "wider", 2) == [2, 5])
    assert ends(broker, "wider", 0) == [2, 5]


def test_an_open_transaction_keeps_its_segments_local(broker: Broker, client: Client) -> None:
    client.create("transactional", configs=TIERED)
    producer = confluent_kafka.Producer(
        {"bootstrap.servers": broker.bootstrap, "transactional.id": "open", "log_level": 0}
    )
    producer.init_transactions(60)
    producer.begin_transaction()
    for number in range(10):
        producer.produce("transactional", value(number))
        assert producer.flush(60) == 0
    log = replica(broker, "transactional").log
    assert len(log.segments) == 4
    assert log.last_stable_offset == 0
    # Another partition's copies come and go meanwhile.
    client.create("beside", configs=TIERED)
    fill(client, "beside", 7)
    until(lambda: ends(broker, "beside") == [2, 5])
    assert not ends(broker, "transactional")
    producer.commit_transaction(60)
    until(lambda: ends(broker, "transactional") == [2, 5, 8])


def test_copying_is_disabled_and_enabled_again(broker: Broker, client: Client) -> None:
    client.create("paused", configs=TIERED)
    fill(client, "paused", 7)
    until(lambda: ends(broker, "paused") == [2, 5])
    assert alter(client, "paused", remote_log_copy_disable="true", local_retention_bytes="-2") == 0
    until(lambda: not replica(broker, "paused").log.config.copies)
    fill(client, "paused", 9)
    until(lambda: len(replica(broker, "paused").log.segments) >= 4)
    assert read_all(client, "paused", 0, 7) == [value(number) for number in range(7)]
    assert ends(broker, "paused") == [2, 5]
    assert alter(client, "paused", remote_log_copy_disable="false") == 0
    until(lambda: ends(broker, "paused") == [2, 5, 8, 11, 14])


def test_copying_lags_behind_as_far_as_it_may(broker: Broker, client: Client) -> None:
    lagging = {**TIERED, "local.retention.bytes": "100000", "remote.copy.lag.bytes": "4500"}
    client.create("lagging", configs={**lagging, "remote.copy.lag.ms": "-1"})
    fill(client, "lagging", 16)
    # 16 records: five closed segments, and 4,500 bytes are more than two and a half of them.
    until(lambda: ends(broker, "lagging") == [2, 5])
    assert alter(client, "lagging", remote_copy_lag_bytes="0") == 0
    until(lambda: ends(broker, "lagging") == [2, 5, 8, 11, 14])


# -- expiry ----------------------------------------------------------------------------------------


def test_segments_expire_by_size(broker: Broker, client: Client) -> None:
    client.create("sized", configs=TIERED)
    fill(client, "sized", 20)
    until(lambda: len(ends(broker, "sized")) == 6)
    size = segments(broker, "sized")[0].size
    assert alter(client, "sized", retention_bytes=str(size * 3)) == 0
    until(lambda: ends(broker, "sized") == [11, 14, 17] or ends(broker, "sized") == [14, 17])
    start = replica(broker, "sized").log.log_start_offset
    assert start == segments(broker, "sized")[0].start_offset
    until(lambda: len(objects(broker, "sized")) == 3 * len(ends(broker, "sized")))
    assert read_all(client, "sized", start, 20) == [value(number) for number in range(start, 20)]


def test_segments_expire_by_age(broker: Broker, client: Client) -> None:
    client.create("aged", configs=TIERED)
    fill(client, "aged", 7)
    until(lambda: len(ends(broker, "aged")) == 2)
    assert alter(client, "aged", retention_ms="1", local_retention_ms="1") == 0
    until(lambda: not objects(broker, "aged"))
    assert starts(broker, "aged")[0] >= 6
    until(lambda: not unfinished(broker, "aged"))


def test_segments_below_the_log_start_go(broker: Broker, client: Client) -> None:
    client.create("trimmed", configs=TIERED)
    fill(client, "trimmed", 20)
    until(lambda: starts(broker, "trimmed") == (0, 18))
    delete_records(client, "trimmed", 7)
    until(lambda: ends(broker, "trimmed") == [8, 11, 14, 17])
    until(lambda: len(objects(broker, "trimmed")) == 4 * 3)
    assert starts(broker, "trimmed") == (7, 18)
    assert read_all(client, "trimmed", 7, 20) == [value(number) for number in range(7, 20)]
    delete_records(client, "trimmed", 20)
    until(lambda: not objects(broker, "trimmed"))
    assert replica(broker, "trimmed").log.log_start_offset == 20


# -- the end of a topic ----------------------------------------------------------------------------


def test_a_deleted_topic_takes_its_objects_with_it(broker: Broker, client: Client) -> None:
    client.create("deleted", 2, configs=TIERED)
    fill(client, "deleted", 10)
    fill(client, "deleted", 10, index=1)
    until(lambda: len(ends(broker, "deleted")) == len(ends(broker, "deleted", 1)) == 3)
    old = {one.id for one in segments(broker, "deleted")}
    client.delete("deleted")
    until(lambda: not objects(broker, "deleted"))
    client.create("deleted", configs=TIERED)
    fill(client, "deleted", 10)
    until(lambda: len(ends(broker, "deleted")) == 3)
    assert not old & {one.id for one in segments(broker, "deleted")}


def test_a_topic_that_is_not_remote_any_more_keeps_what_is_local(
    broker: Broker, client: Client
) -> None:
    client.create("disabled", configs=TIERED)
    fill(client, "disabled", 10)
    until(lambda: starts(broker, "disabled") == (0, 9))
    assert alter(client, "disabled", remote_storage_enable="false") != 0
    changes = {"remote_storage_enable": "false", "remote_log_delete_on_disable": "true"}
    assert alter(client, "disabled", **changes) == 0
    until(lambda: not objects(broker, "disabled"))
    assert starts(broker, "disabled") == (9, 9)
    assert read_all(client, "disabled", 9, 10) == [value(9)]
    # And remote again.
    enabled = {"remote_storage_enable": "true", "remote_log_delete_on_disable": "false"}
    assert alter(client, "disabled", **enabled) == 0
    fill(client, "disabled", 6)
    until(lambda: ends(broker, "disabled")[-1:] == [14])
    assert read_all(client, "disabled", 9, 16)[0] == value(9)


def test_a_deletion_that_its_leader_did_not_survive_is_completed(tmp_path: Path) -> None:
    """By the leader of the metadata partition, which has missed the topic for the grace."""
    settings = {**SETTINGS, "tiered.orphan.scan.grace.period.ms": "200"}
    first = Broker(settings, directory=tmp_path).start()
    try:
        with Client(first.bootstrap) as client:
            client.create("undead", configs=TIERED)
            client.create("alive", configs=TIERED)
            fill(client, "undead", 10)
            fill(client, "alive", 10)
            until(lambda: len(ends(first, "undead")) == len(ends(first, "alive")) == 3)
            faulty(first, Faults()).down = True
            client.delete("undead")
            until(lambda: first.node.image.topic("undead") is None)
    finally:
        first.kill()
    with Broker(settings, directory=tmp_path) as again:
        assert objects(again, "undead")
        until(lambda: not objects(again, "undead"))
        assert len(objects(again, "alive")) == 9


def test_the_next_leader_completes_what_disabling_began(tmp_path: Path) -> None:
    first = Broker(SETTINGS, directory=tmp_path).start()
    try:
        with Client(first.bootstrap) as client:
            client.create("halfway", configs=TIERED)
            fill(client, "halfway", 10)
            until(lambda: starts(first, "halfway") == (0, 9))
            faulty(first, Faults()).down = True
            changes = {"remote_storage_enable": "false", "remote_log_delete_on_disable": "true"}
            assert alter(client, "halfway", **changes) == 0
            until(lambda: tiered(first).counts.of("halfway").delete_errors)
    finally:
        first.kill()
    assert list(tmp_path.glob("tiered-objects/halfway-*/*/*"))
    with Broker(SETTINGS, directory=tmp_path) as again, Client(again.bootstrap) as client:
        until(lambda: not objects(again, "halfway"))
        assert starts(again, "halfway") == (9, 9)
        assert read_all(client, "halfway", 9, 10) == [value(9)]


# -- faults ----------------------------------------------------------------------------------------


def faulty(broker: Broker, faults: Faults) -> FaultyStore:
    storage = tiered(broker).storage
    store = FaultyStore(storage.store, random.Random(7), faults)
    storage.store = store
    storage._manifests._store = store
    return store


def test_a_store_that_fails_now_and_then_is_tried_again(own: Broker) -> None:
    store = faulty(own, Faults(before=0.15, unclear=0.1, after=0.1, throttled=0.05))
    with Client(own.bootstrap) as client:
        client.create("faulty", configs=TIERED)
        fill(client, "faulty", 31)
        until(lambda: starts(own, "faulty") == (0, 30))
        assert store.injected
        store.faults = Faults()
        until(lambda: not unfinished(own, "faulty"))
        until(lambda: len(objects(own, "faulty")) == 3 * len(ends(own, "faulty")))
        assert read_all(client, "faulty", 0, 31) == [value(number) for number in range(31)]


def test_acks_do_not_depend_on_the_store(own: Broker) -> None:
    """A store that hangs, then one that is away: producers and readers of the tail go on."""
    store = faulty(own, Faults(stall=1.0, stall_seconds=3600.0))
    with Client(own.bootstrap) as client:
        client.create("hanging", configs=TIERED)
        fill(client, "hanging", 20)
        assert read_all(client, "hanging", 0, 20) == [value(number) for number in range(20)]
        until(lambda: store.injected["stall"] > 0)
        assert starts(own, "hanging") == (0, 0)
        assert not ends(own, "hanging")
        fill(client, "hanging", 5)


def test_a_store_that_was_away_gets_everything(own: Broker) -> None:
    store = faulty(own, Faults())
    store.down = True
    with Client(own.bootstrap) as client:
        client.create("away", configs=TIERED)
        fill(client, "away", 20)
        until(lambda: tiered(own).counts.of("away").copy_errors > 0)
        assert starts(own, "away") == (0, 0)
        store.down = False
        until(lambda: starts(own, "away") == (0, 18))
        until(lambda: not unfinished(own, "away"))
        assert read_all(client, "away", 0, 20) == [value(number) for number in range(20)]


# -- leaders that have lost something --------------------------------------------------------------


def filled(directory: Path, topic: str) -> None:
    with Broker(SETTINGS, directory=directory) as first, Client(first.bootstrap) as client:
        client.create(topic, configs=TIERED)
        fill(client, topic, 20)
        until(lambda: starts(first, topic) == (0, 18))


def check_all_there(directory: Path, topic: str, end: int) -> None:
    with Broker(SETTINGS, directory=directory) as again, Client(again.bootstrap) as client:
        until(lambda: replica(again, topic).log.log_end_offset >= end)
        until(lambda: replica(again, topic).log.log_start_offset == 0)
        until(lambda: not replica(again, topic).held)
        assert read_all(client, topic, 0, end) == [value(number) for number in range(end)]
        before = len(ends(again, topic))
        fill(client, topic, 6)
        until(lambda: len(ends(again, topic)) > before)
        assert read_all(client, topic, 0, end) == [value(number) for number in range(end)]
        until(lambda: len(objects(again, topic)) == 3 * len(ends(again, topic)))


def test_a_restart_goes_on_where_it_was(tmp_path: Path) -> None:
    filled(tmp_path, "restarted")
    check_all_there(tmp_path, "restarted", 20)


def test_epochs_that_were_lost_come_from_a_remote_segment(tmp_path: Path) -> None:
    filled(tmp_path, "forgetful")
    (tmp_path / "forgetful-0" / LEADER_EPOCH_CHECKPOINT).unlink()
    check_all_there(tmp_path, "forgetful", 20)


def test_a_log_start_that_was_lost_comes_from_the_remote_log(tmp_path: Path) -> None:
    """Otherwise what is remote would expire: it would lie below the first local segment."""
    filled(tmp_path, "headless")
    (tmp_path / LOG_START_CHECKPOINT).unlink()
    check_all_there(tmp_path, "headless", 20)
    assert "headless 0 0" in (tmp_path / LOG_START_CHECKPOINT).read_text().splitlines()


def test_an_empty_leader_is_set_up_behind_what_was_copied(tmp_path: Path) -> None:
    filled(tmp_path, "wiped")
    shutil.rmtree(tmp_path / "wiped-0")
    starts_file = tmp_path / LOG_START_CHECKPOINT
    kept = [line for line in starts_file.read_text().splitlines()[2:] if "wiped" not in line]
    starts_file.write_text("\n".join(["0", str(len(kept)), *kept, ""]))
    check_all_there(tmp_path, "wiped", 18)
