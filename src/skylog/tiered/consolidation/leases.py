"""The grants of the partitions that this broker leads, and the ends of their leases.

A segment whose grant ends is a failed copy of the leader's own: the copy lane cleans it, and
nothing that is still granted is touched.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol, TypeAlias

from skylog.kernel.errors import ErrorCode, KafkaError
from skylog.kernel.limits import (
    EXTERNAL_LEASE_LOOK_SECONDS,
    EXTERNAL_LEASE_SECONDS,
    EXTERNAL_SEGMENTS_PER_PARTITION_MAX,
)
from skylog.kernel.logging import get_logger
from skylog.kernel.waiting import end_tasks
from skylog.tiered.consolidation.grants import Grant, Grants
from skylog.tiered.consolidation.sampling import Sample

if TYPE_CHECKING:
    from skylog.kernel.clock import Clock
    from skylog.tiered.hosted import Hosted
    from skylog.tiered.metadata.machine import RemoteLog
    from skylog.tiered.ports import RemoteLogs
    from skylog.tiered.segments import TopicIdPartition

_log = get_logger("tiered.external")
SegmentGrant: TypeAlias = Grant[Sample]
SegmentGrants: TypeAlias = Grants[Sample]
EXTERNAL: Final = "external"


class Led(Protocol):
    """What ``RemoteLogManager`` knows of partitions."""

    def hosted(self, partition: TopicIdPartition) -> Hosted | None: ...

    def work_left(self, partition: TopicIdPartition) -> None:
        """There may be something for the copy lane to do."""


class Place(NamedTuple):
    """A partition that this broker leads."""

    hosted: Hosted
    remote: RemoteLog
    grants: SegmentGrants


class Leases:
    """All methods run on the event loop."""

    def __init__(self, led: Led, logs: RemoteLogs, clock: Clock) -> None:
        self._led = led
        self._logs = logs
        self._clock = clock
        self._grants: dict[TopicIdPartition, SegmentGrants] = {}
        self._watch: asyncio.Task[None] | None = None
        self._open = 0
        self._counted_at = float("-inf")

    async def close(self) -> None:
        await end_tasks([] if self._watch is None else [self._watch])

    def open(self, more: int) -> int:
        """Segments that are granted, of all partitions, and ``more``. Counted now and then: a
        request may be for all of them."""
        now = self._clock.monotonic()
        if now >= self._counted_at + EXTERNAL_LEASE_LOOK_SECONDS:
            self._counted_at = now
            self._open = sum(len(each) for each in self._grants.values())
        self._open += more
        return self._open

    async def refreshed(self, partition: TopicIdPartition, leader_epoch: int) -> Place:
        """As ``place``, with what the coordinator knows now."""
        place = self.place(partition, leader_epoch)
        await place.hosted.source.refresh()
        place.hosted.follow(place.remote)
        return self.place(partition, place.grants.leader_epoch)

    def place(self, partition: TopicIdPartition, leader_epoch: int) -> Place:
        hosted, remote = self._led.hosted(partition), self._logs.get(partition)
        if hosted is None or not hosted.leads:
            raise KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        if leader_epoch >= 0 and leader_epoch != hosted.leader_epoch:
            is_old = leader_epoch < hosted.leader_epoch
            raise KafkaError(
                ErrorCode.FENCED_LEADER_EPOCH if is_old else ErrorCode.UNKNOWN_LEADER_EPOCH,
                f"leader epoch {leader_epoch}, the leader's is {hosted.leader_epoch}",
            )
        config = hosted.source.config
        if config.tiering_assembler != EXTERNAL:
            raise refused(
                f"{hosted.topic} is assembled by its leaders: diskless.tiering.assembler is"
                f" {config.tiering_assembler}"
            )
        if not config.copies or hosted.is_refused:
            raise refused(f"{hosted.topic} is not copied: see remote.log.copy.disable")
        if remote is None or not hosted.is_prepared:
            raise KafkaError(
                ErrorCode.REPLICA_NOT_AVAILABLE, "the leader does not know its remote log yet"
            )
        grants = hosted.grants
        if grants is None:
            grants = hosted.grants = self._grants[partition] = Grants(
                hosted.leader_epoch, EXTERNAL_SEGMENTS_PER_PARTITION_MAX, EXTERNAL_LEASE_SECONDS
            )
        place = Place(hosted, remote, grants)
        self._expire(place)
        return place

    def give_up(self, place: Place, grants: Sequence[SegmentGrant], why: str) -> None:
        for grant in grants:
            _log.warning(
                "segment of a job given up",
                topic=place.hosted.topic,
                partition=place.hosted.partition.partition_index,
                segment=str(grant.segment.id),
                start_offset=grant.start_offset,
                why=why,
            )
            place.hosted.give_up(grant.segment.id)
        if grants:
            self._led.work_left(place.hosted.partition)

    def _expire(self, place: Place) -> None:
        """Give up what nobody has finished in time."""
        late = place.grants.expired(self._clock.monotonic())
        self.give_up(place, late, "its lease has ended")

    def watch(self) -> None:
        if self._watch is None or self._watch.done():
            self._watch = asyncio.get_running_loop().create_task(self._watch_leases())

    async def _watch_leases(self) -> None:
        """Ends when nothing is granted."""
        while True:
            ends = [end for grants in self._grants.values() if (end := grants.next_end) is not None]
            if not ends:
                return
            wait = min(ends) - self._clock.monotonic()
            await asyncio.sleep(max(wait, EXTERNAL_LEASE_LOOK_SECONDS))
            for partition, grants in list(self._grants.items()):
                hosted, remote = self._led.hosted(partition), self._logs.get(partition)
                if hosted is None or hosted.grants is not grants:
                    del self._grants[partition]  # another leader, or epoch, cleans up after it
                elif remote is not None:
                    self._expire(Place(hosted, remote, grants))


def refused(why: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_REQUEST, why)
