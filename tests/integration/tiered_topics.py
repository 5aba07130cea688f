"""Topics with remote storage whose segments have five records, and one-line calls about them."""

from __future__ import annotations

from skylog.wire.messages.delete_records_request import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from skylog.wire.messages.incremental_alter_configs_request import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from tests.integration.broker_client import Client, batch, values
from tests.waiting import until

SETTINGS = {
    "remote.log.storage.system.enable": "true",
    "rlmm.config.remote.log.metadata.topic.num.partitions": "3",
    "remote.log.manager.task.interval.ms": "100",
    "log.retention.check.interval.ms": "100",
    "log.segment.delete.delay.ms": "0",
}
LATEST, EARLIEST, EARLIEST_LOCAL, LATEST_TIERED, PENDING = -1, -2, -4, -5, -6
TOPIC = 2
PER_SEGMENT = 5
# The records are old: only sizes shall matter.
LOCAL = {
    "internal.segment.bytes": str(PER_SEGMENT * len(batch(b"%06d" % 0))),
    "retention.ms": "-1",
}
TIERED = {**LOCAL, "remote.storage.enable": "true", "local.retention.bytes": "0"}


def fill(client: Client, topic: str, first: int, end: int) -> None:
    for number in range(first, end):
        assert client.produce(topic, b"%06d" % number).error_code == 0


def offsets(client: Client, topic: str, *kinds: int) -> list[int]:
    return [client.offset(topic, kind).offset for kind in kinds]


def until_offset(client: Client, topic: str, kind: int, offset: int) -> None:
    until(lambda: client.offset(topic, kind).offset == offset, f"{kind} is not {offset}")


def read_all(client: Client, topic: str, start: int, end: int) -> None:
    """Every record from ``start`` on, once and in order."""
    at = start
    while at < end:
        answer = client.fetch(topic, at, wait_ms=1000)
        assert answer.error_code == 0, (at, answer)
        found = [value for value in values(answer.records) if int(value) >= at]
        assert found == [b"%06d" % number for number in range(at, at + len(found))]
        at += len(found)


def alter(client: Client, topic: str, **configs: str) -> None:
    changes = [AlterableConfig(name.replace("_", "."), 0, value) for name, value in configs.items()]
    request = IncrementalAlterConfigsRequest([AlterConfigsResource(TOPIC, topic, changes)])
    answer = client.ask(request).responses[0]
    assert answer.error_code == 0, answer


def delete_records(client: Client, topic: str, offset: int) -> int:
    wanted = DeleteRecordsTopic(topic, [DeleteRecordsPartition(0, offset)])
    answer = client.ask(DeleteRecordsRequest([wanted], 30_000)).topics[0].partitions[0]
    assert answer.error_code == 0, answer
    return int(answer.low_watermark)
