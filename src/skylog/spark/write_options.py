"""Options of writes: those of Spark's Kafka sink, and a few of ours.

Pure. Names are case-insensitive. Every error names the option, its value and the allowed values.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from skylog.bulk.encode import BATCH_BYTES_DEFAULT
from skylog.bulk.properties import WITHOUT_EFFECT
from skylog.bulk.staging import OBJECT_BYTES_DEFAULT
from skylog.bulk.store import STORAGE_URL
from skylog.bulk.writer import WriteContext
from skylog.kernel.errors import ConfigError
from skylog.kernel.limits import STAGED_OBJECT_BYTES_MAX, STAGED_WRITER_CHARACTERS_MAX
from skylog.kernel.settings.storage import FACTS as STORAGE_FACTS
from skylog.spark.client_options import PREFIX, client_properties
from skylog.wire.batch import Compression

CODECS: Final = {codec.name.lower(): codec for codec in Compression}
# Prefixes of writer ids: streams and batches must not share ids.
WRITE_ID_CHARACTERS_MAX: Final = STAGED_WRITER_CHARACTERS_MAX - len("batch-")
_STORAGE: Final = (STORAGE_URL, *(name for name, *_ in STORAGE_FACTS))
_COMPRESSION: Final = ("compression", "kafka.compression.type")
# Spark's own options, and those that concern only readers.
_IGNORED: Final = ("path", "checkpointLocation", "queryName", "includeHeaders")
KNOWN: Final = (
    "topic",
    "writeId",
    "write.batch.bytes",
    "write.object.bytes",
    "compression",
    *_IGNORED,
    *_STORAGE,
)
# Settings that tune how a Java producer batches and sends; here, acknowledged data is always
# durable.
_PRODUCER_TUNING: Final = frozenset(
    {
        "acks",
        "batch.size",
        "buffer.memory",
        "compression.gzip.level",
        "compression.lz4.level",
        "compression.type",
        "compression.zstd.level",
        "delivery.timeout.ms",
        "enable.idempotence",
        "linger.ms",
        "max.block.ms",
        "max.in.flight.requests.per.connection",
        "max.request.size",
        "partitioner.adaptive.partitioning.enable",
        "partitioner.availability.timeout.ms",
    }
)
_REFUSED: Final[Mapping[str, str]] = {
    "interceptor.classes": "transform the rows of the DataFrame instead",
    "key.serializer": "make the column key binary or string",
    "value.serializer": "make the column value binary or string",
    "partitioner.class": "fill the column partition instead",
    "partitioner.ignore.keys": "fill the column partition instead",
    "transactional.id": "writes to diskless topics are exactly once without transactions",
}


@dataclass(frozen=True, slots=True)
class WriteOptions:
    """All options of a query's sink."""

    client: Mapping[str, str] = field(repr=False)
    storage: Mapping[str, str] = field(repr=False)
    topic: str | None
    write_id: str | None
    codec: Compression
    batch_bytes: int
    object_bytes: int

    def context(self) -> WriteContext:
        """What tasks need."""
        return WriteContext(
            self.client, self.storage, self.topic, self.codec, self.batch_bytes, self.object_bytes
        )


def parse_write(options: Mapping[str, str], *, streaming: bool) -> WriteOptions:
    """Options of a batch or streaming write; ConfigError if invalid."""
    given = {str(key).lower(): str(value) for key, value in options.items()}
    known = {name.lower(): name for name in KNOWN}
    unknown = sorted(key for key in given if key not in known and not key.startswith(PREFIX))
    if unknown:
        raise ConfigError(_unknown(unknown, known))
    return WriteOptions(
        client=client_properties(given, _REFUSED, WITHOUT_EFFECT | _PRODUCER_TUNING),
        storage={name: given[name.lower()] for name in _STORAGE if name.lower() in given},
        topic=_topic(given),
        write_id=_write_id(given, streaming),
        codec=_codec(given),
        batch_bytes=_number(given, "write.batch.bytes", BATCH_BYTES_DEFAULT, 1024, 2**30),
        object_bytes=_number(
            given,
            "write.object.bytes",
            OBJECT_BYTES_DEFAULT,
            64 * 1024,
            STAGED_OBJECT_BYTES_MAX,
        ),
    )


def _unknown(unknown: list[str], known: Mapping[str, str]) -> str:
    hints = []
    for key in unknown:
        near = difflib.get_close_matches(key, known, 1)
        hints.append(f"{key} (is it {known[near[0]]}?)" if near else key)
    return (
        f"unknown options {', '.join(hints)}; allowed in writes are {', '.join(sorted(KNOWN))}"
        " and kafka.* for the settings of a Kafka client"
    )


def _topic(given: Mapping[str, str]) -> str | None:
    topic = given.get("topic")
    if topic is not None and not topic.strip():
        raise ConfigError("option topic is empty; allowed is the name of a topic")
    return None if topic is None else topic.strip()


def _write_id(given: Mapping[str, str], streaming: bool) -> str | None:
    write_id = given.get("writeid")
    if write_id is None:
        return None
    if streaming:
        raise ConfigError(
            "option writeId is allowed in batch writes only: a stream has its checkpoint"
        )
    if not 1 <= len(write_id.strip()) == len(write_id) <= WRITE_ID_CHARACTERS_MAX:
        raise ConfigError(
            f"option writeId is {write_id!r}; allowed are 1 to {WRITE_ID_CHARACTERS_MAX} characters"
            " without leading or trailing spaces"
        )
    return write_id


def _codec(given: Mapping[str, str]) -> Compression:
    named = {name: given[name].strip().lower() for name in _COMPRESSION if name in given}
    if len(set(named.values())) > 1:
        said = " and ".join(f"{name}={value}" for name, value in named.items())
        raise ConfigError(f"options {said} contradict each other")
    for name, value in named.items():
        if value not in CODECS:
            raise ConfigError(f"option {name} is {value!r}; allowed are {', '.join(CODECS)}")
        return CODECS[value]
    return Compression.NONE


def _number(given: Mapping[str, str], name: str, default: int, least: int, most: int) -> int:
    text = given.get(name.lower())
    if text is None:
        return default
    number = text.strip()
    good = number.isascii() and number.isdigit() and len(number) < 20
    if not good or not least <= int(number) <= most:
        raise ConfigError(f"option {name} is {text!r}; allowed are {least} to {most}")
    return int(number)
