"""Three brokers with tiered topics, and what tests ask of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from skylog.kernel.errors import ErrorCode
from skylog.testing.cluster import Cluster, ClusterNode
from skylog.tiered.segments import SegmentState, TopicIdPartition
from skylog.wire.batch import split_batches
from skylog.wire.messages.fetch_request import FetchPartition, FetchRequest, FetchTopic
from tests.integration.broker_client import values
from tests.integration.racks_cluster import ZoneClient
from tests.integration.replicated_cluster import CALM, create, led, produce, replica, settled
from tests.waiting import until

# Kafka's own tests make small segments like this: indexes are full after a few batches.
SMALL = {
    "remote_storage_enable": "true",
    "segment_index_bytes": "48",
    "index_interval_bytes": "1",
    "local_retention_bytes": "1",
    # The records of these tests are from 2023.
    "retention_ms": "-1",
    "local_retention_ms": "-2",
    "file_delete_delay_ms": "0",
}
TIERED: Mapping[str, str] = {
    **CALM,
    "remote.log.storage.system.enable": "true",
    "remote.log.manager.task.interval.ms": "200",
    "log.retention.check.interval.ms": "100",
    "rlmm.config.remote.log.metadata.topic.num.partitions": "3",
    "rlmm.config.remote.log.metadata.topic.replication.factor": "3",
    "rlmm.config.remote.log.metadata.topic.min.isr": "2",
}
# Errors of a fetch while leaders move or the metadata topic is read.
PASSING = frozenset(
    {
        ErrorCode.NONE,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.UNKNOWN_LEADER_EPOCH,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.REPLICA_NOT_AVAILABLE,
        ErrorCode.OFFSET_NOT_AVAILABLE,
    }
)


def create_tiered(cluster: Cluster, name: str, **more: Any) -> None:
    create(cluster, name, **{**SMALL, **more})


def filled(cluster: Cluster, topic: str, first: int, count: int) -> list[bytes]:
    """Produce so many batches of one record each; returns their values."""
    written = [b"value-%06d" % number for number in range(first, first + count)]
    produce(cluster, topic, written)
    return written


def local_start(broker: ClusterNode, topic: str) -> int:
    found = replica(broker, topic)
    return -1 if found is None else found.log.local_log_start_offset


def moved(cluster: Cluster, topic: str, offset: int = 1) -> None:
    """Wait until the leader has dropped its local records below ``offset``."""
    until(lambda: local_start(led(cluster, topic), topic) >= offset, f"{topic} moves to the store")


def remote_segments(broker: ClusterNode, topic: str, index: int = 0) -> list[Any]:
    """The finished remote segments, as a broker knows them."""
    found = replica(broker, topic, index)
    tiered = broker.node._services.tiered
    assert found is not None and tiered is not None
    remote = tiered.logs.get(TopicIdPartition(found.topic_id, index))
    if remote is None:
        return []
    return [one for one in remote.all() if one.state is SegmentState.COPY_FINISHED]


def fetch_once(
    broker: ClusterNode, topic: str, offset: int, *, rack: str = "", wait_ms: int = 500
) -> Any:
    """One fetch at one broker, in its own leader epoch."""
    found = replica(broker, topic)
    assert found is not None
    asked = FetchPartition(0, fetch_offset=offset, partition_max_bytes=1 << 20)
    request = FetchRequest(
        max_wait_ms=wait_ms,
        min_bytes=1,
        max_bytes=1 << 20,
        topics=[FetchTopic("", found.topic_id, [asked])],
        rack_id=rack,
    )
    with ZoneClient(broker.bootstrap) as client:
        return client.ask(request).responses[0].partitions[0]


def read_from(broker: ClusterNode, topic: str, start: int, end: int, **more: Any) -> list[bytes]:
    """All values of [start, end) at one broker; what comes back must not have gaps."""
    offset, found = start, []

    def done() -> bool:
        nonlocal offset
        answer = fetch_once(broker, topic, offset, **more)
        if answer.error_code not in PASSING:
            raise AssertionError(
                f"{ErrorCode(answer.error_code).name} at {offset} of broker {broker.node_id}: "
                f"{answer}, {told(broker, topic)}"
            )
        for one in split_batches(answer.records or b""):
            if one.last_offset < offset:
                continue
            assert one.base_offset <= offset, f"a gap from {offset} to {one.base_offset}"
            offset = one.next_offset
            found.extend(values(one.buffer))
        return offset >= end

    until(done, f"{topic} is read up to {end}")
    return found


def told(broker: ClusterNode, topic: str) -> str:
    """A replica and its remote log, for messages."""
    found = replica(broker, topic)
    assert found is not None
    log = found.log
    offsets = log.log_start_offset, log.local_log_start_offset, log.log_end_offset
    remote = [(one.start_offset, one.end_offset) for one in remote_segments(broker, topic)]
    return f"log {offsets}, epochs {list(log.companions.epochs)}, remote {sorted(remote)}"


def same_everywhere(cluster: Cluster, topic: str, written: list[bytes]) -> None:
    """Each replica, asked as a consumer may ask it, has everything."""
    settled(cluster, topic)
    for broker in cluster.brokers:
        if broker.running and replica(broker, topic) is not None:
            read = read_from(broker, topic, 0, len(written))
            assert read == written, f"broker {broker.node_id} differs"
