"""Calls to the brokers that lead coordinators; no call waits for a broker that no longer leads.

Errors follow the control plane's contract: a request that could not be sent is
COORDINATOR_NOT_AVAILABLE; a change that may have been made is REQUEST_TIMED_OUT, of unknown
outcome, and the caller repeats it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from skylog.kernel.errors import ErrorCode, KafkaError
from skylog.kernel.waiting import end_tasks
from skylog.wire.schema import Message

# None or negative: it has no leader now.
LeaderOf = Callable[[int], int | None]


class Peers(Protocol):
    """Sends requests to other brokers; implemented by ``broker.net.peers.BrokerPeers``."""

    async def send(
        self,
        node_id: int,
        request: Message,
        version: int | None = None,
        *,
        lane: str = "",
        timeout_ms: int | None = None,
    ) -> Any:
        """A KafkaError that is not ambiguous means that nothing was sent."""
        ...


@dataclass(frozen=True, slots=True, eq=False)
class _UnderWay:
    node_id: int
    coordinator_ids: Sequence[int]
    deposed: asyncio.Future[None]


class CoordinatorCalls:
    """All calls come from the event loop."""

    def __init__(self, peers: Peers, leader_of: LeaderOf) -> None:
        self._peers = peers
        self._leader_of = leader_of
        self._under_way: set[_UnderWay] = set()
        self._sent: set[asyncio.Task[Any]] = set()

    async def send(
        self,
        node_id: int,
        coordinator_ids: Sequence[int],
        request: Message,
        *,
        lane: str,
        timeout_ms: int,
        changes: bool = False,
    ) -> Any:
        """Ask a broker about coordinators that it leads. ``changes``: the request may have
        effects."""
        loop = asyncio.get_running_loop()
        call = _UnderWay(node_id, coordinator_ids, loop.create_future())
        sent = loop.create_task(
            self._peers.send(node_id, request, lane=lane, timeout_ms=timeout_ms)
        )
        self._sent.add(sent)
        sent.add_done_callback(self._forget)
        self._under_way.add(call)
        try:
            await asyncio.wait({sent, call.deposed}, return_when=asyncio.FIRST_COMPLETED)
        except asyncio.CancelledError:
            sent.cancel()
            raise
        finally:
            self._under_way.discard(call)
            call.deposed.cancel()
        if not sent.done():
            raise _not_answered(f"broker {node_id} no longer leads", changes)
        try:
            return sent.result()
        except KafkaError as error:
            raise _not_answered(str(error), changes and error.ambiguous) from error

    def leaders_changed(self) -> None:
        """Calls to a deposed broker fail now instead of at their timeout."""
        for call in self._under_way:
            led = all(
                self._leader_of(coordinator_id) == call.node_id
                for coordinator_id in call.coordinator_ids
            )
            if not led and not call.deposed.done():
                call.deposed.set_result(None)

    async def close(self) -> None:
        await end_tasks(self._sent)

    def _forget(self, task: asyncio.Task[Any]) -> None:
        self._sent.discard(task)
        if not task.cancelled():
            task.exception()  # its caller may no longer wait for it


def _not_answered(why: str, unknown: bool) -> KafkaError:
    if unknown:
        return KafkaError(ErrorCode.REQUEST_TIMED_OUT, why, ambiguous=True)
    return KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE, why)
