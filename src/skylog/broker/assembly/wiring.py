"""The only place where the parts of a node are assembled, started and stopped.

Start: directories → metadata quorum → controller → local logs → sockets are bound → the broker
registers and reads the metadata log up to its registration → it applies that metadata → it is
unfenced → sockets accept. Stop is the reverse.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from skylog.broker.assembly.diskless_engine import OBJECTS_DIRECTORY, open_engine
from skylog.broker.assembly.following import followers_of
from skylog.broker.assembly.group_world import open_groups
from skylog.broker.assembly.quorum_part import QuorumPart
from skylog.broker.assembly.replication import open_replication
from skylog.broker.assembly.storage import directories, open_storage
from skylog.broker.assembly.tiered import TieredPorts, check_tiered, open_tiered, start_tiered
from skylog.broker.assembly.transaction_world import open_transactions, start_passes
from skylog.broker.assembly.translate import (
    advertised_host,
    connection_settings,
    log_manager_settings,
)
from skylog.broker.assembly.undo import Undo
from skylog.broker.background.backup import broker_backup
from skylog.broker.background.compaction import start_cleaner
from skylog.broker.background.maintenance import start_maintenance
from skylog.broker.background.tasks import Background
from skylog.broker.handlers.fetch_sessions import FetchSessions, FetchSessionSettings
from skylog.broker.metadata.auto_create import AutoCreate
from skylog.broker.metadata.configs import Configs
from skylog.broker.metadata.features import Features
from skylog.broker.metadata.followers import put_strays_aside
from skylog.broker.metadata.lifecycle import Lifecycle
from skylog.broker.metadata.producer_ids import ProducerIds
from skylog.broker.metadata.publisher import MetadataPublisher
from skylog.broker.net.access import broker_access, check_access
from skylog.broker.net.in_flight import Memory
from skylog.broker.net.listeners import Listeners, listener_securities
from skylog.broker.net.peers import BrokerPeers
from skylog.broker.net.quota_gate import QuotaGate
from skylog.broker.net.sockets import Addresses
from skylog.broker.observe.audit import new_authorizer
from skylog.broker.observe.endpoint import serve_observation
from skylog.broker.observe.traffic import Traffic
from skylog.broker.partitions.factory import open_partitions
from skylog.broker.services import Services, until_loaded
from skylog.controller.image import ClusterImage
from skylog.controller.levels import BROKER_FEATURES
from skylog.controller.settings import SUPPORTED_FEATURES
from skylog.kernel import limits
from skylog.kernel.clock import Clock, SystemClock
from skylog.kernel.executor import ThreadExecutor
from skylog.kernel.logging import get_logger
from skylog.kernel.rng import Random, system_random
from skylog.kernel.settings import BrokerSettings
from skylog.kernel.system import System
from skylog.log.files import Files
from skylog.log.manager import LogManager
from skylog.quorum.storage import NodeStorage
from skylog.replication.isr_updates import IsrUpdates
from skylog.routing.router import Router
from skylog.security.connection_limits import ConnectionLimits
from skylog.security.listener import ListenerSecurity
from skylog.security.quotas import ClientQuotas

if TYPE_CHECKING:
    from prometheus_client.registry import Collector

    from skylog.broker.observe.http import HttpServer

log = get_logger("broker.node")
EXECUTOR_THREADS = 8
SWEEP_INTERVAL_MS = 5_000
TLS_RELOAD_INTERVAL_MS = 60_000
SNAPSHOT_CHECK_INTERVAL_MS = 5_000
RESTART_INTERVAL_MS = 1_000


class Node:
    """One process of a cluster: a broker, and also a controller if its roles say so."""

    def __init__(
        self,
        settings: BrokerSettings,
        *,
        clock: Clock | None = None,
        rng: Random | None = None,
        on_failure: Callable[[Exception], None] = lambda error: None,
    ) -> None:
        """``on_failure`` is called for fatal errors; the node should then be stopped."""
        self.settings = settings
        self._clock = clock or SystemClock()
        self._rng = rng or system_random()
        self._on_failure = on_failure
        self._executor = ThreadExecutor(EXECUTOR_THREADS, "skylog")
        self._validators = ThreadExecutor(limits.VALIDATIONS_AT_ONCE_MAX, "skylog-validation")
        self._files = Files(limits.LOG_OPEN_FILES_MAX)
        self._background = Background()
        self._image = ClusterImage()
        self._publisher = MetadataPublisher(self._image)
        self._client_quotas = ClientQuotas(
            settings.quotas.window_count,
            settings.quotas.window_seconds,
            settings.quotas.controller_window_count,
            settings.quotas.controller_window_seconds,
        )
        self._connections = ConnectionLimits(connection_settings(settings), self._clock)
        self._memory = Memory(settings.network.queued_bytes_max)
        self._system = System(self._clock, self._rng, self._executor)
        self._peers = BrokerPeers(self._image, broker_access(settings), self._system)
        self._undo = Undo()
        self.http_port = 0
        self.http: HttpServer | None = None
        self._addresses = Addresses()

    async def start(self) -> None:
        """Start; on any failure, stop what was started and raise the error."""
        try:
            await self._start()
        except BaseException:
            await self.stop()
            raise

    async def stop(self) -> None:
        """Shut down cleanly: leave the cluster, send no more responses, flush everything."""
        await self._undo.aclose()

    async def abandon(self) -> None:
        """Stop as after kill -9, within a process that goes on: others are not told, nothing is
        flushed."""
        await self._listeners.abort()
        if self.http is not None:
            await self.http.stop()
        others = asyncio.all_tasks() - {asyncio.current_task()}
        for task in others:
            task.cancel()
        if others:
            await asyncio.wait(others, timeout=limits.SHUTDOWN_FLUSH_SECONDS_MAX)
        await self._peers.close()
        await self._part.abandon()
        self._addresses.release()
        self._services.logs.unlock()
        self._executor.close()
        self._validators.close()

    @property
    def leads(self) -> bool:
        """Whether this node is the active controller."""
        return self._part.quorum.is_leader

    def address(self, listener: str | None = None) -> str:
        """``host:port`` of a listener, the first one of the broker by default."""
        chosen = listener or self.settings.broker_listeners[0].name
        settings = self.settings.listener(chosen)
        return f"{advertised_host(settings)}:{self._listeners[chosen].port}"

    @property
    def http_address(self) -> str:
        """``host:port`` of /metrics and /health."""
        return f"{self._addresses.http_host}:{self.http_port}"

    @property
    def image(self) -> ClusterImage:
        """The cluster's metadata as this node knows it."""
        return self._image

    def has_topic(self, name: str) -> bool:
        return self._image.topic(name) is not None

    @property
    def objects_directory(self) -> str:
        """Where diskless topics keep their data unless a store is configured."""
        return f"{self.settings.node.log_dirs[0]}/{OBJECTS_DIRECTORY}"

    async def create_diskless_topic(self, name: str) -> None:
        """Create a topic with the cluster's defaults, unless it exists."""
        await self._services.auto_create.create_diskless(name)
        await self._services.settled()

    def health(self) -> dict[str, Any]:
        """For /health: whether this node serves, and its identity."""
        return {
            "status": "ok" if self._lifecycle.serving else "starting",
            "node_id": self.settings.node.node_id,
            "cluster_id": self._services.cluster_id,
            "partitions": len(self._services.replicas),
        }

    # -- starting ------------------------------------------------------------------------------

    async def _start(self) -> None:
        undo = self._undo
        undo.callback(self._executor.close)
        undo.callback(self._validators.close)
        undo.stop_by(self._peers.close)
        # Mistakes in settings and addresses are found before anything is written.
        check_access(self.settings)
        check_tiered(self.settings)
        securities = listener_securities(self.settings, self._image, self._rng)
        undo.callback(self._addresses.release)
        self._addresses.take(self.settings)
        logs = LogManager(
            [str(directory) for directory in directories(self.settings)],
            self._clock,
            self._executor,
            log_manager_settings(self.settings),
            self._rng,
            self._files,
        )
        storage = open_storage(self.settings, self._addresses.port, self._system)
        undo.callback(logs.unlock)
        logs.lock()
        part = await self._start_quorum(storage)
        self._lifecycle = Lifecycle(
            self.settings,
            storage.cluster_id,
            self._rng,
            part.link,
            lambda: self._publisher.end_offset,
            part.hopeless,
        )
        self._services = self._build_services(storage, logs, part)
        # Nothing may be written once logs are being closed, by groups or by metadata changes.
        undo.stop_by(lambda: logs.close(self._lifecycle.broker_epoch), limits.STOP_LOGS_SECONDS_MAX)
        await part.follow()
        await logs.start(self._services.configs.log_config)
        undo.stop_by(self._services.groups.close)
        undo.stop_by(self._services.transactions.close)
        undo.stop_by(self._services.producer_ids.close)
        await self._bind(securities)
        # Other controllers may need this one before any broker can be unfenced.
        await self._listeners.serve(of_controller=True)
        await self._register(storage, logs)
        await self._follow_metadata(logs)
        # Stopped first: other brokers lead by then, and continue without waiting for this one.
        undo.stop_by(self._lifecycle.leave, limits.STOP_LEAVE_SECONDS_MAX)
        await self._lifecycle.unfence()
        # Its first client must find this broker in the metadata.
        await part.link.until_shown(lambda: self._image.is_alive(storage.node_id))
        # Followers must be able to fetch, or coordinators led here would never be loaded.
        await self._listeners.serve(of_controller=False)
        await until_loaded(self._services)
        self._start_background(part, logs, storage)

    async def _start_quorum(self, storage: NodeStorage) -> QuorumPart:
        part = QuorumPart(self.settings, storage, self._system, self._publisher, self._undo)
        await part.start(self._files, self._addresses.port, self._on_failure)
        self._part = part
        return part

    def _build_services(self, storage: NodeStorage, logs: LogManager, part: QuorumPart) -> Services:
        settings, clock, channel, quorum = self.settings, self._clock, part.link, part.quorum
        configs = Configs(settings, self._image)
        groups = open_groups(settings, self._publisher, configs, clock, self._rng)
        producer_ids = ProducerIds(self._lifecycle, channel)
        sessions = FetchSessionSettings(settings.network.fetch_sessions_max)
        traffic = Traffic()
        isr_updates = IsrUpdates(
            settings.node.node_id, lambda: self._lifecycle.broker_epoch, channel
        )
        replication = open_replication(
            settings, self._image, logs, clock, self._peers, isr_updates, traffic
        )
        engine = open_engine(settings, self._image, self._peers, self._files, self._system)
        router = Router(self._image, settings.managed_replication.zone_by_listener)
        auto_create = AutoCreate(settings, channel, part.is_whole_cluster)
        ports = TieredPorts(
            image=self._image,
            configs=configs,
            replication=replication,
            diskless=engine,
            local=logs,
            peers=self._peers,
            auto_create=auto_create,
            system=self._system,
            failed=self._on_failure,
        )
        return Services(
            settings=settings,
            cluster_id=storage.cluster_id,
            clock=clock,
            rng=self._rng,
            executor=self._executor,
            validators=self._validators,
            image=self._image,
            configs=configs,
            logs=logs,
            replicas=replication.replicas,
            partitions=open_partitions(
                settings, self._image, replication, engine, router, self._executor, traffic
            ),
            replication=replication,
            groups=groups,
            transactions=open_transactions(
                settings, self._image, producer_ids, clock, lambda: self._services
            ),
            controller=channel,
            quorum=quorum,
            peers=self._peers,
            producer_ids=producer_ids,
            fetch_sessions=FetchSessions(sessions, clock, self._rng),
            quotas=QuotaGate(self._client_quotas, clock),
            authorizer=new_authorizer(settings.security, clock),
            auto_create=auto_create,
            features=Features(SUPPORTED_FEATURES, self._publisher, lambda: quorum.kraft_version),
            traffic=traffic,
            memory=self._memory,
            router=router,
            diskless=engine,
            tiered=open_tiered(settings, storage.cluster_id, ports),
            settled=self._background.settled,
        )

    async def _follow_metadata(self, logs: LogManager) -> None:
        services = self._services
        services.configs.check_remote_topics()
        put_strays_aside(logs, self._image, self.settings.node.node_id)
        followers = followers_of(services, self._client_quotas, self._connections, self._background)
        await services.diskless.plane.start()
        self._undo.stop_by(services.diskless.close)
        services.configs.on_change(self._limit_connections)
        services.configs.on_change(services.replication.reconfigure)
        followers += self._part.presence(self._listeners, self._background.once)
        self._undo.stop_by(services.replication.close)
        services.replication.fetchers.start()
        self._publisher.start(followers)
        await start_tiered(services, self._undo, self._background)

    async def _bind(self, securities: Mapping[str, ListenerSecurity]) -> None:
        self._listeners = listeners = Listeners(
            self._services, self.settings, securities, self._connections, self._memory
        )
        self._undo.stop_by(listeners.stop)
        await listeners.bind(self._addresses)

    async def _register(self, storage: NodeStorage, logs: LogManager) -> None:
        self._undo.stop_by(self._lifecycle.leave, limits.STOP_LEAVE_SECONDS_MAX)
        await self._lifecycle.register(
            self._listeners.advertised(),
            BROKER_FEATURES,
            list(storage.directory_ids.values()),
            logs.previous_broker_epoch,
        )

    # -- running -------------------------------------------------------------------------------

    def _start_background(self, part: QuorumPart, logs: LogManager, storage: NodeStorage) -> None:
        every = self._background.every
        self._undo.stop_by(self._background.stop)
        every(SWEEP_INTERVAL_MS, "close idle connections", self._listeners.sweep)
        every(SNAPSHOT_CHECK_INTERVAL_MS, "snapshot metadata", part.snapshot_if_due)
        every(TLS_RELOAD_INTERVAL_MS, "reload certificates", self.reload_certificates)
        every(RESTART_INTERVAL_MS, "local logs", logs.run, first_ms=0)
        start_passes(self._services, self._background)
        lag_ms = self.settings.replication.lag_ms_max
        every(max(lag_ms // 2, 1), "in-sync replicas", self._services.replicas.review_isrs)
        self.cleaner = start_cleaner(self._services, self._background)
        backup = broker_backup(self._services, self._system, storage, part.quorum)
        self.maintenance = start_maintenance(
            self._services, self.settings.diskless, self._background, backup
        )

    def _limit_connections(self, settings: BrokerSettings) -> None:
        async def look_up() -> None:
            found = await self._executor.run(partial(connection_settings, settings))
            if settings is self._services.configs.current:
                self._connections.update(found)

        if settings.network.connections_per_ip_overrides:  # may contain host names to resolve
            self._background.once("connection limits", look_up)
        else:
            self._connections.update(connection_settings(settings))

    async def reload_certificates(self) -> None:
        """Load changed key and trust stores."""
        await self._executor.run(self._listeners.reload_certificates)
        self._peers.renew()
        self._services.quorum.renew()

    async def start_http(self) -> None:
        """Serve /metrics and /health."""
        bound = self._addresses.http
        if bound is None:
            return
        http = await serve_observation(bound, self.health, self._executor, self._collectors)
        self.http_port = http.port
        self.http = http
        self._undo.stop_by(http.stop)

    def _collectors(self) -> list[Collector]:
        from skylog.broker.observe import collectors  # noqa: PLC0415 - not needed before

        services, controller = self._services, self._part.controller
        found = collectors.node_collectors(services, self._listeners, controller, self._background)
        return found + collectors.broker_collectors(services, self.cleaner, self.maintenance)
