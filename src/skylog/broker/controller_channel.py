"""The way to the controller: a call where it runs in this process."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from skylog.wire.messages.describe_quorum_request import DescribeQuorumRequest

if TYPE_CHECKING:
    from skylog.controller.shell import Controller
    from skylog.quorum.node import QuorumNode
    from skylog.wire.schema import Message


class ControllerChannel(Protocol):
    """Takes requests that only the controller may decide."""

    async def submit(self, request: Message, version: int) -> Any:
        """The controller's answer. A KafkaError that is ambiguous may have taken effect."""
        ...


class LocalController:
    """The controller of this process."""

    def __init__(self, controller: Controller, quorum: QuorumNode) -> None:
        self._controller = controller
        self._quorum = quorum

    def kraft_version(self) -> int:
        """The quorum's protocol version that its log has agreed on."""
        return self._quorum.kraft_version

    async def submit(self, request: Message, version: int) -> Any:
        if isinstance(request, DescribeQuorumRequest):
            return self._quorum.describe()
        # What was changed is published before it is answered: who changed it finds it changed.
        return await self._controller.submit(request, version)
