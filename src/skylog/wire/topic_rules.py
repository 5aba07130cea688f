"""The requirements of a topic's settings on produced batches."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from skylog.wire.batch import Compression
from skylog.wire.walker_reference import ANY_EARLIEST, ANY_LATEST

LOG_APPEND_TIME: Final = "LogAppendTime"
PRODUCER: Final = "producer"
TARGET_CODECS: Final = {
    "uncompressed": Compression.NONE,
    "gzip": Compression.GZIP,
    "snappy": Compression.SNAPPY,
    "lz4": Compression.LZ4,
    "zstd": Compression.ZSTD,
}
_INT32_MAX: Final = 2**31 - 1


@dataclass(frozen=True, slots=True)
class TopicRules:
    """The settings of a topic (Kafka's names and values) that apply to its batches."""

    message_bytes_max: int = 1_048_588
    compression_type: str = PRODUCER
    timestamp_type: str = "CreateTime"
    timestamp_before_max_ms: int = ANY_LATEST
    timestamp_after_max_ms: int = 3_600_000
    compacted: bool = False
    # produce.validation: whether the records are checked, or only the header.
    full: bool = True
    gzip_level: int = -1
    lz4_level: int = 9
    zstd_level: int = 3
    segment_bytes: int = 2**31 - 1
    # What a batch may contain if it can be stored unchanged; see ``validation._plain``.
    plain_bytes_max: int = field(init=False, repr=False)

    def __post_init__(self) -> None:
        as_it_came = (
            self.full
            and self.timestamp_type != LOG_APPEND_TIME
            and self.target_codec(Compression.NONE) == Compression.NONE
        )
        size = min(self.message_bytes_max, self.segment_bytes, _INT32_MAX) if as_it_came else 0
        object.__setattr__(self, "plain_bytes_max", size)

    def target_codec(self, codec: int) -> int:
        return TARGET_CODECS.get(self.compression_type, codec)

    def level(self, codec: int) -> int | None:
        levels = {
            Compression.GZIP: self.gzip_level,
            Compression.LZ4: self.lz4_level,
            Compression.ZSTD: self.zstd_level,
        }
        return levels.get(Compression(codec))

    def timestamps(self, now_ms: int) -> tuple[int, int]:
        """The earliest and the latest timestamp that a record may have at ``now_ms``."""
        if self.timestamp_type == LOG_APPEND_TIME:
            return ANY_EARLIEST, ANY_LATEST
        earliest = max(now_ms - self.timestamp_before_max_ms, ANY_EARLIEST)
        return earliest, min(now_ms + self.timestamp_after_max_ms, ANY_LATEST)
