"""Requests between the replicas of a coordinator's log: snapshots, and leadership checks."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from functools import partial
from typing import Final, Protocol

from skylog.diskless.coordinator.calls import Peers
from skylog.diskless.coordinator.snapshots import Snapshots
from skylog.diskless.coordinator.wire import error_code
from skylog.kernel.errors import ErrorCode, KafkaError, StorageError
from skylog.kernel.executor import Executor
from skylog.kernel.limits import DISKLESS_CALL_TIMEOUT_MS, DISKLESS_SNAPSHOT_PIECE_BYTES
from skylog.kernel.logging import get_logger
from skylog.kernel.topics import DISKLESS_METADATA
from skylog.quorum.snapshots import SnapshotId
from skylog.wire.messages import offset_for_leader_epoch_request as epochs
from skylog.wire.messages.diskless_fetch_snapshot_request import DisklessFetchSnapshotRequest
from skylog.wire.messages.diskless_fetch_snapshot_response import DisklessFetchSnapshotResponse

_log = get_logger("diskless.coordinator")
# A replica that hangs soon leaves the ISR; until then it must not block others for long.
_CONFIRM_SECONDS: Final = 2.0
# The response of a replica that knows no later epoch than the given one.
_CONFIRMED: Final = (
    ErrorCode.NONE,
    ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.UNKNOWN_LEADER_EPOCH,
)


class Links(Protocol):
    """Requests to the other replicas of a coordinator's log."""

    async def fetch_snapshot(self, coordinator_id: int, snapshots: Snapshots) -> None:
        """Fetch the latest snapshot of another replica, preferably the leader's."""
        ...

    async def confirm(self, coordinator_id: int, isr: Sequence[int], leader_epoch: int) -> None:
        """Returns if no other in-sync replica knows of a later epoch."""
        ...


class ReplicaLinks:
    """See ``Links``. ``replicas`` returns those of a coordinator's log, the leader first."""

    def __init__(
        self,
        node_id: int,
        peers: Peers,
        replicas: Callable[[int], Sequence[int]],
        executor: Executor,
        piece_bytes: int = DISKLESS_SNAPSHOT_PIECE_BYTES,
        confirm_seconds: float = _CONFIRM_SECONDS,
    ) -> None:
        self._node_id = node_id
        self._peers = peers
        self._replicas = replicas
        self._executor = executor
        self._piece_bytes = piece_bytes
        self._confirm_seconds = confirm_seconds

    async def fetch_snapshot(self, coordinator_id: int, snapshots: Snapshots) -> None:
        others = [
            node for node in self._replicas(coordinator_id) if node not in (self._node_id, -1)
        ]
        error: Exception = StorageError(f"coordinator {coordinator_id} has no other replica")
        for node_id in others:
            try:
                snapshot_id = await self._fetch(node_id, coordinator_id, snapshots)
            except (KafkaError, StorageError, OSError) as failed:
                error = failed
                continue
            _log.info(
                "snapshot fetched",
                coordinator=coordinator_id,
                node=node_id,
                offset=snapshot_id.offset,
            )
            return
        raise error

    async def _fetch(self, node_id: int, coordinator_id: int, snapshots: Snapshots) -> SnapshotId:
        first = await self._piece(node_id, coordinator_id, None, 0)
        snapshot_id = SnapshotId(first.end_offset, first.epoch)
        if snapshot_id.offset < 0 or snapshot_id.epoch < 0 or first.size < 0:
            raise StorageError(f"broker {node_id} sent an invalid snapshot")
        piece, position = first, 0
        while True:
            if not piece.bytes or position + len(piece.bytes) > first.size:
                raise StorageError(f"broker {node_id} sent {position} of {first.size} bytes")
            write = partial(snapshots.write_piece, snapshot_id, position, piece.bytes)
            await self._executor.run(write)
            position += len(piece.bytes)
            if position == first.size:
                break
            piece = await self._piece(node_id, coordinator_id, snapshot_id, position)
        await self._executor.run(partial(snapshots.finish_pieces, snapshot_id, first.digest))
        return snapshot_id

    async def _piece(
        self, node_id: int, coordinator_id: int, snapshot_id: SnapshotId | None, position: int
    ) -> DisklessFetchSnapshotResponse:
        request = DisklessFetchSnapshotRequest(
            coordinator_id,
            -1 if snapshot_id is None else snapshot_id.offset,
            -1 if snapshot_id is None else snapshot_id.epoch,
            position,
            self._piece_bytes,
            DISKLESS_CALL_TIMEOUT_MS,
        )
        response: DisklessFetchSnapshotResponse = await self._peers.send(
            node_id, request, lane="snapshot", timeout_ms=DISKLESS_CALL_TIMEOUT_MS
        )
        if response.error_code:
            raise KafkaError(error_code(response.error_code), response.error_message)
        return response

    async def confirm(self, coordinator_id: int, isr: Sequence[int], leader_epoch: int) -> None:
        others = [node for node in isr if node != self._node_id]
        await asyncio.gather(
            *(self._confirm(node, coordinator_id, leader_epoch) for node in others)
        )

    async def _confirm(self, node_id: int, coordinator_id: int, leader_epoch: int) -> None:
        asked = epochs.OffsetForLeaderPartition(coordinator_id, leader_epoch, leader_epoch)
        topic = epochs.OffsetForLeaderTopic(DISKLESS_METADATA, [asked])
        request = epochs.OffsetForLeaderEpochRequest(self._node_id, [topic])
        try:
            async with asyncio.timeout(self._confirm_seconds):
                response = await self._peers.send(node_id, request, lane="confirm")
            code = error_code(response.topics[0].partitions[0].error_code)
        except (KafkaError, TimeoutError) as error:
            why = str(error) or "no answer in time"
            raise KafkaError(
                ErrorCode.COORDINATOR_NOT_AVAILABLE, f"replica {node_id}: {why}"
            ) from error
        if code is ErrorCode.FENCED_LEADER_EPOCH:
            raise KafkaError(ErrorCode.NOT_COORDINATOR, f"replica {node_id} knows a later epoch")
        if code not in _CONFIRMED:
            raise KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE, f"replica {node_id}: {code.name}")
