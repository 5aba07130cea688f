"""Segments that a job assembles, on a real broker: what is granted, checked, finished, cleaned."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from unittest import mock

import pytest

from skylog.broker.assembly.tiered import TieredStorage
from skylog.client.bulk.segments import GrantedRun, Run, SegmentRange, start_segments
from skylog.kernel.clock import SystemClock
from skylog.kernel.errors import ErrorCode, KafkaError
from skylog.testing import Broker
from skylog.tiered.segments import RemoteSegment, SegmentState, TopicIdPartition
from tests.consolidating import CONSOLIDATING, consolidating_broker
from tests.integration.broker_client import Client
from tests.integration.job_by_hand import JobByHand, new_id
from tests.integration.tiered_topics import (
    EARLIEST_LOCAL,
    LATEST_TIERED,
    alter,
    delete_records,
    fill,
    read_all,
    until_offset,
)
from tests.waiting import until

EXTERNAL = {**CONSOLIDATING, "diskless.tiering.assembler": "external"}


@pytest.fixture(scope="module")
def bucket(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("bucket")


@pytest.fixture(scope="module")
def broker(bucket: Path) -> Iterator[Broker]:
    with consolidating_broker(bucket) as running:
        yield running


@pytest.fixture
def client(broker: Broker) -> Iterator[Client]:
    with Client(broker.bootstrap) as connected:
        yield connected


@pytest.fixture
def job(broker: Broker, client: Client, request: pytest.FixtureRequest) -> JobByHand:
    """Of a topic of its own with 30 records, each in a batch."""
    topic = request.node.name.split("[")[0][-60:]
    if client.metadata(topic).topics[0].error_code:
        client.create(topic, configs=EXTERNAL)
        fill(client, topic, 0, 30)
    job = JobByHand(broker.bootstrap, topic)
    until(lambda: job.start().error is ErrorCode.NONE, "the leader is ready")
    return job


def tiered(broker: Broker) -> TieredStorage:
    found = broker.node._services.tiered
    assert found is not None
    return found


def listed(broker: Broker, job: JobByHand) -> list[RemoteSegment]:
    remote = tiered(broker).logs.get(TopicIdPartition(job.topic_id, job.index))
    return [] if remote is None else list(remote.all())


def finished(broker: Broker, job: JobByHand) -> list[tuple[int, int]]:
    return [
        (one.start_offset, one.end_offset)
        for one in listed(broker, job)
        if one.state is SegmentState.COPY_FINISHED
    ]


def objects(bucket: Path, job: JobByHand) -> list[Path]:
    folder = bucket / "tiered" / f"{job.topic}-{job.topic_id}"
    return [path for path in folder.rglob("*") if path.is_file()]


def until_cleaned(broker: Broker, bucket: Path, job: JobByHand) -> None:
    until(lambda: not listed(broker, job), "what was given up is cleaned")
    assert objects(bucket, job) == []


def test_a_job_takes_the_place_of_the_leader(
    broker: Broker, client: Client, job: JobByHand, bucket: Path
) -> None:
    asked = job.start()
    assert (asked.next_offset, asked.high_watermark) == (0, 30)
    granted = job.start((0, 9), (10, 24), epoch=asked.leader_epoch)
    assert (granted.error, granted.next_offset) == (ErrorCode.NONE, 25)
    assert [one.start_offset for one in granted.segments] == [0, 10]
    assert all(3_500_000 < one.lease_ms <= 3_600_000 for one in granted.segments)
    assert [one.state for one in listed(broker, job)] == [SegmentState.COPY_STARTED] * 2
    job.put(granted)
    assert finished(broker, job) == []  # until it says so
    assert job.finish(granted).error is ErrorCode.NONE
    assert finished(broker, job) == [(0, 9), (10, 24)]
    # What is finished is a tier like any other: the WAL is pruned, and all is read.
    until_offset(client, job.topic, EARLIEST_LOCAL, 25)
    until_offset(client, job.topic, LATEST_TIERED, 24)
    read_all(client, job.topic, 0, 30)
    assert job.start().next_offset == 25
    # The same again is harmless.
    assert job.finish(granted).error is ErrorCode.NONE
    assert finished(broker, job) == [(0, 9), (10, 24)]


def test_the_leader_assembles_nothing_and_counts_the_lag(
    broker: Broker, client: Client, job: JobByHand
) -> None:
    source = tiered(broker).consolidating.get(TopicIdPartition(job.topic_id, 0))
    assert source is not None
    assert source.assembled_end == 0
    until(lambda: source.lag.records == 30, "the lag is counted")
    assert source.lag.bytes > 0
    assert finished(broker, job) == []
    # Later on it may be the leader's again.
    granted = job.granted((0, 9))
    alter(client, job.topic, diskless_tiering_assembler="broker")
    until(lambda: finished(broker, job)[:1] == [(0, 4)], "the leader assembles")
    result = job.finish(granted)
    assert result.error is ErrorCode.INVALID_REQUEST
    assert "diskless.tiering.assembler is broker" in (result.message or "")
    assert job.start().error is ErrorCode.INVALID_REQUEST
    ids = {one.id for one in granted.segments}
    until(lambda: not ids & {one.id for one in listed(broker, job)}, "the grant is cleaned")
    read_all(client, job.topic, 0, 30)


@pytest.mark.parametrize(
    ("ranges", "code", "why"),
    [
        ([(1, 9)], ErrorCode.INVALID_REQUEST, "leaves a gap"),
        ([(0, 9), (9, 19)], ErrorCode.INVALID_REQUEST, "overlaps"),
        ([(0, 9), (11, 19)], ErrorCode.INVALID_REQUEST, "leaves a gap"),
        ([(0, -1)], ErrorCode.INVALID_REQUEST, "from 0 to -1"),
        ([(0, 30)], ErrorCode.OFFSET_OUT_OF_RANGE, "high watermark is 30"),
        ([(0, 2**62)], ErrorCode.OFFSET_OUT_OF_RANGE, "high watermark is 30"),
        ([(at, at) for at in range(30)] * 2, ErrorCode.INVALID_REQUEST, "at a time"),
    ],
)
def test_runs_that_are_refused(
    broker: Broker,
    job: JobByHand,
    ranges: list[tuple[int, int]],
    code: ErrorCode,
    why: str,
) -> None:
    answer = job.start(*ranges, epoch=job.start().leader_epoch)
    assert answer.error is code
    assert why in (answer.message or "")
    assert listed(broker, job) == []
    assert job.start().next_offset == 0


def test_epochs_topics_and_ids_that_are_refused(broker: Broker, job: JobByHand) -> None:
    epoch = job.start().leader_epoch
    assert job.start((0, 9), epoch=epoch + 1).error is ErrorCode.UNKNOWN_LEADER_EPOCH
    if epoch > 0:
        assert job.start((0, 9), epoch=epoch - 1).error is ErrorCode.FENCED_LEADER_EPOCH
    assert job.start((0, 9), topic_id=new_id()).error is ErrorCode.UNKNOWN_TOPIC_ID
    one = new_id()
    assert "one id" in (job.start((0, 9), (10, 19), epoch=epoch, ids=[one, one]).message or "")
    granted = job.granted((0, 9), ids=[one])
    again = job.start((0, 9), epoch=epoch, ids=[one])
    # The request whose answer was lost.
    assert [x.id for x in again.segments] == [one]
    assert again.segments[0].event_timestamp_ms == granted.segments[0].event_timestamp_ms
    other = job.start((10, 19), epoch=epoch, ids=[one])
    assert "in use" in (other.message or "")
    assert job.finish(granted, new_id()).error is ErrorCode.RESOURCE_NOT_FOUND
    assert job.finish(granted, epoch=epoch + 1).error is ErrorCode.UNKNOWN_LEADER_EPOCH
    many = job.finish(granted, *(new_id() for _ in range(33)))
    assert "33 segments of one partition" in (many.message or "")


def test_two_partitions_may_have_segments_of_one_id(
    broker: Broker, client: Client, caplog: pytest.LogCaptureFixture
) -> None:
    client.create("one-id", partitions=2, configs=EXTERNAL)
    one = new_id()
    jobs = [JobByHand(broker.bootstrap, "one-id", index) for index in (0, 1)]
    for each in jobs:
        assert client.produce("one-id", b"value", index=each.index).error_code == 0
    until(lambda: all(not each.start().error for each in jobs), "the leader is ready")
    runs = [Run(each.key, each.topic_id, -1, (SegmentRange(one, 0, 0),)) for each in jobs]
    job = jobs[0]

    async def ask() -> list[GrantedRun]:
        return await start_segments(await job.cluster.cluster(), job.id, runs)

    for answer in job.cluster.run(ask()):
        assert answer.error is ErrorCode.NONE, answer
        assert [granted.id for granted in answer.segments] == [one]
    assert [record for record in caplog.records if record.name == "asyncio"] == []


def test_only_consolidating_diskless_topics_are_assembled(
    broker: Broker, client: Client, job: JobByHand
) -> None:
    client.create("external-classic", configs={"diskless.enable": "false"})
    client.create(
        "external-without",
        configs={"diskless.enable": "true", "remote.storage.enable": "false"},
    )
    for topic, why in (("external-classic", "not diskless"), ("external-without", "no remote")):
        answer = JobByHand(broker.bootstrap, topic).start()
        assert answer.error is ErrorCode.INVALID_REQUEST
        assert why in (answer.message or "")
    alter(client, job.topic, remote_log_copy_disable="true")
    until(lambda: "copy.disable" in (job.start().message or ""))


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-1])


def flip(path: Path, at: int) -> None:
    data = bytearray(path.read_bytes())
    data[at] ^= 0x55
    path.write_bytes(data)


@pytest.mark.parametrize(
    ("spoil", "why"),
    [
        (lambda files: files["manifest"].unlink(), "was not put"),
        (lambda files: files["log"].unlink(), "was not put"),
        (lambda files: files["indexes"].unlink(), "was not put"),
        (lambda files: cut(files["log"]), "bytes instead of"),
        (lambda files: cut(files["indexes"]), "bytes instead of"),
        (lambda files: cut(files["manifest"]), "not JSON"),
        (lambda files: files["manifest"].write_bytes(b"{}"), "manifest of version"),
        (lambda files: flip(files["log"], 70), "other records"),
        (lambda files: flip(files["log"], -1), "other records"),
        (lambda files: flip(files["indexes"], -1), "leader epochs"),
        (lambda files: flip(files["indexes"], 3), "index of segment"),
    ],
)
def test_what_is_not_the_segment_is_given_up(
    broker: Broker, bucket: Path, job: JobByHand, spoil: object, why: str
) -> None:
    granted = job.granted((0, 9), (10, 19))
    job.put(granted)
    first, _ = job.files(granted, bucket / "tiered")
    assert callable(spoil)
    spoil(first)
    result = job.finish(granted)
    assert result.error is ErrorCode.INVALID_RECORD
    assert why in (result.message or "")
    assert finished(broker, job) == []
    until_cleaned(broker, bucket, job)
    # The run begins again, with other ids.
    assert job.start().next_offset == 0


def test_a_manifest_of_another_segment_is_refused(
    broker: Broker, bucket: Path, job: JobByHand
) -> None:
    granted = job.granted((0, 9))
    job.put(granted)
    manifest = job.files(granted, bucket / "tiered")[0]["manifest"]
    text = json.loads(manifest.read_text())
    text["remoteLogSegmentMetadata"]["maxTimestampMs"] += 1
    manifest.write_text(json.dumps(text, separators=(",", ":")))
    result = job.finish(granted)
    assert "is not the manifest of this segment" in (result.message or "")
    until_cleaned(broker, bucket, job)


def test_segments_are_finished_in_order_and_by_their_job(broker: Broker, job: JobByHand) -> None:
    granted = job.granted((0, 9), (10, 19))
    job.put(granted)
    first, second = (one.id for one in granted.segments)
    result = job.finish(granted, second)
    assert result.error is ErrorCode.INVALID_REQUEST
    assert "to be finished first" in (result.message or "")
    stranger = JobByHand(job.bootstrap, job.topic)
    assert stranger.finish(granted).error is ErrorCode.RESOURCE_NOT_FOUND
    assert stranger.finish(granted, give_up=True).error is ErrorCode.NONE
    assert finished(broker, job) == []
    assert job.finish(granted, first, second).error is ErrorCode.NONE
    assert finished(broker, job) == [(0, 9), (10, 19)]


def test_two_jobs_at_once(broker: Broker, bucket: Path, job: JobByHand) -> None:
    granted = job.granted((0, 9), (10, 19))
    job.put(granted)
    second = JobByHand(job.bootstrap, job.topic)
    answer = second.start()
    assert answer.error is ErrorCode.INVALID_REQUEST
    assert "another job assembles offsets 0 to 19" in (answer.message or "")
    answer = second.start(take_over=True)
    assert (answer.error, answer.next_offset) == (ErrorCode.NONE, 0)
    result = job.finish(granted)
    assert result.error is ErrorCode.RESOURCE_NOT_FOUND
    assert "another job has taken over" in (result.message or "")
    mine = second.granted((0, 14))
    second.put(mine)
    assert second.finish(mine).error is ErrorCode.NONE
    assert finished(broker, job) == [(0, 14)]
    until(lambda: len(listed(broker, job)) == 1, "the other's segments are cleaned")
    assert len(objects(bucket, job)) == 3


def test_a_job_that_gives_up_leaves_nothing(broker: Broker, bucket: Path, job: JobByHand) -> None:
    granted = job.granted((0, 9), (10, 19))
    job.put(granted)
    assert job.finish(granted, give_up=True).error is ErrorCode.NONE
    until_cleaned(broker, bucket, job)
    assert job.finish(granted).error is ErrorCode.RESOURCE_NOT_FOUND


def test_a_lease_that_ends_is_a_failed_copy(broker: Broker, bucket: Path, job: JobByHand) -> None:
    granted = job.granted((0, 9))
    job.put(granted)
    real = SystemClock.monotonic
    assert listed(broker, job) != []  # nothing is cleaned while it is granted
    with mock.patch.object(SystemClock, "monotonic", lambda self: real(self) + 3601):
        assert job.start().next_offset == 0
        result = job.finish(granted)
    assert result.error is ErrorCode.RESOURCE_NOT_FOUND
    assert "its lease has ended" in (result.message or "")
    until_cleaned(broker, bucket, job)


def test_records_that_are_deleted_meanwhile(broker: Broker, client: Client, job: JobByHand) -> None:
    granted = job.granted((0, 9), (10, 19))
    job.put(granted)
    # All of the first segment, and a part of the second.
    delete_records(client, job.topic, 14)
    result = job.finish(granted)
    assert "finished or deleted already" in (result.message or "")
    rest = job.finish(granted, granted.segments[1].id)
    assert rest.error is ErrorCode.NONE, rest
    assert (10, 19) in finished(broker, job)
    assert job.start().next_offset == 20
    read_all(client, job.topic, 14, 30)


def test_a_run_may_begin_within_a_batch(broker: Broker, client: Client, job: JobByHand) -> None:
    values = [b"%06d" % number for number in range(30, 40)]
    assert client.produce(job.topic, *values).error_code == 0
    delete_records(client, job.topic, 35)
    asked = job.start()
    assert (asked.next_offset, asked.high_watermark) == (35, 40)
    answer = job.start((35, 38), epoch=asked.leader_epoch)
    assert "within the batch that ends at 39" in (answer.message or "")
    granted = job.granted((35, 39))
    assert granted.segments[0].start_offset == 30
    job.put(granted)
    assert job.finish(granted).error is ErrorCode.NONE
    assert finished(broker, job) == [(30, 39)]
    read_all(client, job.topic, 35, 40)


def test_a_broker_without_tiered_storage_refuses() -> None:
    with Broker() as plain, Client(plain.bootstrap) as client:
        client.create("plain", configs={"diskless.enable": "true"})
        with pytest.raises(KafkaError, match=r"storage\.system\.enable is false"):
            JobByHand(plain.bootstrap, "plain").start()


def test_a_job_that_was_killed_does_not_keep_the_topic(
    broker: Broker, bucket: Path, client: Client, job: JobByHand
) -> None:
    job.put(job.granted((0, 9)))
    # Nothing is heard of it any more. The next one takes over.
    following = JobByHand(job.bootstrap, job.topic)
    assert following.start(take_over=True).next_offset == 0
    granted = following.granted((0, 29))
    following.put(granted)
    assert following.finish(granted).error is ErrorCode.NONE
    until(lambda: len(listed(broker, job)) == 1)
    read_all(client, job.topic, 0, 30)
