"""What the settings of topics and groups are for, and which broker settings are their defaults.

A topic setting that is missing in the docs is accepted without effect.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

HOUR_MS: Final = 3_600_000
MINUTE_MS: Final = 60_000


@dataclass(frozen=True, slots=True)
class Synonym:
    """A broker setting that stands in for a topic's, times ``factor`` when its unit is larger."""

    name: str
    factor: int = 1


def _log(*names: str) -> tuple[Synonym, ...]:
    return tuple(Synonym(f"log.{name}") for name in names)


# The first one that is set decides.
TOPIC_SYNONYMS: Final[Mapping[str, tuple[Synonym, ...]]] = {
    "segment.bytes": _log("segment.bytes"),
    "segment.ms": (Synonym("log.roll.ms"), Synonym("log.roll.hours", HOUR_MS)),
    "segment.jitter.ms": (
        Synonym("log.roll.jitter.ms"),
        Synonym("log.roll.jitter.hours", HOUR_MS),
    ),
    "segment.index.bytes": _log("index.size.max.bytes"),
    "flush.messages": _log("flush.interval.messages"),
    "flush.ms": _log("flush.interval.ms", "flush.scheduler.interval.ms"),
    "retention.bytes": _log("retention.bytes"),
    "retention.ms": (
        Synonym("log.retention.ms"),
        Synonym("log.retention.minutes", MINUTE_MS),
        Synonym("log.retention.hours", HOUR_MS),
    ),
    "max.message.bytes": (Synonym("message.max.bytes"),),
    "index.interval.bytes": _log("index.interval.bytes"),
    "delete.retention.ms": _log("cleaner.delete.retention.ms"),
    "min.compaction.lag.ms": _log("cleaner.min.compaction.lag.ms"),
    "max.compaction.lag.ms": _log("cleaner.max.compaction.lag.ms"),
    "file.delete.delay.ms": _log("segment.delete.delay.ms"),
    "min.cleanable.dirty.ratio": _log("cleaner.min.cleanable.ratio"),
    "cleanup.policy": _log("cleanup.policy"),
    "unclean.leader.election.enable": (Synonym("unclean.leader.election.enable"),),
    "min.insync.replicas": (Synonym("min.insync.replicas"),),
    "compression.type": (Synonym("compression.type"),),
    "compression.gzip.level": (Synonym("compression.gzip.level"),),
    "compression.lz4.level": (Synonym("compression.lz4.level"),),
    "compression.zstd.level": (Synonym("compression.zstd.level"),),
    "preallocate": _log("preallocate"),
    "message.timestamp.type": _log("message.timestamp.type"),
    "message.timestamp.before.max.ms": _log("message.timestamp.before.max.ms"),
    "message.timestamp.after.max.ms": _log("message.timestamp.after.max.ms"),
    "local.retention.ms": _log("local.retention.ms"),
    "local.retention.bytes": _log("local.retention.bytes"),
    "diskless.enable": _log("diskless.enable"),
}

TOPIC_DOCS: Final[Mapping[str, str]] = {
    "cleanup.policy": "delete removes old segments by age and size; compact demands keys and keeps"
    " the newest record of each.",
    "compression.gzip.level": "Level when compression.type is gzip; -1 is the codec's own.",
    "compression.lz4.level": "Level when compression.type is lz4.",
    "compression.type": "Codec that records are stored in; producer keeps what was sent.",
    "compression.zstd.level": "Level when compression.type is zstd.",
    "delete.retention.ms": "How long compaction keeps a tombstone, and a transaction's marker.",
    "diskless.enable": "Whether the topic's data goes to object storage instead of local logs; set"
    " when the topic is created.",
    "file.delete.delay.ms": "Delay between dropping a segment and deleting its files.",
    "flush.messages": "Records after which the log is synced to disk.",
    "flush.ms": "Time after which the log is synced to disk.",
    "follower.replication.throttled.replicas": "Replicas, as partition:broker or *, whose followers"
    " fetch within follower.replication.throttled.rate until they are in sync.",
    "index.interval.bytes": "Bytes of records between two entries of the offset index.",
    "leader.replication.throttled.replicas": "Replicas, as partition:broker or *, whose leaders"
    " serve followers within leader.replication.throttled.rate until they are in sync.",
    "max.compaction.lag.ms": "Age at which records are compacted at the latest, however few.",
    "max.message.bytes": "Largest record batch that is accepted, as it is stored.",
    "message.timestamp.after.max.ms": "How far a record's timestamp may lie in the future.",
    "message.timestamp.before.max.ms": "How far a record's timestamp may lie in the past.",
    "message.timestamp.type": "CreateTime keeps timestamps as sent, LogAppendTime replaces them.",
    "min.cleanable.dirty.ratio": "Part of a log that must be new before it is compacted again.",
    "min.compaction.lag.ms": "Age below which records are not compacted.",
    "min.insync.replicas": "In-sync replicas without which a write with acks=all is refused.",
    "retention.bytes": "Size of a partition beyond which old segments are deleted; -1 is none.",
    "retention.ms": "Age beyond which segments are deleted; -1 is never.",
    "segment.bytes": "Size at which a new segment begins.",
    "segment.index.bytes": "Largest size of a segment's offset index.",
    "segment.jitter.ms": "Random part of segment.ms, so that not all logs roll at once.",
    "segment.ms": "Age at which a new segment begins.",
    "unclean.leader.election.enable": "Whether a replica that lags may become leader.",
}

BROKER_QUOTA_DOCS: Final[Mapping[str, str]] = {
    "follower.replication.throttled.rate": "Bytes per second that throttled followers fetch.",
    "leader.replication.throttled.rate": "Bytes per second that leaders send to throttled ones.",
}

# A group's settings and the broker settings that are their defaults.
GROUP_SYNONYMS: Final[Mapping[str, str]] = {
    f"{kind}.{name}": f"group.{kind}.{name}"
    for kind, names in {
        "consumer": ("session.timeout.ms", "heartbeat.interval.ms", "assignment.interval.ms"),
        "share": (
            "session.timeout.ms",
            "heartbeat.interval.ms",
            "assignment.interval.ms",
            "record.lock.duration.ms",
            "delivery.count.limit",
            "partition.max.record.locks",
        ),
        "streams": (
            "session.timeout.ms",
            "heartbeat.interval.ms",
            "assignment.interval.ms",
            "num.standby.replicas",
            "initial.rebalance.delay.ms",
        ),
    }.items()
    for name in names
}


def _defaults_of_topics(docs: Mapping[str, str]) -> dict[str, str]:
    found: dict[str, str] = {}
    for topic_name, synonyms in TOPIC_SYNONYMS.items():
        for synonym in synonyms if topic_name in docs else ():
            found.setdefault(synonym.name, f"Default of {topic_name}: {docs[topic_name]}")
    return found


TOPIC_BROKER_DOCS: Final[Mapping[str, str]] = _defaults_of_topics(TOPIC_DOCS)
