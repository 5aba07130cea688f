"""Windows of any topic, fetched from the partition leaders: complete batches, not decoded."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import Final

from skylog.bulk.decode import EncodedBatch
from skylog.bulk.source import TOPIC_GONE, LossPolicy, Piece
from skylog.bulk.verify import batches_from_broker
from skylog.client.bulk import Split
from skylog.client.cluster import Cluster
from skylog.client.errors import check, error_of
from skylog.kernel.errors import ErrorCode, KafkaError
from skylog.kernel.executor import Executor
from skylog.kernel.ids import ZERO_UUID, Uuid
from skylog.wire.messages.fetch_request import FetchPartition, FetchRequest, FetchTopic
from skylog.wire.messages.fetch_response import FetchResponse, PartitionData

FETCH_BYTES: Final = 16 * 1024 * 1024
_WAIT_MS: Final = 500
# The last version that names topics; later ones identify them by id only.
_VERSION_OF_NAMES: Final = 12


class BrokerSource:
    """The windows of some splits, in their order. All calls come from the event loop."""

    def __init__(
        self, cluster: Cluster, executor: Executor, splits: Sequence[Split], loss: LossPolicy
    ) -> None:
        self._cluster = cluster
        self._executor = executor
        self._lane = cluster.new_lane()
        self._splits = deque(splits)
        self._loss = loss
        self._position: int | None = None  # in the first of the splits

    async def next(self) -> list[Piece] | None:
        while self._splits:
            split = self._splits[0]
            position = split.start_offset if self._position is None else self._position
            if position >= split.end_offset:
                self._splits.popleft()
                self._position = None
                continue
            batches = await self._fetch(split, position)
            if batches:
                self._position = batches[-1].last_offset + 1
                return [Piece(split, batches, sum(len(batch.data) for batch in batches))]
        return None

    async def close(self) -> None:
        await self._cluster.close_lane(self._lane)

    async def _fetch(self, split: Split, position: int) -> list[EncodedBatch]:
        """Batches from ``position`` on; none, and another position, after a loss."""

        async def ask() -> list[EncodedBatch] | KafkaError:
            try:
                return await self._ask(split, position)
            except KafkaError as error:
                if error.code is ErrorCode.OFFSET_OUT_OF_RANGE or error.code in TOPIC_GONE:
                    return error
                raise

        outcome = await self._cluster.retry(ask)
        if isinstance(outcome, KafkaError):
            self._position = await self._loss.position_after_loss(
                self._cluster, split, position, outcome
            )
            return []
        return outcome

    async def _ask(self, split: Split, position: int) -> list[EncodedBatch]:
        topic = await self._cluster.topic(split.topic)
        if ZERO_UUID not in (topic.topic_id, split.topic_id) and topic.topic_id != split.topic_id:
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_ID, f"topic {split.topic} was created again")
        info = topic.partitions.get(split.partition)
        if info is None or info.leader < 0:
            self._cluster.metadata.forget(split.topic)
            raise KafkaError(
                ErrorCode.LEADER_NOT_AVAILABLE, f"partition {split.topic}-{split.partition}"
            )
        try:
            connection = await self._cluster.node(info.leader, self._lane)
            answer: FetchResponse = await connection.request(
                _request(split, topic.topic_id, position),
                version_max=_VERSION_OF_NAMES if topic.topic_id == ZERO_UUID else None,
                timeout_ms=_WAIT_MS,
            )
            check(answer.error_code, f"fetch from {connection.address}")
            data = _partition(answer, split)
        except KafkaError as error:
            self._cluster.metadata.forget(split.topic)
            raise _again(error) from error
        found = await self._executor.run(
            lambda: list(batches_from_broker(split, data.records or b"", position))
        )
        if not found:
            raise KafkaError(
                ErrorCode.OFFSET_NOT_AVAILABLE,
                f"partition {split.topic}-{split.partition} has nothing at offset {position},"
                f" its high watermark is {data.high_watermark}",
            )
        return found


def _request(split: Split, topic_id: Uuid, position: int) -> FetchRequest:
    partition = FetchPartition(
        split.partition, fetch_offset=position, partition_max_bytes=FETCH_BYTES
    )
    return FetchRequest(
        max_wait_ms=_WAIT_MS,
        min_bytes=1,
        max_bytes=FETCH_BYTES,
        topics=[FetchTopic(split.topic, topic_id, [partition])],
    )


def _partition(answer: FetchResponse, split: Split) -> PartitionData:
    where = f"partition {split.topic}-{split.partition}"
    for topic in answer.responses:
        for data in topic.partitions:
            if data.error_code == ErrorCode.UNKNOWN_SERVER_ERROR:
                # The object store failed, or too many reads of it were waiting: perhaps not again.
                raise KafkaError(ErrorCode.OFFSET_NOT_AVAILABLE, f"{where} could not be read")
            error = error_of(data.error_code, where)
            if error is not None:
                raise error
            return data
    raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, f"no response for {where}")


def _again(error: KafkaError) -> KafkaError:
    """A broker that does not know the topic may just not be its leader: fresh metadata decides."""
    if error.code in TOPIC_GONE:
        return KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER, error.message)
    return error
