"""Sets up a replica behind what is in the object store; ``tier_state.py`` decides."""

from __future__ import annotations

from typing import TYPE_CHECKING

from skylog.kernel.errors import ErrorCode, KafkaError
from skylog.kernel.logging import get_logger
from skylog.log.restoring import restore
from skylog.replication.tier_state import (
    EARLIEST,
    EARLIEST_LOCAL,
    EARLIEST_PENDING_UPLOAD,
    LeaderOffset,
    boundary_question,
    check_state,
    earlier_epoch,
    is_ahead,
    target_epoch,
)

if TYPE_CHECKING:
    from skylog.replication.leader_questions import LeaderQuestions
    from skylog.replication.partition import Partition
    from skylog.replication.ports import RemoteTier

log = get_logger("replication.tier")


class TierRebuild:
    """One replica, in one leader epoch. May be cancelled whenever it waits."""

    def __init__(self, partition: Partition, leader: LeaderQuestions, tier: RemoteTier) -> None:
        self._partition = partition
        self._epoch = partition.leader_epoch
        self._leader = leader
        self._tier = tier

    async def run(self) -> None:
        """The log's end is where to fetch from when it returns. Raises KafkaError."""
        partition = self._partition
        start = (await self._ask(EARLIEST)).offset
        boundary = await self._boundary()
        if boundary.offset <= start:
            self._start_over(start)
            return
        earlier = earlier_epoch(boundary)
        end = None
        if earlier is not None:
            end = await self._leader.epoch_end(partition, self._epoch, earlier)
        epoch = target_epoch(boundary, end)
        downloaded = await self._tier.state_at(partition, epoch, boundary.offset - 1)
        if downloaded is None:
            raise KafkaError(
                ErrorCode.OFFSET_NOT_AVAILABLE,
                f"no remote segment of {partition} with {boundary.offset - 1} in epoch {epoch}",
            )
        state = check_state(downloaded, boundary, epoch)
        if is_ahead(partition.log, boundary):
            return
        log.info(
            "replica continues behind the remote log",
            partition=str(partition),
            end_offset=partition.log.log_end_offset,
            next_offset=state.next_offset,
            leader_start_offset=start,
            boundary=boundary.offset,
        )
        partition.truncate_fully_and_start_at(state.next_offset, start)
        restore(partition.log, state.epochs, state.producers)

    async def _boundary(self) -> LeaderOffset:
        last_tiered = self._tier.from_last_tiered_offset
        question = boundary_question(self._partition.log, from_last_tiered_offset=last_tiered)
        boundary = await self._ask(question)
        if question == EARLIEST_PENDING_UPLOAD and boundary.offset < 0:
            boundary = await self._ask(EARLIEST_LOCAL)
        return boundary

    async def _ask(self, timestamp: int) -> LeaderOffset:
        return await self._leader.offset(self._partition, self._epoch, timestamp)

    def _start_over(self, start: int) -> None:
        """All that the leader has is local, and this log may have nothing of it."""
        if not self._partition.log.size:
            self._partition.truncate_fully_and_start_at(start)
