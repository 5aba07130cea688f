"""Remote segments of topics that are gone: completed by whoever leads their metadata partition.

The leader of a partition begins to delete its remote segments when the topic is deleted; if it dies
over that, nobody else hosts the partition any more. But the metadata topic remembers. The leader of
each of its partitions reads which topics have records there, and completes the deletion of those
that its own metadata has missed for a whole grace period: a broker that is behind must not take a
new topic for a deleted one. While a restore holds objects for the operator, nothing is deleted.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, field
from struct import Struct
from typing import TYPE_CHECKING, Final

from skylog.kernel.ids import Uuid
from skylog.kernel.limits import REMOTE_METADATA_READ_BYTES
from skylog.kernel.logging import get_logger
from skylog.tiered.segments import PartitionDeleteState, TopicIdPartition
from skylog.wire.messages.remote_partition_delete_metadata_record import (
    RemotePartitionDeleteMetadataRecord as DeletionRecord,
)
from skylog.wire.metadata_records import decode_remote_log

if TYPE_CHECKING:
    from skylog.kernel.clock import Clock
    from skylog.tiered.ports import MetadataTopic

_log = get_logger("tiered.sweep")
# Of all records: frame version, record type, version, then the topic's name, id and partition.
_TYPE_AT: Final = 1
_NAME_AT: Final = 3
_OWNER: Final = Struct(">16si")
_DELETION: Final = DeletionRecord.API_KEY
# Names are at most 249 bytes, so their length takes two bytes at most.
_VARINT_MORE: Final = 0x80


def owner_of(value: bytes) -> tuple[TopicIdPartition, str] | None:
    """Whose record a value is, without decoding the rest of it; None if that cannot be told."""
    if len(value) <= _NAME_AT:
        return None
    length, at = value[_NAME_AT], _NAME_AT + 1
    if length & _VARINT_MORE and len(value) > at:
        length, at = (length & 0x7F) | value[at] << 7, at + 1
    end = at + length - 1
    if length < 1 or len(value) < end + _OWNER.size:
        return None
    topic_id, index = _OWNER.unpack_from(value, end)
    return TopicIdPartition(Uuid(topic_id), index), value[at:end].decode(errors="replace")


@dataclass(slots=True)
class _Seen:
    """What one metadata partition has records of, up to an offset."""

    leader_epoch: int
    next_offset: int = 0
    topics: dict[TopicIdPartition, str] = field(default_factory=dict)

    def add(self, value: bytes) -> None:
        owner = owner_of(value)
        if owner is None:
            return
        partition, topic = owner
        if value[_TYPE_AT] == _DELETION:
            record = decode_remote_log(value)
            if (
                isinstance(record, DeletionRecord)
                and record.remote_partition_delete_state == PartitionDeleteState.FINISHED
            ):
                self.topics.pop(partition, None)
                return
        self.topics[partition] = topic


@dataclass(slots=True)
class SweepStats:
    partitions_deleted: int = 0


class MetadataSweep:
    """One pass each interval (``Pass``)."""

    def __init__(
        self,
        topic: MetadataTopic,
        led: Callable[[], Iterable[tuple[int, int]]],
        exists: Callable[[Uuid], bool],
        delete: Callable[[TopicIdPartition, str], Awaitable[None]],
        is_held: Callable[[], Awaitable[bool]],
        clock: Clock,
        *,
        grace_ms: int,
    ) -> None:
        """``led``: the metadata partitions that this broker leads, each with its leader epoch."""
        self._topic = topic
        self._led = led
        self._exists = exists
        self._delete = delete
        self._is_held = is_held
        self._clock = clock
        self._grace_ms = grace_ms
        self._seen: dict[int, _Seen] = {}
        self._missed_since: dict[Uuid, float] = {}
        self.stats = SweepStats()

    async def run_once(self) -> None:
        """Raises ``KafkaError`` or a store's error; the next pass goes on."""
        led = dict(self._led())
        self._seen = {number: seen for number, seen in self._seen.items() if number in led}
        for number, epoch in led.items():
            await self._read(number, epoch)
        now = self._clock.monotonic()
        missed = self._missed()
        ids = {partition.topic_id for partition in missed}
        self._missed_since = {one: self._missed_since.get(one, now) for one in ids}
        gone = {
            partition: topic
            for partition, topic in missed.items()
            if (now - self._missed_since[partition.topic_id]) * 1000 >= self._grace_ms
        }
        if gone and not await self._is_held():
            await self._delete_all(gone)

    async def _read(self, number: int, epoch: int) -> None:
        """What was written since; from the beginning once for each leadership."""
        seen = self._seen.get(number)
        if seen is None or seen.leader_epoch != epoch:
            seen = self._seen[number] = _Seen(epoch)
        end = await self._topic.end_offset(number)
        while seen.next_offset < end:
            page = await self._topic.read(number, seen.next_offset, REMOTE_METADATA_READ_BYTES)
            if page.next_offset <= seen.next_offset:
                return
            for value in page.values:
                if value.value:
                    seen.add(value.value)
            seen.next_offset = page.next_offset

    def _missed(self) -> dict[TopicIdPartition, str]:
        return {
            partition: topic
            for seen in self._seen.values()
            for partition, topic in seen.topics.items()
            if not self._exists(partition.topic_id)
        }

    async def _delete_all(self, gone: dict[TopicIdPartition, str]) -> None:
        for partition, topic in gone.items():
            await self._delete(partition, topic)
            self.stats.partitions_deleted += 1
        _log.info("remote segments of topics unknown to metadata deleted", count=len(gone))
