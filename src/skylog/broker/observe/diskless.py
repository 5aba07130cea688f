"""Metrics of diskless topics: totals, and how long ago things last succeeded.

An age that grows is the first sign of a store, a plane or a pass that is stuck.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Final

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from skylog.broker.observe.stages import stage_metrics
from skylog.kernel.errors import KafkaError
from skylog.replicated.lifecycle import State

if TYPE_CHECKING:
    from skylog.broker.assembly.diskless_engine import DisklessEngine
    from skylog.broker.assembly.local_segments import LocalSegments
    from skylog.broker.background.maintenance import Maintenance
    from skylog.diskless.coordinator.registry import DisklessCoordinators
    from skylog.diskless.writer import DisklessWriter
    from skylog.kernel.stages import Stage

_PREFIX: Final = "skylog_diskless"
# The fields of each part's totals.
_WRITER: Final = {
    "files": "WAL files that were uploaded and committed.",
    "bytes": "Bytes of WAL files that were uploaded and committed.",
    "batches": "Record batches that were committed.",
    "commits": "Commit requests: one for each WAL file and coordinator.",
    "failed_files": "WAL files of which at least a part could not be uploaded or committed.",
}
_READER: Final = {
    "fetches": "Fetches of diskless partitions that the reader served.",
    "bytes": "Bytes of record batches that the reader served.",
    "corrupt": "Record batches that did not match their checksum or their metadata.",
    "missing": "Record batches whose object could not be read.",
}
_CACHE: Final = {
    "hits": "Reads served from the cache of objects.",
    "misses": "Reads that were not in the cache of objects.",
}
_OBJECTS: Final = {
    "gets": "Reads from the object store that had to be waited for.",
    "gets_at_once": "Reads from the object store that this machine's page cache answered at once.",
    "hedged": "Reads that were sent a second time because the first answer was late.",
}
_LOCAL: Final = {
    "bytes": "Bytes copied to local segments.",
    "reads": "Reads of partitions that local segments served.",
    "bytes_read": "Bytes that local segments served.",
    "disk_errors": "Errors of the disk that holds local segments.",
    "spoiled": "Local copies whose files turned out to be damaged.",
    "rebuilds": "Local copies that were dropped and built again.",
}
_COORDINATOR: Final = {
    "active": "1 while a coordinator that this broker leads serves, otherwise 0.",
    "log_start_offset": "Start offset of a coordinator's log.",
    "high_watermark": "High watermark of a coordinator's log.",
    "lag": "Committed records that a coordinator's database does not have yet.",
    "log_bytes": "Size of a coordinator's log in bytes.",
}
_RETENTION: Final = {
    "batches_deleted": "Record batches that retention deleted.",
    "bytes_deleted": "Bytes of record batches that retention deleted.",
    "partition_errors": "Failed attempts to enforce a partition's retention.",
}
_CLEANER: Final = {
    "files_deleted": "WAL files deleted because they held no live batch any more.",
    "files_refused": "Deletions of WAL files that the object store refused.",
}
_BACKUP: Final = {
    "backups": "Backups of metadata that were completed.",
    "bytes": "Bytes that were uploaded for backups of metadata.",
}
_ORPHANS: Final = {
    "scanned": "Objects that scans for orphans listed.",
    "looked_at": "Objects that were old enough to ask the coordinators about.",
    "deleted": "Orphans that were deleted.",
    "bytes_deleted": "Bytes of orphans that were deleted.",
    "held": "Objects that were kept because they are newer than the backup that was restored.",
}


class DisklessCollector(Collector):
    """Reports the totals of writer, reader and passes for Prometheus."""

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
            "Bytes of objects in the reader's cache.",
            value=reader.objects.cache.bytes,
        )
        yield GaugeMetricFamily(
            f"{_PREFIX}_orphans_progress",
            "Progress of the current scan for orphans, from 0 to 1.",
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
        ("partitions", "Partitions with local segments.", len(copied)),
        (
            "following_partitions",
            "Partitions whose local segments keep up with commits.",
            sum(one.following for one in local.partitions),
        ),
        (
            "records_behind",
            "Committed records that are not in local segments yet.",
            sum(one.behind for one in local.partitions),
        ),
        ("stored_bytes", "Bytes of local segments on disk.", sum(copy.size for copy in copied)),
    ):
        yield GaugeMetricFamily(f"{_PREFIX}_local_{name}", text, value=value)


def _commits_waiting(writer: DisklessWriter) -> Metric:
    family = GaugeMetricFamily(
        f"{_PREFIX}_writer_commits_waiting",
        "WAL files whose commit a coordinator has not answered yet.",
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
