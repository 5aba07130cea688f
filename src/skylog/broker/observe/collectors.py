"""Lists a node's metrics; only a node that serves them pays for importing all this."""

from __future__ import annotations

from typing import TYPE_CHECKING

from prometheus_client import ProcessCollector

from skylog.broker.observe.broker import BrokerCollector, CleanerCollector, RoutingCollector
from skylog.broker.observe.consolidation import ConsolidationCollector
from skylog.broker.observe.diskless import DisklessCollector
from skylog.broker.observe.loop_lag import LoopLag
from skylog.broker.observe.node import NativeCollector, QuorumCollector, RequestsCollector
from skylog.broker.observe.partitions import ControllerCollector, ReplicaCollector
from skylog.broker.observe.replication import ReplicationCollector
from skylog.broker.observe.tiered import TieredCollector
from skylog.objects.metered import StoreCollector

if TYPE_CHECKING:
    from prometheus_client.registry import Collector

    from skylog.broker.background.maintenance import Maintenance
    from skylog.broker.background.tasks import Background
    from skylog.broker.net.listeners import Listeners
    from skylog.broker.services import Services
    from skylog.controller.shell import Controller
    from skylog.log.cleaner import LogCleaner


def node_collectors(
    services: Services,
    listeners: Listeners,
    controller: Controller | None,
    background: Background,
) -> list[Collector]:
    """The collectors of every node, broker or controller."""
    lag = LoopLag(services.clock)
    background.every(0, "watch the event loop", lag.sample)
    found: list[Collector] = [
        ProcessCollector(registry=None),
        lag,
        RequestsCollector(listeners.dispatchers, listeners, services.memory),
        QuorumCollector(services.quorum, services.image),
        NativeCollector(),
    ]
    return found if controller is None else [*found, ControllerCollector(controller)]


def broker_collectors(
    services: Services, cleaner: LogCleaner, maintenance: Maintenance
) -> list[Collector]:
    engine, tiered = services.diskless, services.tiered
    found: list[Collector] = [
        BrokerCollector(services),
        CleanerCollector(cleaner),
        StoreCollector(engine.store_stats),
        DisklessCollector(engine, maintenance),
        ReplicaCollector(services.image, services.settings.node.node_id),
        RoutingCollector(services.router),
        ReplicationCollector(services.replication),
    ]
    if tiered is not None:
        configs = services.configs
        found.append(
            TieredCollector(
                tiered.counts, tiered.reader, tiered.store_stats, lambda: configs.current.tiered
            )
        )
        found.append(ConsolidationCollector(tiered.consolidating))
    return found
