"""Carries out decisions: sends markers to the leader of each partition, retrying for ever.

A decision that is in the log must be carried out, whatever happens. So nothing here gives up: a
leader that cannot be reached, or cannot write, is retried, and a partition whose topic has been
deleted needs no marker. Decisions that wait for one node are sent in one request.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any, Final, Protocol

from skylog.kernel.errors import ErrorCode
from skylog.kernel.limits import TRANSACTION_MARKERS_PER_REQUEST_MAX
from skylog.kernel.logging import get_logger
from skylog.replicated.timers import Timers
from skylog.transactions.ports import MarkerSender, TopicPartition
from skylog.transactions.records import by_topic
from skylog.transactions.state import Transaction
from skylog.wire.messages.write_txn_markers_request import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
)
from skylog.wire.messages.write_txn_markers_response import WriteTxnMarkersResponse

_log = get_logger("transactions.markers")
RETRY_MS: Final = 100
# With more markers than this, the caller is answered first, so that a producer prepares its next
# transaction while they are written. Fewer take less time than a producer needs to send its next
# request, which then finds its transaction complete.
_MARKERS_BEFORE_ANSWER_MAX: Final = 16
# Event-loop iterations until such a response has been sent.
_ANSWER_TURNS: Final = 3
NO_LEADER: Final = -1
# Error codes after which a partition needs nothing more. An epoch error means that a later epoch of
# the producer has been there, and the coordinator assigns one only after the transaction's end.
_SETTLED: Final = frozenset(
    {
        ErrorCode.NONE,
        ErrorCode.INVALID_PRODUCER_EPOCH,
        ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT,
        ErrorCode.UNSUPPORTED_VERSION,
    }
)
Partitions = frozenset[TopicPartition]
# None: there is no such partition. NO_LEADER: it has no leader now.
LeaderOf = Callable[[TopicPartition], int | None]
Start = Callable[[Coroutine[Any, Any, None]], None]


@dataclass(frozen=True, slots=True)
class Decision:
    """A decided transaction, and the partition of ``__transaction_state`` that it is in."""

    transaction: Transaction
    index: int
    # The leader epoch of that partition: partitions obey the latest coordinator.
    coordinator_epoch: int

    @property
    def transactional_id(self) -> str:
        return self.transaction.transactional_id


class DecisionOwner(Protocol):
    """The source of decisions."""

    def is_current(self, decision: Decision) -> bool:
        """Whether it must still be carried out, and by this broker."""
        ...

    def markers_written(self, decision: Decision, partitions: Partitions) -> None: ...


class Markers:
    """The decisions that are being carried out. All calls come from the event loop."""

    def __init__(
        self,
        owner: DecisionOwner,
        leader_of: LeaderOf,
        sender: MarkerSender,
        timers: Timers,
        start: Start,
    ) -> None:
        """``start`` runs something in the background."""
        self._owner = owner
        self._leader_of = leader_of
        self._sender = sender
        self._timers = timers
        self._start = start
        self._waiting: dict[int, list[tuple[Decision, Partitions]]] = {}
        self._sending: set[int] = set()

    def deliver(self, decision: Decision, partitions: Partitions) -> None:
        """Have markers written; the owner is notified of each partition that has its own."""
        if not self._owner.is_current(decision):
            return
        by_leader: dict[int | None, set[TopicPartition]] = {}
        for partition in partitions:
            by_leader.setdefault(self._leader_of(partition), set()).add(partition)
        for leader, led in by_leader.items():
            found = frozenset(led)
            if leader is None:
                self._owner.markers_written(decision, found)
            elif leader == NO_LEADER:
                self._later(decision, found)
            else:
                self._waiting.setdefault(leader, []).append((decision, found))
                if leader not in self._sending:
                    self._sending.add(leader)
                    self._start(self._send(leader))

    async def _send(self, node_id: int) -> None:
        """Requests to one node, one after another, until nothing waits for it."""
        try:
            count = sum(len(partitions) for _, partitions in self._waiting[node_id])
            if count > _MARKERS_BEFORE_ANSWER_MAX:
                for _ in range(_ANSWER_TURNS):
                    await asyncio.sleep(0)
            while waiting := self._waiting.pop(node_id, None):
                for at in range(0, len(waiting), TRANSACTION_MARKERS_PER_REQUEST_MAX):
                    await self._send_some(
                        node_id, waiting[at : at + TRANSACTION_MARKERS_PER_REQUEST_MAX]
                    )
        finally:
            self._sending.discard(node_id)

    async def _send_some(self, node_id: int, entries: list[tuple[Decision, Partitions]]) -> None:
        entries = [entry for entry in entries if self._owner.is_current(entry[0])]
        if not entries:
            return
        request = WriteTxnMarkersRequest([_marker(*entry) for entry in entries])
        try:
            errors = _errors(await self._sender.send(node_id, request))
        except Exception as error:  # noqa: BLE001 - any error: the decision stands
            _log.warning("markers not delivered, tried again", node_id=node_id, why=str(error))
            errors = {}
        for decision, partitions in entries:
            self._note(decision, partitions, errors)

    def _note(
        self,
        decision: Decision,
        partitions: Partitions,
        errors: dict[tuple[int, TopicPartition], ErrorCode],
    ) -> None:
        producer_id = decision.transaction.producer_id
        settled, left = set[TopicPartition](), set[TopicPartition]()
        for partition in partitions:
            code = errors.get((producer_id, partition), ErrorCode.UNKNOWN_SERVER_ERROR)
            (settled if code in _SETTLED else left).add(partition)
            if code is not ErrorCode.NONE:
                # Frequent retries are logged at debug level only.
                tell = _log.info if code in _SETTLED else _log.debug
                tell(
                    "marker refused",
                    transactional_id=decision.transactional_id,
                    partition=f"{partition[0]}-{partition[1]}",
                    error=code.name,
                )
        if settled:
            self._owner.markers_written(decision, frozenset(settled))
        if left:
            self._later(decision, frozenset(left))

    def _later(self, decision: Decision, partitions: Partitions) -> None:
        self._timers.start(RETRY_MS, lambda: self.deliver(decision, partitions))


def _marker(decision: Decision, partitions: Partitions) -> WritableTxnMarker:
    transaction = decision.transaction
    return WritableTxnMarker(
        transaction.producer_id,
        transaction.producer_epoch,
        transaction.commits,
        [WritableTxnMarkerTopic(topic, indexes) for topic, indexes in by_topic(partitions)],
        decision.coordinator_epoch,
        transaction.client_version,
    )


def _errors(
    response: WriteTxnMarkersResponse,
) -> dict[tuple[int, TopicPartition], ErrorCode]:
    return {
        (marker.producer_id, (topic.name, found.partition_index)): ErrorCode(found.error_code)
        for marker in response.markers
        for topic in marker.topics
        for found in topic.partitions
    }
