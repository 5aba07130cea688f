"""Settings of tiered storage: Kafka's ``remote.log.*`` and the like, and our ``tiered.*``.

Two parts have names of their own below a prefix, as in Kafka: those of the remote storage
(``rsm.config.``), which ``tiered/configuration.py`` reads, and those of the metadata topic
(``rlmm.config.``), which are here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from skylog.kernel.config import ConfigKey, ConfigType, Schema, Value, parse
from skylog.kernel.errors import ConfigError
from skylog.kernel.settings.fields import bind, docs_of, setting
from skylog.kernel.validators import validator

METADATA_TOPIC: Final = "__remote_log_metadata"
METADATA_MANAGER: Final = (
    "org.apache.kafka.server.log.remote.metadata.storage.TopicBasedRemoteLogMetadataManager"
)
STORAGE_PREFIX: Final = "remote.log.storage.manager.impl.prefix"
METADATA_PREFIX: Final = "remote.log.metadata.manager.impl.prefix"

# name, type, default, allowed values; the same notation as Kafka's facts.
FACTS: Final[tuple[tuple[str, str, str | None, str], ...]] = (
    ("tiered.storage.url", "STRING", "", ""),
    ("tiered.fetch.cache.max.bytes", "LONG", "67108864", "[0,...]"),
    ("tiered.fetch.prefetch.max.bytes", "LONG", "16777216", "[0,...]"),
    ("tiered.upload.part.bytes", "INT", "8388608", "[5242880,...,1073741824]"),
    ("tiered.orphan.scan.interval.ms", "LONG", "86400000", "[1,...]"),
    ("tiered.orphan.scan.grace.period.ms", "LONG", "86400000", "[1,...]"),
    ("diskless.tiering.default", "BOOLEAN", "true", ""),
    ("diskless.tiering.disk.max.bytes", "LONG", "10737418240", "[1,...]"),
    ("diskless.tiering.prune.interval.ms", "LONG", "60000", "[1,...]"),
    ("diskless.tiering.prune.delay.ms", "LONG", "300000", "[0,...]"),
)
_METADATA_FACTS: Final = (
    ("remote.log.metadata.topic.num.partitions", ConfigType.INT, "50", "[1,...]"),
    ("remote.log.metadata.topic.replication.factor", ConfigType.SHORT, "3", "[1,...]"),
    ("remote.log.metadata.topic.min.isr", ConfigType.SHORT, "2", "[1,...]"),
    ("remote.log.metadata.topic.retention.ms", ConfigType.LONG, "-1", ""),
    ("remote.log.metadata.consume.wait.ms", ConfigType.LONG, "120000", "[0,...]"),
    (
        "remote.log.metadata.initialization.retry.max.timeout.ms",
        *(ConfigType.LONG, "120000", "[0,...]"),
    ),
    ("remote.log.metadata.initialization.retry.interval.ms", ConfigType.LONG, "100", "[0,...]"),
)
# Kafka passes these on to its own clients of the topic; there are none here.
_METADATA_CLIENTS: Final = tuple(
    f"remote.log.metadata.{kind}." for kind in ("common.client", "producer", "consumer", "admin")
)


@dataclass(frozen=True, slots=True, kw_only=True)
class MetadataTopicSettings:
    """``__remote_log_metadata``, configured by ``rlmm.config.*``."""

    partitions: int = setting(
        "remote.log.metadata.topic.num.partitions",
        "Partitions of __remote_log_metadata; never changed once the topic exists.",
    )
    replication_factor: int = setting(
        "remote.log.metadata.topic.replication.factor",
        "Replicas of __remote_log_metadata; 1 by default where one node is the whole cluster.",
    )
    isr_min: int = setting(
        "remote.log.metadata.topic.min.isr",
        "Minimum in-sync replicas of __remote_log_metadata; 1 by default where one node is the "
        "whole cluster.",
    )
    retention_ms: int = setting(
        "remote.log.metadata.topic.retention.ms",
        "Retention of __remote_log_metadata; -1 is unlimited. What it drops while a segment still "
        "exists is lost.",
    )
    consume_wait_ms: int = setting(
        "remote.log.metadata.consume.wait.ms", "Longest wait until an own record was read back."
    )
    initialization_timeout_ms: int = setting(
        "remote.log.metadata.initialization.retry.max.timeout.ms",
        "How long a broker tries to create or find __remote_log_metadata.",
    )
    initialization_interval_ms: int = setting(
        "remote.log.metadata.initialization.retry.interval.ms", "Pause between two such attempts."
    )


_METADATA_DOCS: Final = docs_of(MetadataTopicSettings)
METADATA: Final = Schema(
    ConfigKey(
        name=name,
        type=kind,
        default=parse(name, default, kind),
        validator=validator(allowed),
        doc=_METADATA_DOCS[name],
    )
    for name, kind, default, allowed in _METADATA_FACTS
)


@dataclass(frozen=True, slots=True, kw_only=True)
class TieredSettings:
    """Tiered storage: old segments of topics with remote.storage.enable are in object storage."""

    enabled: bool = setting(
        "remote.log.storage.system.enable", "Whether topics may have remote.storage.enable."
    )
    storage_class: str | None = setting(
        "remote.log.storage.manager.class.name",
        "Layout of the objects. Empty or skylog: that of Aiven's plugin, at tiered.storage.url; "
        "io.aiven.kafka.tieredstorage.RemoteStorageManager: the same, configured by that plugin's "
        "rsm.config.*; org.apache.kafka.server.log.remote.storage.LocalTieredStorage: that of "
        "Kafka's tests, in the directory rsm.config.dir.",
    )
    storage_prefix: str = setting(STORAGE_PREFIX, "Prefix of the settings of the remote storage.")
    metadata_class: str = setting(
        "remote.log.metadata.manager.class.name",
        "What keeps the metadata of remote segments; only Kafka's own, the topic "
        "__remote_log_metadata, is supported.",
    )
    metadata_prefix: str = setting(METADATA_PREFIX, "Prefix of the settings of the metadata topic.")
    metadata_listener: str | None = setting(
        "remote.log.metadata.manager.listener.name",
        "Listener for the metadata topic; checked, but inter.broker.listener.name is used.",
    )
    custom_metadata_bytes_max: int = setting(
        "remote.log.metadata.custom.metadata.max.bytes",
        "Largest custom metadata of a segment; a partition with a larger one is not copied.",
    )
    index_cache_bytes_max: int = setting(
        "remote.log.index.file.cache.total.size.bytes",
        "Disk space for the indexes of remote segments that are being read.",
    )
    index_cache_ttl_ms: int = setting(
        "remote.log.index.file.cache.ttl.ms",
        "Time without use after which such an index is removed; -1 is never.",
    )
    task_interval_ms: int = setting(
        "remote.log.manager.task.interval.ms",
        "A partition is looked at for segments to copy and to expire at least this often.",
    )
    retry_backoff_ms: int = setting(
        "remote.log.manager.task.retry.backoff.ms", "Pause after the first failure of a partition."
    )
    retry_backoff_ms_max: int = setting(
        "remote.log.manager.task.retry.backoff.max.ms", "Longest pause after failures."
    )
    retry_jitter: float = setting(
        "remote.log.manager.task.retry.jitter", "Random part of such a pause."
    )
    copiers: int = setting(
        "remote.log.manager.copier.thread.pool.size", "Segments that are copied at once."
    )
    expirers: int = setting(
        "remote.log.manager.expiration.thread.pool.size", "Partitions that are expired at once."
    )
    copy_bytes_per_second_max: int = setting(
        "remote.log.manager.copy.max.bytes.per.second", "Bytes per second that are copied."
    )
    copy_window_count: int = setting(
        "remote.log.manager.copy.quota.window.num", "Samples of that rate."
    )
    copy_window_seconds: int = setting(
        "remote.log.manager.copy.quota.window.size.seconds", "Length of one sample."
    )
    fetch_bytes_per_second_max: int = setting(
        "remote.log.manager.fetch.max.bytes.per.second",
        "Bytes per second that are read from remote segments.",
    )
    fetch_window_count: int = setting(
        "remote.log.manager.fetch.quota.window.num", "Samples of that rate."
    )
    fetch_window_seconds: int = setting(
        "remote.log.manager.fetch.quota.window.size.seconds", "Length of one sample."
    )
    readers: int = setting("remote.log.reader.threads", "Remote reads at once.")
    reads_pending_max: int = setting(
        "remote.log.reader.max.pending.tasks", "Remote reads that may wait; more are refused."
    )
    fetch_wait_ms_max: int = setting(
        "remote.fetch.max.wait.ms", "Longest wait of a fetch for a remote read."
    )
    list_offsets_timeout_ms: int = setting(
        "remote.list.offsets.request.timeout.ms",
        "Longest search of remote segments for a timestamp.",
    )
    fetch_last_tiered_offset: bool = setting(
        "follower.fetch.last.tiered.offset.enable",
        "Whether a new replica starts behind the last remote segment rather than at the leader's "
        "local start.",
    )
    storage_url: str = setting(
        "tiered.storage.url",
        "Where remote segments are stored, as diskless.storage.url; empty is tiered/ below that, or"
        " a directory beside the logs. It uses the settings diskless.storage.*.",
    )
    cache_bytes_max: int = setting(
        "tiered.fetch.cache.max.bytes", "Memory for chunks of remote segments."
    )
    prefetch_bytes_max: int = setting(
        "tiered.fetch.prefetch.max.bytes", "Bytes that are read ahead of a consumer; 0 is none."
    )
    upload_part_bytes: int = setting(
        "tiered.upload.part.bytes", "Size of the parts in which a segment is uploaded to a bucket."
    )
    orphan_interval_ms: int = setting(
        "tiered.orphan.scan.interval.ms",
        "Interval of scans for objects that belong to no remote segment.",
    )
    orphan_grace_ms: int = setting(
        "tiered.orphan.scan.grace.period.ms", "Age below which such an object is kept."
    )
    tiering_default: bool = setting(
        "diskless.tiering.default",
        "Whether new diskless topics get remote.storage.enable=true, if this broker has "
        "remote.log.storage.system.enable.",
    )
    tiering_disk_bytes_max: int = setting(
        "diskless.tiering.disk.max.bytes",
        "Disk space for segments that are being made of the batches of diskless topics; beyond it "
        "the largest is closed early.",
    )
    prune_interval_ms: int = setting(
        "diskless.tiering.prune.interval.ms",
        "Interval at which batches that are in remote segments are dropped from WAL objects.",
    )
    prune_delay_ms: int = setting(
        "diskless.tiering.prune.delay.ms",
        "How long a finished remote segment must be known before its batches are dropped; at least"
        " twice diskless.metadata.backup.interval.ms, so that a backup has it.",
    )
    metadata_topic: MetadataTopicSettings
    # rsm.config.*, without the prefix.
    storage_texts: Mapping[str, str] = field(repr=False)


def open_prefixes(texts: Mapping[str, str]) -> tuple[str, ...]:
    """The prefixes below which a remote storage and the metadata topic have their settings."""
    return (
        texts.get(STORAGE_PREFIX) or "rsm.config.",
        texts.get(METADATA_PREFIX) or "rlmm.config.",
    )


def build_tiered(texts: Mapping[str, str], values: Mapping[str, Value]) -> TieredSettings:
    """From the typed values and, for names below a prefix, from the texts; ConfigError."""
    return bind(
        TieredSettings,
        values,
        metadata_topic=_metadata_topic(texts, values[METADATA_PREFIX]),
        storage_texts=_below(texts, values[STORAGE_PREFIX]),
    )


def _below(texts: Mapping[str, str], prefix: str) -> dict[str, str]:
    return {
        name.removeprefix(prefix): text for name, text in texts.items() if name.startswith(prefix)
    }


def _metadata_topic(texts: Mapping[str, str], prefix: str) -> MetadataTopicSettings:
    given = {
        name: text
        for name, text in _below(texts, prefix).items()
        if not name.startswith(_METADATA_CLIENTS)
    }
    for name, text in given.items():
        if name not in METADATA:
            raise METADATA.unknown(name, text, f"below {prefix}")
    try:
        values = {
            name: key.parse(given[name]) if name in given else key.default
            for name, key in METADATA.items()
        }
    except ConfigError as error:
        raise ConfigError(f"{error} (below {prefix})") from error
    return bind(MetadataTopicSettings, values)
