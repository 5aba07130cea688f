"""Clusters with racks, and requests to their single brokers."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any
from urllib.request import urlopen

from skylog.kernel.clock import SystemClock
from skylog.kernel.ids import ZERO_UUID
from skylog.kernel.logging import hub
from skylog.testing.cluster import Cluster
from skylog.wire.messages.alter_partition_reassignments_request import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from skylog.wire.messages.create_topics_request import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from skylog.wire.messages.describe_topic_partitions_request import (
    DescribeTopicPartitionsRequest,
    TopicRequest,
)
from skylog.wire.messages.incremental_alter_configs_request import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from skylog.wire.messages.metadata_request import MetadataRequest, MetadataRequestTopic
from skylog.wire.schema import Message
from tests.integration.broker_client import Client
from tests.integration.wire_client import frame, newest, request_bytes
from tests.waiting import until

SECONDS_MAX = 90.0
BROKER = 4
# Offline brokers are detected and repaired while a test waits.
QUICK = {
    "http.listener": "127.0.0.1:0",
    "diskless.metadata.topic.num.partitions": "3",
    "diskless.metadata.topic.min.isr": "1",
    "diskless.produce.commit.interval.ms": "20",
    "diskless.reassignment.grace.ms": "200",
    "diskless.reassignment.settle.ms": "200",
    "diskless.reassignment.interval.ms": "50",
    "diskless.reassignment.scan.interval.ms": "1000",
    "offsets.topic.num.partitions": "3",
}
# No broker fails here: a busy machine must not end a session.
CALM = {"broker.session.timeout.ms": "60000", "diskless.reassignment.grace.ms": "600000"}


@contextmanager
def racks_cluster(
    brokers: int = 6,
    racks: tuple[str, ...] = ("a", "b", "c"),
    controllers: int = 1,
    settings: Mapping[str, str] | None = None,
) -> Iterator[Cluster]:
    """Brokers are assigned to racks in turn; one store for all."""
    cluster = Cluster(brokers, controllers, racks, {**QUICK, **(settings or {})})
    with cluster:
        yield cluster


class ZoneClient(Client):
    """A connection to one broker with the given client id."""

    def __init__(self, address: str, client_id: str = "wire") -> None:
        super().__init__(address, seconds_max=SECONDS_MAX)
        self._client_id = client_id

    def ask(self, request: Message, version: int | None = None) -> Any:
        version = newest(type(request)) if version is None else version
        self._correlation_id += 1
        data = request_bytes(request, version, self._correlation_id, self._client_id)
        self.send(frame(data))
        return self.answer(request.API_KEY, version, self._correlation_id)

    def seen(self, topic: str, index: int = 0) -> Any:
        """A partition as Metadata shows it to this client."""
        request = MetadataRequest([MetadataRequestTopic(ZERO_UUID, topic)], False)
        (found,) = self.ask(request).topics
        assert found.error_code == 0, found
        return next(each for each in found.partitions if each.partition_index == index)


def living(cluster: Cluster) -> str:
    """The address of a running broker."""
    return next(broker.bootstrap for broker in cluster.brokers if broker.running)


def ask(cluster: Cluster, request: Message) -> Any:
    with ZoneClient(living(cluster)) as client:
        return client.ask(request)


def create(
    cluster: Cluster, name: str, partitions: int = 1, factor: int = -1, **configs: str
) -> Any:
    """Create a diskless topic; returns the response."""
    given = {"diskless.enable": "true", **{k.replace("_", "."): v for k, v in configs.items()}}
    wanted = CreatableTopic(
        name,
        partitions,
        factor,
        configs=[CreatableTopicConfig(key, value) for key, value in given.items()],
    )
    request = CreateTopicsRequest(topics=[wanted], timeout_ms=30_000)
    answer = ask(cluster, request).topics[0]
    if answer.error_code == 0:
        for broker in cluster.brokers:
            if broker.running:
                until(lambda node=broker: node.node.has_topic(name), "every broker knows it")
    return answer


def described(cluster: Cluster, topic: str) -> list[Any]:
    """The partitions of a topic, not adapted to a zone."""
    request = DescribeTopicPartitionsRequest([TopicRequest(topic)], 2_000)
    (found,) = ask(cluster, request).topics
    assert found.error_code == 0, found
    return list(found.partitions)


def replicas_of(cluster: Cluster, topic: str) -> list[list[int]]:
    return [list(partition.replica_nodes) for partition in described(cluster, topic)]


def reassign(cluster: Cluster, topic: str, replicas: list[int], index: int = 0) -> Any:
    request = AlterPartitionReassignmentsRequest(
        topics=[ReassignableTopic(topic, [ReassignablePartition(index, replicas)])]
    )
    return ask(cluster, request).responses[0].partitions[0]


def set_for_all(cluster: Cluster, **settings: str) -> None:
    """Dynamic settings of the cluster; dots are underscores."""
    changes = [AlterableConfig(k.replace("_", "."), 0, v) for k, v in settings.items()]
    request = IncrementalAlterConfigsRequest([AlterConfigsResource(BROKER, "", changes)])
    (answer,) = ask(cluster, request).responses
    assert answer.error_code == 0, answer


def shown_everywhere(cluster: Cluster) -> None:
    """Wait until every broker shows the current metadata."""
    decided: list[int] = []

    def found() -> bool:
        active = cluster.active_controller
        decided.extend([] if active is None else [active.node._part.quorum.high_watermark])
        return bool(decided)

    until(found, "somebody leads")
    for broker in cluster.brokers:
        quorum = broker.node._part.quorum if broker.running else None
        if quorum is not None:
            until(lambda q=quorum: q.high_watermark >= decided[0], "every broker shows it")


def metrics(cluster: Cluster) -> dict[str, float]:
    """The active controller's /metrics, by name and labels."""
    active = cluster.active_controller
    if active is None:
        return {}
    return metrics_of(active)


def metrics_of(node: Any) -> dict[str, float]:
    with urlopen(f"http://{node.node.http_address}/metrics") as page:
        lines = page.read().decode().splitlines()
    found = (line.rpartition(" ") for line in lines if not line.startswith("#"))
    return {name: float(value) for name, _, value in found}


@contextmanager
def logged() -> Iterator[Callable[[], str]]:
    """The log lines of all nodes."""
    stream = io.StringIO()
    hub().direct(stream, as_json=False, clock=SystemClock())
    try:
        yield stream.getvalue
    finally:
        hub().direct(None, as_json=False, clock=SystemClock())
