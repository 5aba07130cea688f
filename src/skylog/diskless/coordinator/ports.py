"""What a coordinator is set to, and what it works with."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from skylog.diskless.coordinator.loading import StateFactory
from skylog.diskless.coordinator.log import CoordinatorLog
from skylog.diskless.coordinator.snapshots import Snapshots
from skylog.diskless.plane import TopicPartition
from skylog.diskless.rules.times import PlaneRules
from skylog.kernel.clock import Clock
from skylog.kernel.executor import Executor
from skylog.kernel.stages import Stage


@dataclass(frozen=True, slots=True, kw_only=True)
class RuntimeSettings:
    """``batch_bytes_max`` is the metadata topic's ``max.message.bytes``, ``sync`` the log's."""

    rules: PlaneRules = field(default_factory=PlaneRules)
    batch_bytes_max: int = 1_048_588
    # Log after which a snapshot is taken.
    snapshot_bytes: int = 20 * 1024 * 1024
    sync: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Ports:
    """What a coordinator works with.

    ``executor`` is its one thread; syncs and snapshots are done in ``background``.
    ``moved`` hears of high watermarks, ``failed`` of a coordinator that had to be unloaded; its
    owner may load it again.
    """

    log: CoordinatorLog
    factory: StateFactory
    snapshots: Snapshots
    clock: Clock
    executor: Executor
    background: Executor
    snapshot_stage: Stage
    moved: Callable[[TopicPartition, int], None]
    failed: Callable[[Exception], None]
