"""What /metrics shows of diskless topics: totals, and how long ago things last worked.

An age that grows is the first sign of a store, a plane or a pass that is stuck.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Final

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from skylog.broker.observe.stages import stage_metrics
from skylog.diskless.coordinator.runtime import State
from skylog.kernel.errors import KafkaError

if TYPE_CHECKING:
    from skylog.broker.assembly.diskless_engine import DisklessEngine
    from skylog.broker.assembly.local_segments import LocalSegments
    from skylog.broker.background.maintenance import Maintenance
    from skylog.diskless.coordinator.registry import DisklessCoordinators
    from skylog.diskless.writer import DisklessWriter
    from skylog.kernel.stages import Stage

_PREFIX: Final = "skylog_diskless"
# Fields of the parts' own totals, by part.
_WRITER: Final = {
    "files": "Files committed",
    "bytes": "Bytes of files committed",
    "batches": "Batches committed",
    "commits": "Commits of files, one for each coordinator that a file concerns",
    "failed_files": "Files that could not be uploaded or committed, at least in part",
}
_READER: Final = {
    "fetches": "Fetches of diskless partitions",
    "bytes": "Bytes served",
    "corrupt": "Batches whose bytes were wrong",
    "missing": "Batches whose object could not be read",
}
_CACHE: Final = {"hits": "Reads from memory", "misses": "Reads that needed the store"}
_OBJECTS: Final = {
    "gets": "Reads from the store that had to be waited for",
    "gets_at_once": "Reads from the store that it had in this machine's memory",
    "hedged": "Reads that were asked for twice",
}
_LOCAL: Final = {
    "bytes": "Bytes copied to local segments",
    "reads": "Reads of partitions served from local segments",
    "bytes_read": "Bytes served from local segments",
    "disk_errors": "Errors of the disk with local segments",
    "spoiled": "Local copies whose files turned out to be wrong",
    "rebuilds": "Local copies that were given up and made anew",
}
_COORDINATOR: Final = {
    "active": "Whether the coordinator serves",
    "log_start_offset": "Where its log begins",
    "high_watermark": "Where what is committed in its log ends",
    "lag": "Records of its log that its database does not have yet",
    "log_bytes": "Size of its log",
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

    def __init__(self, engine: DisklessEngine, maintenance: Maintenance) -> None:
        self._engine = engine
        self._maintenance = maintenance

    def collect(self) -> Iterator[Metric]:
        engine, maintenance = self._engine, self._maintenance
        reader = engine.reader
        yield from _totals("writer", engine.writer.stats, _WRITER)
        yield _commits_waiting(engine.writer)
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
        if engine.coordination is not None:
            yield from _coordinators(engine.coordination.local)
        yield from stage_metrics(_PREFIX, self._stages())

    def _stages(self) -> dict[str, Stage]:
        engine = self._engine
        local, coordination = engine.local, engine.coordination
        return {
            **engine.writer.stages._asdict(),
            "find": engine.reader.find_stage,
            "fetch": engine.fetch_stage,
            "cache": engine.reader.objects.cache_stage,
            **({"local": local.partitions.stage} if local is not None else {}),
            **({"snapshot": coordination.local.snapshot_stage} if coordination is not None else {}),
            **{paced.name: paced.stage for paced in self._maintenance.passes},
        }


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


def _commits_waiting(writer: DisklessWriter) -> Metric:
    family = GaugeMetricFamily(
        f"{_PREFIX}_writer_commits_waiting",
        "Files whose commit a coordinator has yet to answer",
        labels=["coordinator"],
    )
    for coordinator_id, files in sorted(writer.waiting().items()):
        family.add_metric([str(coordinator_id)], files)
    return family


def _coordinators(coordinators: DisklessCoordinators) -> Iterator[Metric]:
    families = {
        name: GaugeMetricFamily(f"{_PREFIX}_coordinator_{name}", text, labels=["coordinator"])
        for name, text in _COORDINATOR.items()
    }
    for coordinator_id in coordinators.led():
        try:
            runtime = coordinators.get(coordinator_id)
        except KafkaError:  # it has just gone
            continue
        log = runtime.log
        values = {
            "active": runtime.state is State.ACTIVE,
            "log_start_offset": log.start_offset,
            "high_watermark": log.high_watermark,
            "lag": max(0, log.high_watermark - runtime.applied_offset),
            "log_bytes": log.size,
        }
        for name, value in values.items():
            families[name].add_metric([str(coordinator_id)], value)
    yield from families.values()


def _totals(part: str, stats: object, shown: Mapping[str, str]) -> Iterator[Metric]:
    for name, text in shown.items():
        value = getattr(stats, name)
        yield CounterMetricFamily(f"{_PREFIX}_{part}_{name}", text, value=value)
