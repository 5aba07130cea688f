"""Valid and invalid record batches, and the requests with them."""

from __future__ import annotations

import struct
from typing import Any

from crc32c import crc32c

from skylog.wire.apis import ApiKey
from skylog.wire.records import encode_batch
from tests.interop.wire import Side

NOW = 1_700_000_000_000
_NOT_LEADER = 6
CRC_AT, ATTRIBUTES_AT = 17, 21
LAST_DELTA_AT, BASE_TIMESTAMP_AT, MAX_TIMESTAMP_AT = 23, 27, 35
PRODUCER_AT, EPOCH_AT, SEQUENCE_AT, COUNT_AT = 43, 51, 53, 57
MAGIC_AT, LENGTH_AT = 16, 8


def batch(*values: bytes | None, at: int = NOW, **more: Any) -> bytes:
    """A batch of records without keys, a millisecond apart."""
    timestamps = more.pop("timestamps", [at + i for i in range(len(values))])
    pairs = [(None, value) for value in values]
    return encode_batch(pairs, timestamp=at, timestamps=timestamps, **more)


def patched(data: bytes, position: int, form: str, value: int) -> bytes:
    """The batch with a field of its header changed, and a matching checksum."""
    out = bytearray(data)
    struct.pack_into(form, out, position, value)
    return checked(bytes(out))


def checked(data: bytes) -> bytes:
    out = bytearray(data)
    struct.pack_into(">I", out, CRC_AT, crc32c(bytes(out[ATTRIBUTES_AT:])))
    return bytes(out)


def partitions(name: str, *records: tuple[int, bytes | None]) -> list[dict[str, Any]]:
    data = [{"index": index, "records": found} for index, found in records]
    return [{"name": name, "partition_data": data}]


def produce(
    side: Side,
    label: str,
    name: str,
    *records: bytes | None,
    version: int = 12,
    acks: int = -1,
    transactional_id: str | None = None,
    index: int = 0,
) -> Any:
    """Produce to a partition and compare the response."""
    return side.call(
        ApiKey.PRODUCE,
        version,
        label=label,
        acks=acks,
        timeout_ms=5_000,
        transactional_id=transactional_id,
        topic_data=partitions(name, *((index, found) for found in records)),
    )


def fill(side: Side, name: str, *records: bytes, index: int = 0) -> None:
    """Produce without comparing; retry until the broker knows that it leads."""
    for found in records:
        error = _NOT_LEADER
        while error == _NOT_LEADER:
            data = partitions(name, (index, found))
            answer = side.quiet(ApiKey.PRODUCE, 12, acks=-1, timeout_ms=5_000, topic_data=data)
            error = answer.responses[0].partition_responses[0].error_code
        assert error == 0, answer
