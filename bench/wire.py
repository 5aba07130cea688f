"""Decode and encode typical messages, compared with kio.

python -m bench.wire
"""

from __future__ import annotations

import io
import os
import sys
import time
from collections.abc import Callable
from typing import NamedTuple

from kio.index import load_entity_module
from kio.serial import entity_reader, entity_writer
from kio.static.constants import EntityType

from skylog.kernel.ids import Uuid
from skylog.wire.apis import decode_request_header, encode_request_header
from skylog.wire.codec import decode, encode, encode_parts
from skylog.wire.frames import FrameAssembler
from skylog.wire.messages import (
    fetch_request,
    fetch_response,
    metadata_response,
    produce_request,
    produce_response,
)
from skylog.wire.schema import Message

SECONDS_PER_ROW = 0.3
TOPIC_ID = Uuid(bytes(range(16)))


class Row(NamedTuple):
    """Microseconds per operation; None where kio has no such operation."""

    name: str
    microseconds: float
    kio_microseconds: float | None


def produce(partitions: int, record_bytes: int) -> Message:
    parts = [
        produce_request.PartitionProduceData(index=i, records=os.urandom(record_bytes))
        for i in range(partitions)
    ]
    topic = produce_request.TopicProduceData(topic_id=TOPIC_ID, partition_data=parts)
    return produce_request.ProduceRequest(acks=-1, timeout_ms=30_000, topic_data=[topic])


def produced(partitions: int) -> Message:
    parts = [
        produce_response.PartitionProduceResponse(index=i, base_offset=10**6, log_start_offset=0)
        for i in range(partitions)
    ]
    topic = produce_response.TopicProduceResponse(topic_id=TOPIC_ID, partition_responses=parts)
    return produce_response.ProduceResponse(responses=[topic])


def fetch(partitions: int) -> Message:
    parts = [
        fetch_request.FetchPartition(
            partition=i, current_leader_epoch=3, fetch_offset=10**6, partition_max_bytes=1 << 20
        )
        for i in range(partitions)
    ]
    topics = [fetch_request.FetchTopic(topic_id=TOPIC_ID, partitions=parts)] if parts else []
    return fetch_request.FetchRequest(
        max_wait_ms=500, min_bytes=1, max_bytes=50 << 20, session_id=7, session_epoch=9,
        topics=topics,
    )  # fmt: skip


def fetched(partitions: int, record_bytes: int) -> Message:
    parts = [
        fetch_response.PartitionData(
            partition_index=i, high_watermark=10**6, last_stable_offset=10**6, log_start_offset=0,
            aborted_transactions=None, records=os.urandom(record_bytes),
        )
        for i in range(partitions)
    ]  # fmt: skip
    topic = fetch_response.FetchableTopicResponse(topic_id=TOPIC_ID, partitions=parts)
    return fetch_response.FetchResponse(session_id=7, responses=[topic])


def metadata(topics: int, partitions: int) -> Message:
    brokers = [
        metadata_response.MetadataResponseBroker(i, f"broker-{i}.example.com", 9092, "rack-a")
        for i in range(3)
    ]
    parts = [
        metadata_response.MetadataResponsePartition(
            partition_index=i, leader_id=i % 3, leader_epoch=5, replica_nodes=[0, 1, 2],
            isr_nodes=[0, 1, 2],
        )
        for i in range(partitions)
    ]  # fmt: skip
    many = [
        metadata_response.MetadataResponseTopic(
            name=f"orders-{i}", topic_id=TOPIC_ID, partitions=parts
        )
        for i in range(topics)
    ]
    return metadata_response.MetadataResponse(
        brokers=brokers, cluster_id="4L6g3nShT-eMCtK--X86sw", controller_id=1, topics=many
    )


CASES: list[tuple[str, Message, int]] = [
    ("produce 1 x 1 KiB", produce(1, 1 << 10), 13),
    ("produce 1 x 1 MiB", produce(1, 1 << 20), 13),
    ("produce 10 x 16 KiB", produce(10, 16 << 10), 13),
    ("produce response 10", produced(10), 13),
    ("fetch of a session, nothing new", fetch(0), 18),
    ("fetch 10", fetch(10), 18),
    ("fetch response 1 x 64 KiB", fetched(1, 64 << 10), 18),
    ("fetch response 10 x 64 KiB", fetched(10, 64 << 10), 18),
    ("metadata 10 topics x 6", metadata(10, 6), 13),
]


def timed(action: Callable[[], object]) -> float:
    """Microseconds of one call: the best of several rounds, to reduce the effect of other work."""
    action()
    start = time.perf_counter()
    action()
    count = max(1, int(SECONDS_PER_ROW / 5 / max(time.perf_counter() - start, 1e-7)))
    best = float("inf")
    for _ in range(5):
        start = time.perf_counter()
        for _ in range(count):
            action()
        best = min(best, time.perf_counter() - start)
    return best / count * 1e6


def message_rows(name: str, message: Message, version: int) -> list[Row]:
    cls = type(message)
    data = encode(message, version)
    view = memoryview(bytearray(data))
    kind = EntityType.request if cls.TYPE == "request" else EntityType.response
    api = cls.__module__.rpartition(".")[2].rpartition("_")[0]
    theirs = getattr(load_entity_module(api, version, kind), cls.__name__)
    reader, writer = entity_reader(theirs), entity_writer(theirs)
    entity, _ = reader(data, 0)

    def write() -> None:
        buffer = io.BytesIO()
        writer(buffer, entity)

    return [
        Row(
            f"decode {name}",
            timed(lambda: decode(cls, view, version)),
            timed(lambda: reader(data, 0)),
        ),
        Row(f"encode {name}", timed(lambda: encode_parts(message, version)), timed(write)),
    ]


def frame_rows() -> list[Row]:
    header = encode_request_header(1, 18, 7, "consumer-1")
    frame = memoryview(header)
    body = bytes(100)
    small = b"".join(len(body).to_bytes(4, "big") + body for _ in range(600))

    def many_small() -> None:
        assembler = FrameAssembler(1 << 20)
        assembler.get_buffer(-1)[: len(small)] = small
        assembler.buffer_updated(len(small))

    return [
        Row("request header", timed(lambda: decode_request_header(frame)), None),
        Row("600 frames of 100 bytes in one read", timed(many_small), None),
    ]


def run() -> list[Row]:
    rows = [row for case in CASES for row in message_rows(*case)]
    return rows + frame_rows()


def main() -> int:
    print(f"{'':40}{'skylog us':>12}{'kio us':>12}{'ratio':>8}")
    for row in run():
        if row.kio_microseconds is None:
            print(f"{row.name:40}{row.microseconds:>12.2f}")
        else:
            ratio = row.kio_microseconds / row.microseconds
            print(
                f"{row.name:40}{row.microseconds:>12.2f}{row.kio_microseconds:>12.2f}{ratio:>8.1f}"
            )
    return 0


if __name__ == "__main__":
    sys.exit(main())
