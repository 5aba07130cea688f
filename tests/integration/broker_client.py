"""A broker's APIs as one-line calls over a plain socket."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from skylog.kernel.ids import ZERO_UUID, Uuid
from skylog.wire.batch import split_batches
from skylog.wire.messages.create_topics_request import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from skylog.wire.messages.delete_topics_request import DeleteTopicsRequest, DeleteTopicState
from skylog.wire.messages.fetch_request import (
    FetchPartition,
    FetchRequest,
    FetchTopic,
    ForgottenTopic,
)
from skylog.wire.messages.list_offsets_request import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from skylog.wire.messages.metadata_request import MetadataRequest, MetadataRequestTopic
from skylog.wire.messages.produce_request import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from skylog.wire.records import decode_records, encode_batch
from tests.integration.wire_client import Wire

NOW = 1_700_000_000_000
BYTES_MAX = 10_000_000
# The latest versions with topic names: tests would have to look up ids first.
PRODUCE_BY_NAME = 12
FETCH_BY_NAME = 12


def batch(*values: bytes, timestamp: int = NOW, **more: Any) -> bytes:
    return encode_batch([(None, value) for value in values], timestamp=timestamp, **more)


def produce_request(
    parts: Iterable[tuple[str, int, bytes | None]], acks: int = -1, **more: Any
) -> ProduceRequest:
    topics: dict[str, TopicProduceData] = {}
    for topic, index, records in parts:
        data = topics.setdefault(topic, TopicProduceData(topic))
        data.partition_data.append(PartitionProduceData(index, records))
    return ProduceRequest(acks=acks, timeout_ms=30_000, topic_data=list(topics.values()), **more)


def fetch_request(
    parts: Iterable[tuple[str | Uuid, int, int]],
    *,
    wait_ms: int = 0,
    min_bytes: int = 1,
    max_bytes: int = BYTES_MAX,
    partition_max_bytes: int = BYTES_MAX,
    session: tuple[int, int] = (0, -1),
    forget: Iterable[tuple[str, int]] = (),
    epoch: int = -1,
    last_epoch: int = -1,
    **more: Any,
) -> FetchRequest:
    topics = []
    for topic, index, offset in parts:
        wanted = FetchPartition(
            index,
            current_leader_epoch=epoch,
            fetch_offset=offset,
            last_fetched_epoch=last_epoch,
            partition_max_bytes=partition_max_bytes,
        )
        by_id = isinstance(topic, Uuid)
        named = FetchTopic("", topic, [wanted]) if by_id else FetchTopic(topic, ZERO_UUID, [wanted])
        topics.append(named)
    return FetchRequest(
        max_wait_ms=wait_ms,
        min_bytes=min_bytes,
        max_bytes=max_bytes,
        session_id=session[0],
        session_epoch=session[1],
        topics=topics,
        forgotten_topics_data=[ForgottenTopic(t, ZERO_UUID, [index]) for t, index in forget],
        **more,
    )


class Client(Wire):
    """One connection, with a broker's APIs as methods."""

    def create(
        self, topic: str, partitions: int = 1, configs: dict[str, str] | None = None
    ) -> Uuid:
        settings = [CreatableTopicConfig(key, value) for key, value in (configs or {}).items()]
        wanted = CreatableTopic(topic, partitions, 1, configs=settings)
        answer = self.ask(CreateTopicsRequest(topics=[wanted], timeout_ms=30_000)).topics[0]
        assert answer.error_code == 0, answer
        found: Uuid = answer.topic_id
        return found

    def delete(self, topic: str) -> None:
        request = DeleteTopicsRequest(
            topics=[DeleteTopicState(topic, ZERO_UUID)], timeout_ms=30_000
        )
        answer = self.ask(request).responses[0]
        assert answer.error_code == 0, answer

    def metadata(self, *topics: str, create: bool = False, version: int | None = None) -> Any:
        wanted = [MetadataRequestTopic(ZERO_UUID, topic) for topic in topics]
        return self.ask(MetadataRequest(wanted, create), version)

    def produce_all(
        self, parts: Iterable[tuple[str, int, bytes | None]], acks: int = -1, **more: Any
    ) -> dict[tuple[str, int], Any]:
        """The responses by topic and partition."""
        answer = self.ask(produce_request(parts, acks, **more), PRODUCE_BY_NAME)
        return {(t.name, p.index): p for t in answer.responses for p in t.partition_responses}

    def produce(
        self, topic: str, *values: bytes, index: int = 0, acks: int = -1, **more: Any
    ) -> Any:
        return self.append(topic, batch(*values, **more), index=index, acks=acks)

    def append(
        self, topic: str, records: bytes | None, *, index: int = 0, acks: int = -1, **more: Any
    ) -> Any:
        return self.produce_all([(topic, index, records)], acks, **more)[topic, index]

    def fetch_all(self, *parts: tuple[str | Uuid, int, int], **options: Any) -> Any:
        version = options.pop("version", FETCH_BY_NAME)
        return self.ask(fetch_request(parts, **options), version)

    def fetch(self, topic: str, offset: int = 0, index: int = 0, **options: Any) -> Any:
        answer = self.fetch_all((topic, index, offset), **options)
        assert answer.error_code == 0, answer
        return answer.responses[0].partitions[0]

    def offset(self, topic: str, timestamp: int, *, version: int | None = None, **more: Any) -> Any:
        wanted = ListOffsetsTopic(topic, [ListOffsetsPartition(0, -1, timestamp)])
        request = ListOffsetsRequest(topics=[wanted], **{"replica_id": -1, **more})
        return self.ask(request, version).topics[0].partitions[0]


def values(records: Any) -> list[bytes]:
    return [
        bytes(record.value or b"")
        for found in split_batches(records or b"")
        for record in decode_records(found)
    ]


def told(answer: Any) -> dict[tuple[str, int], Any]:
    """The partitions of a fetch response."""
    return {(t.topic, p.partition_index): p for t in answer.responses for p in t.partitions}
