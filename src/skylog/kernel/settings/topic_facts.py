"""Documentation of topic and group settings, and the broker settings that are their defaults.

A topic setting without documentation is accepted without effect.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

HOUR_MS: Final = 3_600_000
MINUTE_MS: Final = 60_000


@dataclass(frozen=True, slots=True)
class Synonym:
    """The broker setting that is a topic setting's default, times ``factor`` if its unit is
    larger."""

    name: str
    factor: int = 1


def _log(*names: str) -> tuple[Synonym, ...]:
    return tuple(Synonym(f"log.{name}") for name in names)


# The first one that is set applies.
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
    "remote.copy.lag.bytes": _log("remote.copy.lag.bytes"),
    "remote.copy.lag.ms": _log("remote.copy.lag.ms"),
}

TOPIC_DOCS: Final[Mapping[str, str]] = {
    "cleanup.policy": "delete removes old segments by age and size; compact requires keys and "
    "keeps the newest record of each key.",
    "compression.gzip.level": "Level if compression.type is gzip; -1 is the codec's default.",
    "compression.lz4.level": "Level if compression.type is lz4.",
    "compression.type": "Codec in which records are stored; producer keeps the producer's codec.",
    "compression.zstd.level": "Level if compression.type is zstd.",
    "delete.retention.ms": "How long compaction keeps a tombstone, and a transaction's marker.",
    "diskless.enable": "Whether the topic's data is stored in object storage instead of local "
    "logs; set"
    " when the topic is created.",
    "diskless.tiering.assembler": "Who makes the segments of a diskless topic with "
    "remote.storage.enable: broker is the leader of each partition, external is a job (skylog spark"
    " segments --commit).",
    "file.delete.delay.ms": "Delay between removing a segment from the log and deleting its files.",
    "flush.messages": "Records after which the log is synced to disk.",
    "flush.ms": "Time after which the log is synced to disk.",
    "follower.replication.throttled.replicas": "Replicas, as partition:broker or *, whose followers"
    " fetch within follower.replication.throttled.rate until they are in sync.",
    "index.interval.bytes": "Bytes of records between two entries of the offset index.",
    "leader.replication.throttled.replicas": "Replicas, as partition:broker or *, whose leaders"
    " serve followers within leader.replication.throttled.rate until they are in sync.",
    "local.retention.bytes": "Size of a partition on disk beyond which remote segments are "
    "deleted there; -2 is retention.bytes.",
    "local.retention.ms": "Age beyond which remote segments are deleted on disk; -2 is "
    "retention.ms.",
    "max.compaction.lag.ms": "Maximum age of records before they are compacted.",
    "max.message.bytes": "Largest record batch that is accepted, in its stored form.",
    "message.timestamp.after.max.ms": "How far a record's timestamp may be in the future.",
    "message.timestamp.before.max.ms": "How far a record's timestamp may be in the past.",
    "message.timestamp.type": "CreateTime keeps timestamps as sent, LogAppendTime replaces them.",
    "min.cleanable.dirty.ratio": "Ratio of uncompacted data at which a log is compacted.",
    "min.compaction.lag.ms": "Minimum age of records before they are compacted.",
    "min.insync.replicas": "In-sync replicas without which a write with acks=all is refused.",
    "remote.copy.lag.bytes": "A segment is not copied before this many bytes follow it, unless "
    "remote.copy.lag.ms allows it; 0 is at once, -1 is local.retention.bytes.",
    "remote.copy.lag.ms": "A segment is not copied before its newest record is this old, unless "
    "remote.copy.lag.bytes allows it; 0 is at once, -1 is local.retention.ms.",
    "remote.log.copy.disable": "Whether no more segments become remote; those that are can be read "
    "and expire.",
    "remote.log.delete.on.disable": "Whether remote segments are deleted when remote.storage.enable"
    " becomes false; without it that is refused.",
    "remote.storage.enable": "Whether closed segments are copied to object storage (tiered "
    "storage).",
    "retention.bytes": "Size of a partition beyond which old segments are deleted; -1 is none.",
    "retention.ms": "Age beyond which segments are deleted; -1 is never.",
    "segment.bytes": "Size at which a new segment is rolled.",
    "segment.index.bytes": "Largest size of a segment's offset index.",
    "segment.jitter.ms": "Random part of segment.ms, so that logs do not all roll at the same "
    "time.",
    "segment.ms": "Age at which a new segment is rolled.",
    "unclean.leader.election.enable": "Whether an out-of-sync replica may become leader.",
}

BROKER_QUOTA_DOCS: Final[Mapping[str, str]] = {
    "follower.replication.throttled.rate": "Bytes per second that throttled followers fetch.",
    "leader.replication.throttled.rate": "Bytes per second that leaders send to throttled "
    "followers.",
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
