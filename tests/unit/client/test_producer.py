"""The producer: batches, order, sequences, and what happens when sending fails."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from skylog.client.partitioner import partition_of_key
from skylog.client.producer import Producer, ProducerSettings
from skylog.kernel.errors import ErrorCode, KafkaError
from skylog.wire.apis import ApiKey
from skylog.wire.batch import Batch, Compression
from skylog.wire.messages.init_producer_id_response import InitProducerIdResponse
from skylog.wire.messages.produce_response import (
    PartitionProduceResponse,
    ProduceResponse,
    TopicProduceResponse,
)
from skylog.wire.records import decode_records
from tests.unit.client.support import HANG_UP, SILENCE, TOPIC_ID, FakeBroker, cluster_of, running


class Log(FakeBroker):
    """Keeps what is produced, after scripted failures."""

    def __init__(self) -> None:
        super().__init__()
        self.batches: list[tuple[int, Batch]] = []
        self.ends: dict[int, int] = {}
        self.failures: list[Any] = []
        self.producers = 0
        self.stored = asyncio.Event()
        self.scripts[ApiKey.PRODUCE] = self.produce
        self.scripts[ApiKey.INIT_PRODUCER_ID] = self.init_producer_id

    def init_producer_id(self, _: Any) -> InitProducerIdResponse:
        self.producers += 1
        return InitProducerIdResponse(producer_id=100 + self.producers, producer_epoch=0)

    def produce(self, request: Any) -> Any:
        part = request.topic_data[0].partition_data[0]
        failure = self.failures.pop(0) if self.failures else None
        answer = PartitionProduceResponse(part.index)
        if isinstance(failure, ErrorCode):
            answer.error_code = failure
        else:
            batch = Batch(bytes(part.records))
            assert batch.crc_ok()
            answer.base_offset = self.ends.get(part.index, 0)
            self.ends[part.index] = answer.base_offset + batch.record_count
            self.batches.append((part.index, batch))
            self.stored.set()
        if failure in (HANG_UP, SILENCE) or not request.acks:
            return failure or SILENCE
        topic = TopicProduceResponse("t", TOPIC_ID, [answer])
        return ProduceResponse(responses=[topic])

    def values(self, partition: int) -> list[bytes | None]:
        return [
            record.value
            for index, batch in self.batches
            if index == partition
            for record in decode_records(batch)
        ]


@asynccontextmanager
async def producing(log: Log, **settings: Any) -> AsyncIterator[Producer]:
    async with (
        running(log),
        cluster_of(log) as cluster,
        Producer(cluster, ProducerSettings(**{"linger_ms": 0, **settings})) as producer,
    ):
        yield producer


async def test_records_travel_together_and_learn_their_offsets() -> None:
    log = Log()
    async with producing(log, linger_ms=10_000) as producer:
        sent = [
            await producer.send(
                "t", b"%d" % index, partition=1, timestamp=index, headers=[("h", b"x")]
            )
            for index in range(5)
        ]
        await producer.flush()
    assert [(r.partition, r.offset, r.timestamp) for r in (f.result() for f in sent)] == [
        (1, index, index) for index in range(5)
    ]
    assert len(log.batches) == 1
    records = decode_records(log.batches[0][1])
    assert [record.timestamp for record in records] == list(range(5))
    assert records[0].headers == (("h", b"x"),)


async def test_keys_choose_the_partition() -> None:
    log = Log()
    async with producing(log) as producer:
        for key in (b"a", b"b", b"c", b"d"):
            stored = await (await producer.send("t", key, key=key))
            assert stored.partition == partition_of_key(key, 2)


async def test_a_full_batch_goes_without_waiting() -> None:
    log = Log()
    async with producing(log, linger_ms=60_000, batch_bytes=2000) as producer:
        sent = [await producer.send("t", b"x" * 500, partition=0) for _ in range(8)]
        await asyncio.wait(sent, return_when=asyncio.FIRST_COMPLETED)
        assert not all(result.done() for result in sent)
        await producer.flush()
    assert log.values(0) == [b"x" * 500] * 8
    assert all(batch.size <= 2000 for _, batch in log.batches)


async def test_sequences_follow_each_other_by_partition() -> None:
    log = Log()
    async with producing(log) as producer:
        for _ in range(3):
            for partition in (0, 1):
                for _ in range(2):
                    await producer.send("t", b"x", partition=partition)
            await producer.flush()
    for partition in (0, 1):
        batches = [batch for index, batch in log.batches if index == partition]
        assert [batch.base_sequence for batch in batches] == [0, 2, 4]
        assert {(batch.producer_id, batch.producer_epoch) for batch in batches} == {(101, 0)}
    assert log.producers == 1


async def test_a_lost_answer_is_asked_for_again_with_the_same_sequence() -> None:
    log = Log()
    log.failures = [HANG_UP, ErrorCode.DUPLICATE_SEQUENCE_NUMBER]
    async with producing(log) as producer:
        first = await (await producer.send("t", b"a", partition=0))
        second = await (await producer.send("t", b"b", partition=0))
    assert first.offset in (-1, 0)
    assert second.offset == 1
    assert [batch.base_sequence for _, batch in log.batches] == [0, 1]
    sequences = [
        Batch(bytes(request.topic_data[0].partition_data[0].records)).base_sequence
        for request in log.requests(ApiKey.PRODUCE)
    ]
    assert sequences == [0, 0, 1]


async def test_a_leader_that_moved_is_looked_for() -> None:
    log = Log()
    log.failures = [ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.NOT_ENOUGH_REPLICAS]
    async with producing(log) as producer:
        assert (await (await producer.send("t", b"a", partition=0))).offset == 0
    assert len(log.requests(ApiKey.PRODUCE)) == 3
    assert len(log.requests(ApiKey.METADATA)) >= 3


async def test_order_holds_when_a_batch_is_sent_again() -> None:
    log = Log()
    log.failures = [ErrorCode.NOT_LEADER_OR_FOLLOWER] * 3
    async with producing(log) as producer:
        for index in range(20):
            await producer.send("t", b"%d" % index, partition=0)
            await asyncio.sleep(0)
        await producer.flush()
    assert log.values(0) == [b"%d" % index for index in range(20)]


@pytest.mark.parametrize("code", [ErrorCode.INVALID_RECORD, ErrorCode.TOPIC_AUTHORIZATION_FAILED])
async def test_a_refused_batch_fails_alone(code: ErrorCode) -> None:
    log = Log()
    log.failures = [code]
    async with producing(log) as producer:
        with pytest.raises(KafkaError) as refused:
            await (await producer.send("t", b"a", partition=0))
        assert refused.value.code is code
        await (await producer.send("t", b"b", partition=0))
    assert [(batch.base_sequence, batch.producer_id) for _, batch in log.batches] == [(0, 101)]


async def test_a_lost_sequence_needs_a_new_producer_id() -> None:
    log = Log()
    log.failures = [None, ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER]
    async with producing(log) as producer:
        await (await producer.send("t", b"a", partition=0))
        with pytest.raises(KafkaError):
            await (await producer.send("t", b"b", partition=0))
        await (await producer.send("t", b"c", partition=0))
    assert [(batch.base_sequence, batch.producer_id) for _, batch in log.batches] == [
        (0, 101),
        (0, 102),
    ]


async def test_an_unknown_outcome_needs_a_new_producer_id() -> None:
    """The broker may have the batch or not: the next sequence is unknown."""
    log = Log()
    async with producing(log, delivery_timeout_ms=0) as producer:
        log.failures = [HANG_UP]
        with pytest.raises(KafkaError) as unknown:
            await (await producer.send("t", b"a", partition=0))
        assert unknown.value.ambiguous
        await (await producer.send("t", b"b", partition=0))
    assert [(batch.base_sequence, batch.producer_id) for _, batch in log.batches] == [
        (0, 101),
        (0, 102),
    ]


async def test_without_acknowledgement_nothing_is_known() -> None:
    log = Log()
    async with producing(log, acks=0, idempotent=False) as producer:
        stored = await (await producer.send("t", b"a", partition=0))
        assert stored.offset == -1
        await log.stored.wait()
    assert log.batches[0][1].producer_id == -1
    assert log.producers == 0


async def test_batches_are_compressed() -> None:
    log = Log()
    async with producing(log, compression=Compression.ZSTD) as producer:
        await (await producer.send("t", b"x" * 5000, partition=0))
    assert log.batches[0][1].codec == Compression.ZSTD
    assert log.batches[0][1].size < 1000
    assert log.values(0) == [b"x" * 5000]


async def test_memory_is_bounded() -> None:
    log = Log()
    gate = asyncio.Event()
    answer = log.produce

    async def wait(request: Any) -> Any:
        await gate.wait()
        return answer(request)

    log.scripts[ApiKey.PRODUCE] = wait
    async with producing(log, buffer_bytes=3000) as producer:
        sent = [await producer.send("t", b"x" * 1000, partition=0) for _ in range(2)]
        third = asyncio.ensure_future(producer.send("t", b"x" * 1000, partition=0))
        for _ in range(20):
            await asyncio.sleep(0)
        assert not third.done()
        gate.set()
        sent.append(await third)
        assert [(await result).offset for result in sent] == [0, 1, 2]
        assert producer._buffered == 0 or not all(f.done() for f in sent)


async def test_what_cannot_be_sent_is_refused_at_once() -> None:
    log = Log()
    async with producing(log, request_bytes_max=1000) as producer:
        await producer.send("t", b"x" * (1000 - 61 - 36), partition=0)
        with pytest.raises(KafkaError) as large:
            await producer.send("t", b"x" * (1000 - 61 - 35), partition=0)
        assert large.value.code is ErrorCode.MESSAGE_TOO_LARGE
        with pytest.raises(KafkaError, match="has 2 partitions and no 7"):
            await producer.send("t", b"x", partition=7)
        await producer.close()
        with pytest.raises(KafkaError, match="closed"):
            await producer.send("t", b"x")


async def test_idempotence_needs_all_acknowledgements() -> None:
    log = Log()
    with pytest.raises(KafkaError, match="acks=all"):
        async with producing(log, acks=1):
            pass
