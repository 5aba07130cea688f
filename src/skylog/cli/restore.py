"""``skylog restore``."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from skylog.cli.command_tree import examples, new_app
from skylog.cli.diskless_store import check_there
from skylog.cli.errors import counted
from skylog.cli.options import Json
from skylog.cli.output import print_json, print_table
from skylog.cli.server import Config, Override
from skylog.cli.times import format_time

if TYPE_CHECKING:
    from skylog.diskless.files.restore import RestoreReport
    from skylog.kernel.settings import BrokerSettings
    from skylog.objects.store import ObjectStore
    from skylog.tiered.rebuild import RebuiltLogs

app = new_app()
_SHOWN_MAX = 10


@app.command(
    epilog=examples(
        "skylog restore --from s3://bucket/prefix config/server.properties",
        "skylog restore --from file:///mnt/objects --override log.dirs=/var/lib/skylog",
    )
)
def restore(
    url: Annotated[
        str,
        typer.Option("--from", metavar="URL", help="The object store, as diskless.storage.url."),
    ],
    config: Config = None,
    override: Override = None,
    json: Json = False,
) -> None:
    """Restore a node that lost its disks from the backups in its object store.

    Restores the cluster's metadata and the coordinators of diskless topics, as of the last backup,
    and the metadata of remote segments, by what is in the store. It does not contain records of
    classic topics that were not copied to the store, and committed offsets of groups. The node must
    be stopped and its directories empty. Objects that were uploaded after the backup are kept until
    `skylog diskless orphans --release`.
    """
    from skylog.kernel.settings import load_settings  # noqa: PLC0415 - not needed for --help

    settings = load_settings(config, os.environ, [*(override or []), f"diskless.storage.url={url}"])
    report, remote = asyncio.run(restore_node(settings))
    if json:
        print_json({**_as_json(report), **(_remote_json(remote) if remote else {})})
    else:
        _show(report)
        if remote:
            _show_remote(remote)


async def restore_node(settings: BrokerSettings) -> tuple[RestoreReport, RebuiltLogs | None]:
    """Restore the node with these settings; after a StorageError nothing has changed."""
    from skylog.broker.assembly.diskless_planes import plane_rules  # noqa: PLC0415
    from skylog.broker.background.backup import coordinators_directory  # noqa: PLC0415
    from skylog.broker.tiered.restoring import RemoteLogRestore  # noqa: PLC0415
    from skylog.diskless.files.restore import NodeDirectories, Restore  # noqa: PLC0415
    from skylog.kernel.clock import SystemClock  # noqa: PLC0415
    from skylog.kernel.limits import LOG_OPEN_FILES_MAX  # noqa: PLC0415
    from skylog.log.files import Files  # noqa: PLC0415
    from skylog.objects.open import open_store  # noqa: PLC0415

    directories = NodeDirectories(
        node_id=settings.node.node_id,
        metadata_dir=_absolute(settings.node.metadata_log_dir or settings.node.log_dirs[0]),
        log_dirs=list(map(_absolute, settings.node.log_dirs)),
        coordinators=coordinators_directory(settings),
    )
    check_there(settings.diskless.storage_url)
    clock, rules = SystemClock(), plane_rules(settings)
    store = open_store(settings.diskless.storage_url, settings.storage)
    segments = _open_segments(settings)
    partitions = settings.tiered.metadata_topic.partitions
    remote = (
        None
        if segments is None
        else RemoteLogRestore(store, segments, clock, partitions=partitions)
    )
    try:
        work = Restore(store, directories, Files(LOG_OPEN_FILES_MAX), clock, rules, remote)
        return await work.run(), remote.rebuilt if remote else None
    finally:
        await store.close()
        if segments:
            await segments.close()


def _open_segments(settings: BrokerSettings) -> ObjectStore | None:
    """The store of remote segments; None without tiered storage."""
    from skylog.objects.open import open_store  # noqa: PLC0415
    from skylog.tiered.configuration import remote_storage_config  # noqa: PLC0415

    if not settings.tiered.enabled:
        return None
    config = remote_storage_config(
        settings.tiered,
        settings.storage,
        settings.diskless.storage_url,
        str(_absolute(settings.node.log_dirs[0])),
    )
    return open_store(config.url, config.storage)


def _absolute(name: str) -> Path:
    return Path(name).absolute()


def _rows(report: RestoreReport) -> list[dict[str, object]]:
    return [
        {
            "topic": one.topic,
            "partition": one.partition,
            "start_offset": one.log_start_offset,
            "last_offset": one.high_watermark - 1,
        }
        for one in report.partitions
    ]


def _as_json(report: RestoreReport) -> dict[str, object]:
    return {
        "cluster_id": report.cluster_id,
        "backup_timestamp": report.backup_ms,
        "partitions": _rows(report),
        "missing_objects": report.missing,
        "held_objects": report.newer,
    }


def _show(report: RestoreReport) -> None:
    columns = {
        "topic": "TOPIC",
        "partition": "PARTITION",
        "start_offset": "START",
        "last_offset": "LAST OFFSET",
    }
    print_table(columns, _rows(report))
    out = sys.stdout.write
    out(
        f"\nCluster {report.cluster_id} is restored as of {format_time(report.backup_ms)};"
        " records committed later are lost.\n"
    )
    if report.missing:
        out(f"{counted(len(report.missing), 'object')} that these offsets need are missing:\n")
        _list(report.missing)
    if report.newer:
        out(
            f"{counted(len(report.newer), 'object')} newer than the backup belong to no partition"
            " and are kept (see skylog diskless orphans):\n"
        )
        _list(report.newer)


def _remote_json(remote: RebuiltLogs) -> dict[str, object]:
    return {
        "remote_segments": remote.count,
        "missing_remote_segments": _missing(remote),
        "held_remote_segments": _held(remote),
        "unreadable_remote_segments": remote.unreadable,
    }


def _missing(remote: RebuiltLogs) -> list[str]:
    return [
        f"{one.topic}-{one.partition.partition_index} {one.start_offset}..{one.end_offset} {one.id}"
        for one in remote.missing
    ]


def _held(remote: RebuiltLogs) -> list[str]:
    return [
        f"{one.topic}-{one.partition.partition_index} from {one.start_offset} {one.id}"
        for one in remote.held
    ]


def _show_remote(remote: RebuiltLogs) -> None:
    sys.stdout.write(f"{counted(remote.count, 'remote segment')} can be read.\n")
    told = {
        "in the backup, but no longer in the store": _missing(remote),
        "newer than what was restored of their partitions, and kept"
        " (see skylog tiered orphans)": _held(remote),
        "unreadable, and kept": remote.unreadable,
    }
    for what, found in told.items():
        if found:
            sys.stdout.write(f"{counted(len(found), 'remote segment')} {what}:\n")
            _list(found)


def _list(keys: list[str]) -> None:
    for key in keys[:_SHOWN_MAX]:
        sys.stdout.write(f"  {key}\n")
    if len(keys) > _SHOWN_MAX:
        sys.stdout.write(f"  … and {len(keys) - _SHOWN_MAX} more; --json shows all\n")
