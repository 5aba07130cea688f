"""What a node may ask of the controller; and the controller of this process."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from skylog.kernel.errors import ErrorCode
from skylog.kernel.ids import ZERO_UUID
from skylog.kernel.topics import CLUSTER_METADATA
from skylog.wire.messages.add_raft_voter_request import AddRaftVoterRequest
from skylog.wire.messages.describe_quorum_request import DescribeQuorumRequest
from skylog.wire.messages.describe_quorum_response import (
    DescribeQuorumResponse,
    PartitionData,
    TopicData,
)
from skylog.wire.messages.remove_raft_voter_request import RemoveRaftVoterRequest

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from skylog.broker.net.context import RequestContext
    from skylog.controller.shell import Controller
    from skylog.quorum.node import QuorumNode
    from skylog.wire.schema import Message

FIRST_WITH_DIRECTORIES = 2


class ControllerChannel(Protocol):
    """Takes requests that only the active controller may decide, wherever it is."""

    @property
    def is_here(self) -> bool:
        """Whether this process has the active controller."""
        ...

    async def submit(self, request: Message, version: int) -> Any:
        """The controller's answer to a request of this node itself.

        If the KafkaError is ambiguous, the request may have taken effect.
        """
        ...

    async def decide(self, request: Message, version: int) -> Any:
        """This node's own answer: NOT_CONTROLLER unless it is the active controller."""
        ...

    async def pass_on(self, context: RequestContext, request: Message, version: int) -> Any:
        """The controller's answer to a client's request of which this node has done its part."""
        ...

    async def forward(
        self, context: RequestContext, frame: bytes, here: Callable[[], Awaitable[Any]]
    ) -> Any:
        """The controller's response to a client's raw request; ``here`` answers it if this node
        becomes the active controller meanwhile."""
        ...


class LocalController:
    """The controller of this process."""

    def __init__(self, controller: Controller, quorum: QuorumNode) -> None:
        self._controller = controller
        self._quorum = quorum

    async def decide(self, request: Message, version: int) -> Any:
        """The answer of this node: NOT_CONTROLLER unless it leads."""
        if isinstance(request, DescribeQuorumRequest):
            return self._describe_quorum(request, version)
        if isinstance(request, AddRaftVoterRequest | RemoveRaftVoterRequest):
            return await self._quorum.serve(request, version)
        # Changes are published before they are answered, so that the client sees its own change.
        return await self._controller.submit(request, version)

    def _describe_quorum(
        self, request: DescribeQuorumRequest, version: int
    ) -> DescribeQuorumResponse:
        asked = [(t.topic_name, p.partition_index) for t in request.topics for p in t.partitions]
        if asked != [(CLUSTER_METADATA, 0)]:
            return _no_quorum(request)
        response = self._quorum.describe()
        if version < FIRST_WITH_DIRECTORIES:
            response.nodes = []
            for partition in response.topics[0].partitions:
                for replica in (*partition.current_voters, *partition.observers):
                    replica.replica_directory_id = ZERO_UUID
        return response


def _no_quorum(request: DescribeQuorumRequest) -> DescribeQuorumResponse:
    code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    return DescribeQuorumResponse(
        topics=[
            TopicData(
                topic.topic_name,
                [PartitionData(p.partition_index, code, code.name) for p in topic.partitions],
            )
            for topic in request.topics
        ]
    )
