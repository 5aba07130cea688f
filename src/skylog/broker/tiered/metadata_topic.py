"""``__remote_log_metadata`` of this cluster: this broker's own replicas, or requests to others.

It is an ordinary topic, created when the first partition needs it. The number of its partitions
decides where records are, so a topic with another number than configured cannot be used.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Final

from skylog.kernel.errors import ConfigError, ErrorCode, KafkaError
from skylog.kernel.ids import ZERO_UUID, Uuid
from skylog.kernel.limits import (
    REMOTE_METADATA_APPEND_MS_MAX,
    REMOTE_METADATA_FETCH_WAIT_MS,
)
from skylog.kernel.settings.tiered import METADATA_TOPIC
from skylog.kernel.waiting import end_tasks
from skylog.tiered.ports import MetadataPage, MetadataValue
from skylog.wire.batch import Batch, split_batches
from skylog.wire.buffers import Buffer
from skylog.wire.messages.fetch_request import FetchPartition, FetchRequest, FetchTopic
from skylog.wire.messages.list_offsets_request import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from skylog.wire.messages.produce_request import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from skylog.wire.records import decode_records, encode_batch

if TYPE_CHECKING:
    from skylog.broker.metadata.auto_create import AutoCreate
    from skylog.broker.net.peers import BrokerPeers
    from skylog.controller.image import ClusterImage
    from skylog.kernel.system import System
    from skylog.replication.manager import ReplicaManager
    from skylog.replication.partition import Partition

_ALL_IN_SYNC: Final = -1
_LATEST: Final = -1
_WRITE_LANE: Final = "remote-log-metadata"


@dataclass(frozen=True, slots=True)
class MetadataTopicPorts:
    """What the topic is reached by. ``failed`` is told of a topic that cannot be used."""

    image: ClusterImage
    replicas: ReplicaManager
    peers: BrokerPeers
    auto_create: AutoCreate
    system: System
    failed: Callable[[Exception], None]


class ClusterMetadataTopic:
    """Implements ``tiered.ports.MetadataTopic``. All calls come from the event loop."""

    def __init__(self, ports: MetadataTopicPorts, partitions: int) -> None:
        """``partitions`` is the number that the topic has or will have."""
        self._ports = ports
        self._partitions = partitions
        self._refused = False

    @property
    def topic_id(self) -> Uuid:
        topic = self._ports.image.topic(METADATA_TOPIC)
        return ZERO_UUID if topic is None else topic.topic_id

    @property
    def partition_count(self) -> int:
        topic = self._ports.image.topic(METADATA_TOPIC)
        found = 0 if topic is None else len(topic.partitions)
        if found not in (0, self._partitions):
            raise self._refuse(found)
        return found

    def _refuse(self, found: int) -> ConfigError:
        error = ConfigError(
            f"{METADATA_TOPIC} has {found} partitions, but "
            f"remote.log.metadata.topic.num.partitions is {self._partitions}: set it to {found}, "
            "or no remote segment would be found where it was recorded"
        )
        if not self._refused:
            self._refused = True
            self._ports.failed(error)
        return error

    async def create(self) -> None:
        if self.partition_count:
            return
        outcome = await self._ports.auto_create.create([METADATA_TOPIC])
        if code := outcome[METADATA_TOPIC]:
            raise KafkaError(code, f"{METADATA_TOPIC} was not created")

    async def append(self, partition: int, values: Sequence[bytes]) -> int:
        now_ms = self._ports.system.clock.now_ms()
        encoded = encode_batch([(None, value) for value in values], timestamp=now_ms)
        replica = self._ports.replicas.get(METADATA_TOPIC, partition)
        if replica is not None and replica.is_leader:
            return await _append_here(replica, encoded, now_ms)
        return await self._append_there(partition, encoded) + len(values) - 1

    async def _append_there(self, partition: int, encoded: bytes) -> int:
        data = TopicProduceData(
            METADATA_TOPIC, self.topic_id, [PartitionProduceData(partition, encoded)]
        )
        timeout_ms = REMOTE_METADATA_APPEND_MS_MAX
        request = ProduceRequest(acks=_ALL_IN_SYNC, timeout_ms=timeout_ms, topic_data=[data])
        response = await self._ports.peers.send(
            self._leader(partition), request, lane=_WRITE_LANE, timeout_ms=timeout_ms
        )
        answer = response.responses[0].partition_responses[0]
        _check(answer.error_code, answer.error_message)
        return int(answer.base_offset)

    async def end_offset(self, partition: int) -> int:
        """The leader's high watermark; a replica here may not have all of it yet."""
        replica = self._ports.replicas.get(METADATA_TOPIC, partition)
        if replica is not None and replica.is_leader:
            return await _committed_end(replica)
        wanted = ListOffsetsPartition(partition_index=partition, timestamp=_LATEST)
        request = ListOffsetsRequest(topics=[ListOffsetsTopic(METADATA_TOPIC, [wanted])])
        response = await self._ports.peers.send(self._leader(partition), request, lane=_WRITE_LANE)
        answer = response.topics[0].partitions[0]
        _check(answer.error_code, None)
        return int(answer.offset)

    async def read(self, partition: int, offset: int, max_bytes: int) -> MetadataPage:
        replica = self._ports.replicas.get(METADATA_TOPIC, partition)
        # A replica that is new here, or was truncated, has yet to get there.
        if replica is None or not (replica.is_leader or offset <= replica.log.log_end_offset):
            return await self._read_there(partition, offset, max_bytes)
        if not replica.is_leader and offset >= replica.log.high_watermark:
            found = await self._wait_for_either(replica, offset, max_bytes)
            if found is not None:
                return found
        return await self._read_here(replica, offset, max_bytes)

    async def _wait_for_either(
        self, replica: Partition, offset: int, max_bytes: int
    ) -> MetadataPage | None:
        """Ask the leader, because a follower hears of commits only with its next records; None once
        it has heard of one.

        A copy waits for its own records twice, so this would take longer than small segments do.
        """
        there = asyncio.ensure_future(self._read_there(replica.index, offset, max_bytes))
        here = asyncio.ensure_future(_until_committed(replica, offset))
        try:
            await asyncio.wait({there, here}, return_when=asyncio.FIRST_COMPLETED)
            if there.done() and there.exception() is None:
                return there.result()
            await here  # the leader cannot be asked
            return None
        finally:
            await end_tasks([there, here])

    async def _read_here(self, replica: Partition, offset: int, max_bytes: int) -> MetadataPage:
        log = replica.log
        if offset > log.log_end_offset:
            raise KafkaError(
                ErrorCode.OFFSET_OUT_OF_RANGE, f"{replica} ends before offset {offset}"
            )
        offset = max(offset, log.log_start_offset)
        if log.high_watermark <= offset:
            await _until_committed(replica, offset)
        end = log.high_watermark
        if offset >= end:
            return MetadataPage((), offset, log.log_start_offset, end)

        def read() -> tuple[list[MetadataValue], int]:
            found = log.reader.read(offset, max_bytes, end, min_one=True, block=True)
            return values_of(found.buffer, offset)

        values, next_offset = await self._ports.system.executor.run(read)
        return MetadataPage(values, next_offset, log.log_start_offset, end)

    async def _read_there(self, partition: int, offset: int, max_bytes: int) -> MetadataPage:
        wait_ms = REMOTE_METADATA_FETCH_WAIT_MS
        wanted = FetchPartition(
            partition=partition, fetch_offset=offset, partition_max_bytes=max_bytes
        )
        request = FetchRequest(
            max_wait_ms=wait_ms,
            min_bytes=1,
            max_bytes=max_bytes,
            topics=[FetchTopic(METADATA_TOPIC, self.topic_id, [wanted])],
        )
        # Each long poll has a connection of its own: answers on one come in order.
        response = await self._ports.peers.send(
            self._leader(partition), request, lane=f"{_WRITE_LANE}-{partition}", timeout_ms=wait_ms
        )
        _check(response.error_code, None)
        answer = response.responses[0].partitions[0]
        start = int(answer.log_start_offset)
        if answer.error_code == ErrorCode.OFFSET_OUT_OF_RANGE and offset < start:
            return MetadataPage((), start, start, int(answer.high_watermark))
        _check(answer.error_code, None)
        values, next_offset = await self._ports.system.executor.run(
            partial(values_of, answer.records or b"", offset)
        )
        return MetadataPage(values, next_offset, start, int(answer.high_watermark))

    def _leader(self, partition: int) -> int:
        topic = self._ports.image.topic(METADATA_TOPIC)
        state = None if topic is None else topic.partitions.get(partition)
        if state is None or state.leader < 0:
            raise KafkaError(
                ErrorCode.LEADER_NOT_AVAILABLE, f"{METADATA_TOPIC}-{partition} has no leader"
            )
        return state.leader


async def _append_here(replica: Partition, encoded: bytes, now_ms: int) -> int:
    last_offset = replica.append([Batch(encoded)], now_ms).last_offset
    waiting = replica.committed(last_offset)
    if waiting is not None:
        try:
            async with asyncio.timeout(REMOTE_METADATA_APPEND_MS_MAX / 1000):
                await waiting
        except TimeoutError as error:
            raise KafkaError(
                ErrorCode.REQUEST_TIMED_OUT,
                f"offset {last_offset} of {replica} is not committed",
                ambiguous=True,
            ) from error
    return last_offset


async def _committed_end(replica: Partition) -> int:
    """The end of what a leader has, once that is committed.

    One that has just started may not know how far its records were: with an old high watermark,
    segments that were finished long ago would not be there. What is never committed may be lost
    with the leadership, and must not be waited for.
    """
    end = replica.log.log_end_offset
    if replica.log.high_watermark < end:
        await _until_committed(replica, end - 1)
    if replica.log.high_watermark < end:
        raise KafkaError(ErrorCode.OFFSET_NOT_AVAILABLE, f"{replica} is not committed up to {end}")
    return end


async def _until_committed(replica: Partition, offset: int) -> None:
    """Wait a while until ``offset`` is committed."""
    moved = asyncio.Event()

    def committed(high_watermark: int) -> None:
        if high_watermark > offset:
            moved.set()

    unsubscribe = replica.on_commit(committed)
    try:
        async with asyncio.timeout(REMOTE_METADATA_FETCH_WAIT_MS / 1000):
            await moved.wait()
    except TimeoutError:
        return
    finally:
        unsubscribe()


def values_of(records: Buffer, offset: int) -> tuple[list[MetadataValue], int]:
    """The values from an offset on, and the offset behind them.

    A batch that cannot be decoded has no values: a record that nobody can read must not end the
    reading of those behind it.
    """
    values: list[MetadataValue] = []
    for batch in split_batches(records):
        if not batch.is_control:
            try:
                found = decode_records(batch)
            except KafkaError:
                values.append(MetadataValue(batch.base_offset, b""))
                found = []
            values += [
                MetadataValue(record.offset, None if record.value is None else bytes(record.value))
                for record in found
                if record.offset >= offset
            ]
        offset = max(offset, batch.next_offset)
    return values, offset


def _check(error_code: int, message: str | None) -> None:
    if error_code:
        raise KafkaError(ErrorCode(error_code), message)
