"""Settings of diskless topics: object storage, writer, reader, coordinators, maintenance."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from skylog.kernel.settings.fields import setting

# name, type, default, allowed values; the same notation as Kafka's facts.
FACTS: Final[tuple[tuple[str, str, str | None, str], ...]] = (
    ("diskless.storage.url", "STRING", "", ""),
    ("diskless.control.plane", "STRING", "topic", "[topic, postgres, memory]"),
    ("diskless.control.plane.postgres.connection.string", "PASSWORD", None, ""),
    ("diskless.control.plane.postgres.max.connections", "INT", "10", "[1,...]"),
    ("diskless.produce.commit.interval.ms", "INT", "250", "[1,...]"),
    ("diskless.produce.buffer.max.bytes", "INT", "4194304", "[1,...]"),
    ("diskless.produce.adaptive", "BOOLEAN", "true", ""),
    ("diskless.produce.puts.per.second", "DOUBLE", "-1", ""),
    ("diskless.produce.inflight.max.bytes", "LONG", "67108864", "[1,...]"),
    ("diskless.produce.upload.concurrency", "INT", "8", "[1,...]"),
    ("diskless.commit.age.max.ms", "LONG", "600000", "[1000,...]"),
    ("diskless.fetch.cache.max.bytes", "LONG", "134217728", "[0,...]"),
    ("diskless.fetch.concurrency", "INT", "32", "[1,...]"),
    ("diskless.fetch.lagging.concurrency", "INT", "16", "[1,...]"),
    ("diskless.fetch.hedge.ms", "INT", "0", "[0,...]"),
    ("diskless.local.segments.enable", "BOOLEAN", "false", ""),
    ("diskless.local.segments.retention.bytes", "LONG", "134217728", "[65536,...]"),
    ("diskless.local.segments.retention.ms", "LONG", "-1", "[-1,...]"),
    ("diskless.local.segments.max.bytes", "LONG", "10737418240", "[65536,...]"),
    ("diskless.metadata.topic.num.partitions", "INT", "12", "[1,...]"),
    ("diskless.metadata.topic.replication.factor", "SHORT", "3", "[1,...]"),
    ("diskless.metadata.topic.min.isr", "INT", "2", "[1,...]"),
    ("diskless.metadata.snapshot.bytes", "LONG", "20971520", "[1,...]"),
    ("diskless.metadata.backup.interval.ms", "LONG", "60000", "[0,...]"),
    ("diskless.retention.check.interval.ms", "LONG", "60000", "[1,...]"),
    ("diskless.retention.batches.per.pass", "INT", "2000", "[1,...]"),
    ("diskless.file.cleaner.interval.ms", "LONG", "60000", "[1,...]"),
    ("diskless.coordinator.orphan.scan.interval.ms", "LONG", "86400000", "[1,...]"),
    ("diskless.coordinator.orphan.scan.grace.period.ms", "LONG", "3600000", "[1,...]"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class DisklessSettings:
    """Diskless topics: where their data is, how it is written, read and retained."""

    storage_url: str = setting(
        "diskless.storage.url",
        "Where the data of diskless topics is stored: file:///…, s3://bucket/prefix, gs://…, "
        "az://…;"
        " empty is a directory beside the logs.",
    )
    control_plane: str = setting(
        "diskless.control.plane", "What orders batches: the coordinators' topic, or Postgres."
    )
    postgres: object = setting(
        "diskless.control.plane.postgres.connection.string",
        "Connection string of the Postgres control plane.",
    )
    postgres_connections_max: int = setting(
        "diskless.control.plane.postgres.max.connections",
        "Maximum number of connections to Postgres.",
    )
    commit_interval_ms: int = setting(
        "diskless.produce.commit.interval.ms", "Age at which a file is closed and uploaded."
    )
    buffer_bytes_max: int = setting(
        "diskless.produce.buffer.max.bytes", "Size at which a file is closed and uploaded."
    )
    adaptive: bool = setting(
        "diskless.produce.adaptive", "Whether a file is closed early when waiting cannot fill it."
    )
    puts_per_second: float = setting(
        "diskless.produce.puts.per.second",
        "Uploads per second that early closing may cause; -1 depends on the store.",
    )
    inflight_bytes_max: int = setting(
        "diskless.produce.inflight.max.bytes",
        "Bytes that may wait for the commits of one coordinator; twice as many for all together.",
    )
    upload_concurrency: int = setting(
        "diskless.produce.upload.concurrency", "Maximum number of concurrent uploads."
    )
    commit_age_max_ms: int = setting(
        "diskless.commit.age.max.ms", "Age beyond which an uploaded file is no longer committed."
    )
    cache_bytes_max: int = setting(
        "diskless.fetch.cache.max.bytes", "Bytes of recent objects kept in memory."
    )
    fetch_concurrency: int = setting(
        "diskless.fetch.concurrency", "Maximum number of concurrent reads of recent data."
    )
    lagging_concurrency: int = setting(
        "diskless.fetch.lagging.concurrency", "Maximum number of concurrent reads of old data."
    )
    hedge_ms: int = setting(
        "diskless.fetch.hedge.ms", "A read that takes longer is sent a second time; 0 is never."
    )
    local_segments: bool = setting(
        "diskless.local.segments.enable",
        "Whether a broker also keeps the newest records of its partitions on its own disk.",
    )
    local_retention_bytes: int = setting(
        "diskless.local.segments.retention.bytes",
        "Bytes of a partition's newest records that are kept on disk.",
    )
    local_retention_ms: int = setting(
        "diskless.local.segments.retention.ms",
        "Age of records beyond which they are not kept on disk; -1 is no limit.",
    )
    local_bytes_max: int = setting(
        "diskless.local.segments.max.bytes",
        "Bytes on disk for all partitions together; each gets at most an equal share.",
    )
    metadata_partitions: int = setting(
        "diskless.metadata.topic.num.partitions", "Number of coordinators."
    )
    metadata_replication_factor: int = setting(
        "diskless.metadata.topic.replication.factor",
        "Replicas of each coordinator's log; 1 by default where one node is the whole cluster.",
    )
    metadata_isr_min: int = setting(
        "diskless.metadata.topic.min.isr",
        "Minimum in-sync replicas of a coordinator's log; 1 by default where one node is the whole "
        "cluster.",
    )
    snapshot_bytes: int = setting(
        "diskless.metadata.snapshot.bytes",
        "Bytes of log after which a coordinator takes a snapshot.",
    )
    backup_interval_ms: int = setting(
        "diskless.metadata.backup.interval.ms",
        "Interval of backups of all metadata to the object store; 0 is never.",
    )
    retention_interval_ms: int = setting(
        "diskless.retention.check.interval.ms", "Interval of retention passes."
    )
    retention_batches: int = setting(
        "diskless.retention.batches.per.pass", "Batches of a partition that one pass may delete."
    )
    cleaner_interval_ms: int = setting(
        "diskless.file.cleaner.interval.ms", "Interval of deletions of files without data."
    )
    orphan_interval_ms: int = setting(
        "diskless.coordinator.orphan.scan.interval.ms", "Interval of orphan scans."
    )
    grace_ms: int = setting(
        "diskless.coordinator.orphan.scan.grace.period.ms",
        "How long an unneeded file is kept, for reads in progress and late commits.",
    )
