"""Jobs that assemble segments while leaders move, and while leaders assemble, too."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from skylog.kernel.errors import ErrorCode, KafkaError
from skylog.testing.cluster import Cluster
from skylog.wire.messages.incremental_alter_configs_request import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from tests.integration.consolidation_support import (
    CONSOLIDATING,
    SETTINGS,
    fill,
    read_all,
    segments,
    tiered_of,
)
from tests.integration.job_by_hand import JobByHand
from tests.integration.racks_cluster import CALM, ZoneClient, ask, create, racks_cluster
from tests.integration.test_consolidation_leaders import leader_of, move
from tests.waiting import until

EXTERNAL = {**CONSOLIDATING, "diskless.tiering.assembler": "external"}
LATE = (
    ErrorCode.FENCED_LEADER_EPOCH,
    ErrorCode.RESOURCE_NOT_FOUND,
    ErrorCode.NOT_LEADER_OR_FOLLOWER,
)


@pytest.fixture(scope="module")
def bucket(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("bucket")


@pytest.fixture(scope="module")
def cluster(bucket: Path) -> Iterator[Cluster]:
    settings = {
        **SETTINGS,
        **CALM,
        "rlmm.config.remote.log.metadata.topic.replication.factor": "3",
        "diskless.storage.url": bucket.as_uri(),
    }
    with racks_cluster(3, settings=settings) as running:
        yield running


def started(cluster: Cluster, topic: str, records: int) -> JobByHand:
    given = {name.replace(".", "_"): text for name, text in EXTERNAL.items()}
    assert create(cluster, topic, **given).error_code == 0
    with ZoneClient(cluster.brokers[0].bootstrap) as client:
        fill(client, topic, 0, records)
    job = JobByHand(cluster.bootstrap, topic)
    until(lambda: job.start().error is ErrorCode.NONE, "the leader is ready")
    return job


def set_assembler(cluster: Cluster, topic: str, who: str) -> None:
    change = AlterableConfig("diskless.tiering.assembler", 0, who)
    answer = ask(
        cluster, IncrementalAlterConfigsRequest([AlterConfigsResource(2, topic, [change])])
    )
    assert answer.responses[0].error_code == 0, answer


def objects(bucket: Path, job: JobByHand) -> set[str]:
    """The ids of segments that have objects."""
    folder = bucket / "tiered" / f"{job.topic}-{job.topic_id}"
    return {path.name.split(".")[0][21:] for path in folder.rglob("*") if path.is_file()}


def test_a_leader_that_changes_loses_what_it_granted(cluster: Cluster, bucket: Path) -> None:
    job = started(cluster, "changed", 30)
    first = leader_of(cluster, "changed")
    granted = job.granted((0, 9), (10, 19))
    job.put(granted)
    assert job.finish(granted, granted.segments[0].id).error is ErrorCode.NONE
    second = next(one for one in cluster.brokers if one is not first)
    move(cluster, "changed", second)
    assert job.finish(granted, granted.segments[1].id).error in LATE
    assert job.start((10, 19), epoch=granted.leader_epoch).error is ErrorCode.FENCED_LEADER_EPOCH
    # What was finished counts; the rest is asked for again, and the old one's is cleaned.
    until(lambda: job.start().next_offset == 10, "the new leader knows")
    again = job.granted((10, 29))
    assert again.leader_epoch > granted.leader_epoch
    job.put(again)
    assert job.finish(again).error is ErrorCode.NONE
    # The first one leads again: it has forgotten what it granted then.
    move(cluster, "changed", first)
    assert job.finish(granted, epoch=granted.leader_epoch).error in LATE
    until(lambda: job.start().next_offset == 30, "all of it is covered")
    with ZoneClient(cluster.brokers[2].bootstrap) as client:
        read_all(client, "changed", 0, 30)
    found = segments(first, "changed")
    assert [(one.start_offset, one.end_offset) for one in found] == [(0, 9), (10, 29)]
    until(lambda: objects(bucket, job) == {str(one.id) for one in found}, "the rest is cleaned")


def test_a_job_and_leaders_at_the_same_time(cluster: Cluster, bucket: Path) -> None:
    """The setting goes to and fro while both work: every offset is in one segment."""
    job = started(cluster, "both", 20)
    stop = threading.Event()

    def switch() -> None:
        for turn in range(12):
            set_assembler(cluster, "both", ("broker", "external")[turn % 2])
            if turn == 5:
                move(cluster, "both", cluster.brokers[1])
            stop.wait(0.15)
        stop.set()

    switching = threading.Thread(target=switch)
    switching.start()
    end = 20
    with ZoneClient(cluster.brokers[0].bootstrap) as client:
        while not stop.is_set():
            fill(client, "both", end, end + 7)
            end += 7
            _try(job)
    switching.join()
    set_assembler(cluster, "both", "external")
    until(lambda: _finish_all(job, end), "all of it is covered")
    leader = leader_of(cluster, "both")
    found = sorted(segments(leader, "both"), key=lambda one: one.start_offset)
    position = 0
    for one in found:
        assert one.start_offset == position, [(x.start_offset, x.end_offset) for x in found]
        position = one.end_offset + 1
    assert position == end
    remote = tiered_of(leader).logs.get(found[0].partition)
    assert remote is not None
    until(lambda: len(list(remote.all())) == len(found), "nothing is left half done")
    # The job may have put objects of what was taken back from it: the scan for orphans finds them.
    assert objects(bucket, job) >= {str(one.id) for one in found}
    with ZoneClient(cluster.brokers[2].bootstrap) as client:
        read_all(client, "both", 0, end)


def _try(job: JobByHand) -> None:
    """One round of a job; whatever is refused is left for later."""
    with suppress(KafkaError):
        asked = job.start()
        if asked.error or asked.high_watermark <= asked.next_offset:
            return
        granted = job.start((asked.next_offset, asked.high_watermark - 1), epoch=asked.leader_epoch)
        if not granted.error:
            job.put(granted)
            job.finish(granted)


def _finish_all(job: JobByHand, end: int) -> bool:
    _try(job)
    return job.start().next_offset == end
