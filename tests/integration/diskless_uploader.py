"""Another broker, as the coordinators see it: it uploads objects and calls their APIs."""

from __future__ import annotations

import random
import time
from typing import Any

from skylog.kernel.ids import Uuid
from skylog.objects.keys import ObjectKey
from skylog.testing import Broker
from skylog.wire.messages import diskless_commit_file_request as commit
from skylog.wire.messages import diskless_delete_records_request as delete
from skylog.wire.messages import diskless_describe_files_request as describe
from skylog.wire.messages import diskless_find_batches_request as find
from skylog.wire.messages import diskless_list_offsets_request as offsets
from skylog.wire.messages.create_topics_request import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from skylog.wire.records import encode_batch
from tests.integration.wire_client import Wire

SETTINGS = {
    "listeners": "PLAINTEXT://127.0.0.1:0,BROKERS://127.0.0.1:0,CONTROLLER://127.0.0.1:0",
    "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,BROKERS:PLAINTEXT,CONTROLLER:PLAINTEXT",
    "inter.broker.listener.name": "BROKERS",
    "diskless.metadata.topic.num.partitions": "1",
    "log.level": "ERROR",
}
COORDINATOR_TYPE = 100
RNG = random.Random(1164)


def new_topic(wire: Wire, name: str, partitions: int = 1, **configs: str) -> Uuid:
    config = {"diskless.enable": "true", **configs}
    wanted = CreatableTopic(
        name, partitions, 1, configs=[CreatableTopicConfig(k, v) for k, v in config.items()]
    )
    created = wire.ask(CreateTopicsRequest([wanted])).topics[0]
    assert created.error_code == 0, created
    return Uuid(created.topic_id)


def new_key(age_ms: int = 0) -> str:
    return str(ObjectKey.new("wal", int(time.time() * 1000) - age_ms, RNG))


class Upload:
    """A WAL object of another broker: a zero byte, then batches one after the other."""

    def __init__(self, key: str | None = None) -> None:
        self.key = key or new_key()
        self.data = bytearray(b"\0")
        self.batches: list[commit.DisklessCommitBatch] = []

    def add(
        self,
        topic_id: Uuid,
        values: list[bytes],
        partition: int = 0,
        *,
        timestamp: int = 1_700_000_000_000,
        timestamp_type: int = 0,
        producer: tuple[int, int, int] = (-1, -1, -1),
    ) -> Upload:
        producer_id, epoch, sequence = producer
        batch = encode_batch(
            [(None, value) for value in values],
            timestamp=timestamp,
            producer_id=producer_id,
            producer_epoch=epoch,
            base_sequence=sequence,
        )
        self.batches.append(
            commit.DisklessCommitBatch(
                magic=2,
                topic_id=topic_id,
                partition_index=partition,
                byte_offset=len(self.data),
                size=len(batch),
                last_offset=len(values) - 1,
                batch_max_timestamp=timestamp,
                timestamp_type=timestamp_type,
                producer_id=producer_id,
                producer_epoch=epoch,
                base_sequence=sequence,
                last_sequence=sequence + len(values) - 1 if sequence >= 0 else -1,
            )
        )
        self.data += batch
        return self

    def store(self, broker: Broker) -> Upload:
        path = broker.directory / "diskless-objects" / self.key
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(self.data)
        return self

    def request(self, **more: Any) -> commit.DisklessCommitFileRequest:
        fields: dict[str, Any] = {
            "object_key": self.key,
            "object_format": 1,
            "file_size": len(self.data),
            "owner_ids": [0],
            "batches": self.batches,
            "uploader_broker_id": 7,
        }
        return commit.DisklessCommitFileRequest(**{**fields, **more})


def found(wire: Wire, topic_id: Uuid, offset: int = 0, *, partition: int = 0, **limits: int) -> Any:
    """The response for one partition."""
    part = find.DisklessFindBatchesPartition(
        partition, offset, limits.get("partition_bytes", 1 << 20)
    )
    request = find.DisklessFindBatchesRequest(
        limits.get("fetch_bytes", 1 << 20),
        limits.get("batches", 0),
        [find.DisklessFindBatchesTopic(topic_id, [part])],
    )
    answer = wire.ask(request)
    assert answer.throttle_time_ms == 0
    return answer.topics[0].partitions[0]


def listed(wire: Wire, topic_id: Uuid, timestamp: int) -> tuple[int, int, int]:
    part = offsets.DisklessListOffsetsPartition(0, timestamp)
    request = offsets.DisklessListOffsetsRequest(
        [offsets.DisklessListOffsetsTopic(topic_id, [part])]
    )
    one = wire.ask(request).topics[0].partitions[0]
    return one.error_code, one.timestamp, one.offset


def deleted(wire: Wire, topic_id: Uuid, offset: int) -> tuple[int, int]:
    part = delete.DisklessDeleteRecordsPartition(0, offset)
    request = delete.DisklessDeleteRecordsRequest(
        [delete.DisklessDeleteRecordsTopic(topic_id, [part])]
    )
    one = wire.ask(request).topics[0].partitions[0]
    return one.error_code, one.low_watermark


def described(wire: Wire, *keys: str) -> list[tuple[int, bool]]:
    request = describe.DisklessDescribeFilesRequest([describe.DisklessFile(key) for key in keys])
    answer = wire.ask(request)
    assert [file.object_key for file in answer.files] == list(keys)
    return [(file.error_code, file.has_live_batches) for file in answer.files]
