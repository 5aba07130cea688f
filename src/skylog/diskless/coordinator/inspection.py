"""Inspection of coordinators: counts and lists, without blocking their work."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import replace

from skylog.diskless.coordinator.registry import DisklessCoordinators
from skylog.diskless.coordinator.runtime import CoordinatorRuntime
from skylog.diskless.coordinator.snapshots import Snapshots
from skylog.diskless.coordinator.state import Counts, FileState, StateView
from skylog.diskless.plane import CoordinatorInfo, FileInfo
from skylog.kernel.errors import KafkaError


async def describe_coordinators(coordinators: DisklessCoordinators) -> list[CoordinatorInfo]:
    """The coordinators of this broker; one that is being loaded has only its state."""
    return [
        await describe(coordinators.get(coordinator_id)) for coordinator_id in coordinators.led()
    ]


async def describe(runtime: CoordinatorRuntime) -> CoordinatorInfo:
    log = runtime.log
    info = CoordinatorInfo(
        coordinator_id=runtime.coordinator_id,
        state=runtime.state.value,
        leader_epoch=log.leader_epoch,
        log_start_offset=log.start_offset,
        log_end_offset=log.end_offset,
        high_watermark=log.high_watermark,
    )
    try:
        counts, snapshot_offset, snapshot_ms = await runtime.look(_counted)
    except KafkaError:
        return info
    return replace(
        info,
        applied_offset=runtime.applied_offset,
        snapshot_offset=snapshot_offset,
        snapshot_ms=snapshot_ms,
        **counts._asdict(),
    )


def _counted(view: StateView, snapshots: Snapshots) -> tuple[Counts, int, int]:
    snapshot_ids = snapshots.ids()
    if not snapshot_ids:
        return view.counts(), -1, -1
    return view.counts(), snapshot_ids[-1].offset, snapshots.written_ms(snapshot_ids[-1])


async def list_files(coordinators: DisklessCoordinators, after: str, limit: int) -> list[FileInfo]:
    """A page of the files that any coordinator of this broker knows."""
    pages = await asyncio.gather(
        *(
            coordinators.get(coordinator_id).look(lambda view, _: view.list_files(after, limit))
            for coordinator_id in coordinators.led()
        )
    )
    return merged_pages(map(file_infos, pages), limit)


def file_infos(page: Iterable[tuple[FileState, int]]) -> list[FileInfo]:
    """Pure: files with their live bytes, as a coordinator's state lists them."""
    return [
        FileInfo(
            file.object_key,
            file.size,
            file.committed_ms,
            file.live_batches,
            live_bytes,
            file.deletable_since_ms,
            file.coordinator_ids,
        )
        for file, live_bytes in page
    ]


def merged_pages(pages: Iterable[Sequence[FileInfo]], limit: int) -> list[FileInfo]:
    """Pure: merges pages of coordinators or brokers, which may know the same files."""
    files: dict[str, FileInfo] = {}
    for page in pages:
        for one in page:
            known = files.get(one.object_key)
            files[one.object_key] = one if known is None else merged(known, one)
    return [files[key] for key in sorted(files)[:limit]]


def merged(first: FileInfo, other: FileInfo) -> FileInfo:
    """Pure: a file as all of its owners see it; it is free once the last one has released it."""
    live_batches = first.live_batches + other.live_batches
    return replace(
        first,
        committed_ms=min(first.committed_ms, other.committed_ms),
        live_batches=live_batches,
        live_bytes=first.live_bytes + other.live_bytes,
        marked_ms=-1 if live_batches else max(first.marked_ms, other.marked_ms),
    )
