"""The parts of a running broker, as its handlers see them. ``wiring.py`` assembles them."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from skylog.kernel.limits import START_LOADING_SECONDS_MAX

if TYPE_CHECKING:
    from skylog.broker.assembly.diskless_engine import DisklessEngine
    from skylog.broker.assembly.replication import Replication
    from skylog.broker.assembly.tiered import TieredStorage
    from skylog.broker.handlers.fetch_sessions import FetchSessions
    from skylog.broker.metadata.auto_create import AutoCreate
    from skylog.broker.metadata.configs import Configs
    from skylog.broker.metadata.controller_channel import ControllerChannel
    from skylog.broker.metadata.features import Features
    from skylog.broker.metadata.producer_ids import ProducerIds
    from skylog.broker.net.in_flight import Memory
    from skylog.broker.net.peers import BrokerPeers
    from skylog.broker.net.quota_gate import QuotaGate
    from skylog.broker.observe.traffic import Traffic
    from skylog.broker.partitions.factory import Partitions
    from skylog.controller.image import ClusterImage
    from skylog.groups.coordinator import GroupCoordinator
    from skylog.kernel.clock import Clock
    from skylog.kernel.executor import Executor
    from skylog.kernel.rng import Random
    from skylog.kernel.settings import BrokerSettings
    from skylog.log.manager import LogManager
    from skylog.quorum.node import QuorumNode
    from skylog.replication.manager import ReplicaManager
    from skylog.routing.router import Router
    from skylog.security.authorizer import Authorizer
    from skylog.transactions.coordinator import TransactionCoordinator


@dataclass(slots=True)
class Services:
    """Everything that a handler may use."""

    settings: BrokerSettings
    cluster_id: str
    clock: Clock
    rng: Random
    executor: Executor
    # For slow validation: few at once, since each batch may decompress to a lot.
    validators: Executor
    image: ClusterImage
    configs: Configs
    logs: LogManager
    replicas: ReplicaManager
    # The replicas and the diskless partitions, as served to clients.
    partitions: Partitions
    replication: Replication
    groups: GroupCoordinator
    transactions: TransactionCoordinator
    controller: ControllerChannel
    quorum: QuorumNode
    peers: BrokerPeers
    producer_ids: ProducerIds
    fetch_sessions: FetchSessions
    quotas: QuotaGate
    authorizer: Authorizer | None
    auto_create: AutoCreate
    features: Features
    traffic: Traffic
    memory: Memory
    diskless: DisklessEngine
    # None: ``remote.log.storage.system.enable`` is false.
    tiered: TieredStorage | None
    # Routes clients to diskless partitions.
    router: Router
    # Waits for work started by metadata changes: creating diskless partitions at coordinators.
    settled: Callable[[], Awaitable[None]]


async def until_loaded(services: Services) -> None:
    """Wait briefly for coordinators, so that the first clients are not refused.

    A coordinator whose followers are down cannot be loaded before they are back.
    """
    coordinators = (services.groups, services.transactions, services.diskless.plane)
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(START_LOADING_SECONDS_MAX):
            for coordinator in coordinators:
                await coordinator.loaded()
