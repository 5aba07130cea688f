"""What /metrics shows of diskless topics: totals, and how long ago things last worked.

An age that grows is the first sign of a store, a plane or a pass that is stuck.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Final

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

if TYPE_CHECKING:
    from skylog.broker.diskless import DisklessEngine
    from skylog.broker.diskless_local import LocalSegments
    from skylog.broker.maintenance import Maintenance
    from skylog.kernel.clock import Clock

_PREFIX: Final = "skylog_diskless"
# Fields of the parts' own totals, by part.
_WRITER: Final = {
    "files": "Files committed",
    "bytes": "Bytes of files committed",
    "batches": "Batches committed",
    "commits": "Commits of files, one for each coordinator that a file concerns",
    "failed_files": "Files that could not be uploaded or committed, at least in part",
    "upload_seconds": "Time that uploads took",
    "commit_seconds": "Time from the close of a file to each of its commits",
}
_READER: Final = {
    "fetches": "Fetches of diskless partitions",
    "bytes": "Bytes served",
    "corrupt": "Batches whose bytes were wrong",
    "missing": "Batches whose object could not be read",
}
_CACHE: Final = {"hits": "Reads from memory", "misses": "Reads that needed the store"}
_OBJECTS: Final = {"gets": "Reads from the store", "hedged": "Reads that were asked for twice"}
_LOCAL: Final = {
    "bytes": "Bytes copied to local segments",
    "reads": "Reads of partitions served from local segments",
    "bytes_read": "Bytes served from local segments",
    "errors": "Partitions that could not be copied, each time",
    "disk_errors": "Errors of the disk with local segments",
    "rebuilds": "Local copies that were given up and made anew",
}
_RETENTION: Final = {
    "batches_deleted": "Batches deleted by retention",
    "bytes_deleted": "Bytes of batches deleted by retention",
    "partition_errors": "Partitions whose retention could not be enforced",
}
_CLEANER: Final = {
    "files_deleted": "Files deleted after their last batch",
    "files_refused": "Deletions that the store refused",
}
_BACKUP: Final = {"backups": "Backups of metadata put", "bytes": "Bytes put for backups"}
_ORPHANS: Final = {
    "scanned": "Objects listed by scans for orphans",
    "looked_at": "Objects that coordinators were asked about",
    "deleted": "Orphans deleted",
    "bytes_deleted": "Bytes of orphans deleted",
    "held": "Objects that a restore keeps from being orphans",
}


class DisklessCollector(Collector):
    """Reads the totals of writer, reader and passes for Prometheus."""

    def __init__(self, engine: DisklessEngine, maintenance: Maintenance, clock: Clock) -> None:
        self._engine = engine
        self._maintenance = maintenance
        self._clock = clock

    def collect(self) -> Iterator[Metric]:
        engine, maintenance = self._engine, self._maintenance
        reader = engine.reader
        yield from _totals("writer", engine.writer.stats, _WRITER)
        yield from _totals("reader", reader.stats, _READER)
        yield from _totals("reader_cache", reader.objects.cache, _CACHE)
        yield from _totals("reader", reader.objects, _OBJECTS)
        yield from _totals("retention", maintenance.retention.stats, _RETENTION)
        yield from _totals("cleaner", maintenance.cleaner.stats, _CLEANER)
        yield from _totals("orphans", maintenance.orphans.stats, _ORPHANS)
        if maintenance.backup is not None:
            yield from _totals("backup", maintenance.backup.stats, _BACKUP)
        yield GaugeMetricFamily(
            f"{_PREFIX}_reader_cache_bytes",
            "Bytes of objects in memory",
            value=reader.objects.cache.bytes,
        )
        yield GaugeMetricFamily(
            f"{_PREFIX}_orphans_progress",
            "How far the scan for orphans has come",
            value=maintenance.orphans.stats.progress,
        )
        if engine.local is not None:
            yield from _local(engine.local)
        yield from self._passes()
        yield self._ages()

    def _passes(self) -> Iterator[Metric]:
        runs = CounterMetricFamily(f"{_PREFIX}_passes", "Passes of maintenance", labels=["work"])
        failures = CounterMetricFamily(
            f"{_PREFIX}_pass_failures", "Passes that failed", labels=["work"]
        )
        for paced in self._maintenance.passes:
            runs.add_metric([paced.name], paced.stats.passes)
            failures.add_metric([paced.name], paced.stats.failures)
        yield runs
        yield failures

    def _ages(self) -> Metric:
        """Since the process started, for what has not happened yet."""
        family = GaugeMetricFamily(
            f"{_PREFIX}_last_success_age_seconds",
            "Time since a commit, a fetch or a pass last succeeded",
            labels=["work"],
        )
        local = self._engine.local
        last = {
            "commit": self._engine.writer.stats.last_commit_ms,
            "fetch": self._engine.reader.stats.last_success_ms,
            **({"local": local.partitions.stats.last_success_ms} if local else {}),
            **{paced.name: paced.stats.last_success_ms for paced in self._maintenance.passes},
        }
        now_ms = self._clock.now_ms()
        for work, at_ms in last.items():
            family.add_metric([work], max(0, now_ms - at_ms) / 1000)
        return family


def _local(local: LocalSegments) -> Iterator[Metric]:
    yield from _totals("local", local.partitions.stats, _LOCAL)
    copied = [one.copy for one in local.partitions if one.copy is not None]
    for name, text, value in (
        ("partitions", "Partitions with local segments", len(copied)),
        (
            "following_partitions",
            "Partitions whose local segments keep up with commits",
            sum(one.following for one in local.partitions),
        ),
        (
            "records_behind",
            "Committed records that are not in local segments yet",
            sum(one.behind for one in local.partitions),
        ),
        ("stored_bytes", "Bytes of local segments", sum(copy.size for copy in copied)),
    ):
        yield GaugeMetricFamily(f"{_PREFIX}_local_{name}", text, value=value)


def _totals(part: str, stats: object, shown: Mapping[str, str]) -> Iterator[Metric]:
    for name, text in shown.items():
        value = getattr(stats, name)
        yield CounterMetricFamily(f"{_PREFIX}_{part}_{name}", text, value=value)
