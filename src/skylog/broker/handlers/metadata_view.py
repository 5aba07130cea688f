"""Topics as Metadata shows them to one client: diskless partitions depend on its zone."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from skylog.broker.net.context import RequestContext
from skylog.controller.image import ClusterImage
from skylog.controller.image.brokers import Node
from skylog.controller.image.topics import Partition, Topic
from skylog.kernel.errors import ErrorCode
from skylog.kernel.topics import is_internal
from skylog.wire.messages.metadata_response import (
    MetadataResponsePartition,
    MetadataResponseTopic,
)


class ClientView:
    """The view of one request, limited to the brokers that its listener reaches."""

    def __init__(self, context: RequestContext, alive: Iterable[Node]) -> None:
        self._context = context
        self._image = context.services.image
        self._router = context.services.router
        self._racks = {node.id: node.rack for node in alive}
        self._zone = self._router.zone(context.client_id, context.listener)

    def topic(self, topic: Topic) -> MetadataResponseTopic:
        return MetadataResponseTopic(
            0,
            topic.name,
            topic.topic_id,
            is_internal(topic.name),
            [self._partition(topic, index) for index in sorted(topic.partitions)],
        )

    def _partition(self, topic: Topic, index: int) -> MetadataResponsePartition:
        state, version = topic.partitions[index], self._context.version
        answer = self._routed(topic, index, state)
        if answer is None:
            answer = partition_as_it_is(self._image, index, state, self._racks, version)
        return _without_the_dead(answer, self._racks) if version == 0 else answer

    def _routed(
        self, topic: Topic, index: int, state: Partition
    ) -> MetadataResponsePartition | None:
        """The epoch is unchanged, so that no client takes this for an election."""
        located = self._router.located(topic, index, self._zone, self._racks)
        if located is None:
            return None
        gateways = self._router.produce_gateways(state.diskless_coordinator, self._zone)
        return MetadataResponsePartition(
            0,
            index,
            located.leader,
            state.leader_epoch,
            list(located.replicas),
            list(located.isr),
            list(located.offline),
            [broker for broker in gateways if broker in self._racks],
        )


def partition_as_it_is(
    image: ClusterImage, index: int, state: Partition, alive: Collection[int], version: int
) -> MetadataResponsePartition:
    """A partition as the controller has it."""
    leader, code = state.leader, 0
    if leader not in alive:
        code, leader = _leaderless(image, leader, version), -1
    offline = [node for node in state.replicas if node not in alive]
    return MetadataResponsePartition(
        code, index, leader, state.leader_epoch, list(state.replicas), list(state.isr), offline
    )


def _without_the_dead(
    answer: MetadataResponsePartition, alive: Collection[int]
) -> MetadataResponsePartition:
    """The first version omits nodes that are down, and reports an error."""
    if not answer.error_code and answer.offline_replicas:
        answer.error_code = ErrorCode.REPLICA_NOT_AVAILABLE
    answer.replica_nodes = [node for node in answer.replica_nodes if node in alive]
    answer.isr_nodes = [node for node in answer.isr_nodes if node in alive]
    return answer


def _leaderless(image: ClusterImage, leader: int, version: int) -> ErrorCode:
    """Why no leader can be shown: there is none, or it lacks the requested listener."""
    if version >= 6 and leader >= 0 and image.is_alive(leader):
        return ErrorCode.LISTENER_NOT_FOUND
    return ErrorCode.LEADER_NOT_AVAILABLE
