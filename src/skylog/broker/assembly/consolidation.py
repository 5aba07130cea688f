"""Consolidation of diskless topics, put together from the broker's parts."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

from skylog.broker.tiered.assembly_source import AssemblyPorts
from skylog.broker.tiered.consolidating import ConsolidatingPartitions
from skylog.broker.tiered.log_infos import LogInfos
from skylog.broker.tiered.wal import DisklessWal
from skylog.tiered.consolidation.assembler import Assembler, AssemblerSettings
from skylog.tiered.consolidation.snapshots import ProducerSnapshots

if TYPE_CHECKING:
    from skylog.broker.assembly.tiered import TieredPorts
    from skylog.kernel.settings import BrokerSettings
    from skylog.kernel.settings.tiered import TieredSettings
    from skylog.tiered.manager import RemoteLogManager
    from skylog.tiered.metadata.follower import MetadataFollower
    from skylog.tiered.storage import ObjectRemoteStorage

# Segments that are being put together, beside the logs; nothing but tiered storage reads them.
ASSEMBLY_DIRECTORY: Final = "diskless-tiering"
# WAL objects are still in memory then.
ROUND_INTERVAL_MS_MAX: Final = 2000


def open_consolidation(
    settings: BrokerSettings,
    logs: MetadataFollower,
    storage: ObjectRemoteStorage,
    manager: RemoteLogManager,
    ports: TieredPorts,
) -> ConsolidatingPartitions:
    """Idle until ``start``."""
    engine, system, files = ports.diskless, ports.system, ports.local.files
    directory = Path(settings.node.log_dirs[0]).absolute() / ASSEMBLY_DIRECTORY
    assembler = Assembler(
        directory,
        DisklessWal(engine.plane, engine.reader, system.clock),
        files,
        system,
        assembler_settings(settings.tiered),
    )
    shared = AssemblyPorts(
        engine.plane,
        LogInfos(engine.plane),
        assembler,
        ProducerSnapshots(logs, storage, files, system),
        system.clock,
        manager.rolled,
        manager.start_moved,
    )
    node_id = settings.node.node_id
    return ConsolidatingPartitions(node_id, logs, manager, ports.configs, shared)


def assembler_settings(tiered: TieredSettings) -> AssemblerSettings:
    return AssemblerSettings(
        disk_bytes_max=tiered.tiering_disk_bytes_max,
        interval_ms=min(tiered.task_interval_ms, ROUND_INTERVAL_MS_MAX),
    )
