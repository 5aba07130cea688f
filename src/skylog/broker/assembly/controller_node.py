"""A process that is only a controller: its part of the quorum, and its listener."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from skylog.broker.assembly.storage import directories, open_storage
from skylog.broker.assembly.translate import advertised_host, log_manager_settings
from skylog.broker.assembly.wiring import (
    SNAPSHOT_CHECK_INTERVAL_MS,
    SWEEP_INTERVAL_MS,
    TLS_RELOAD_INTERVAL_MS,
    Node,
)
from skylog.broker.background.backup import is_wanted, open_backup, start_backup
from skylog.broker.metadata.followers import AclFollower, ConfigFollower, QuotaFollower
from skylog.broker.metadata.lifecycle import Lifecycle
from skylog.broker.net.access import check_access
from skylog.broker.net.listeners import listener_securities
from skylog.log.manager import LogManager
from skylog.objects.open import open_store

if TYPE_CHECKING:
    from prometheus_client.registry import Collector

    from skylog.broker.assembly.diskless_engine import DisklessEngine
    from skylog.broker.metadata.publisher import Follower
    from skylog.quorum.storage import NodeStorage


class ControllerNode(Node):
    """Takes part in the quorum from its start; it finds the leader later."""

    def address(self, listener: str | None = None) -> str:
        """``host:port`` of a listener, the first one by default."""
        settings = self.settings.listener(listener or self.settings.listeners[0].name)
        return f"{advertised_host(settings)}:{self._listeners[settings.name].port}"

    def health(self) -> dict[str, Any]:
        """This node's identity, and the leader that it knows."""
        told = self._services.quorum.leader_and_epoch
        return {
            "status": "ok" if told.leader_id >= 0 else "starting",
            "node_id": self.settings.node.node_id,
            "cluster_id": self._services.cluster_id,
            "leader_id": told.leader_id,
            "leader_epoch": told.epoch,
        }

    def _collectors(self) -> list[Collector]:
        from skylog.broker.observe import collectors  # noqa: PLC0415 - not needed before

        return collectors.node_collectors(
            self._services, self._listeners, self._part.controller, self._background
        )

    def _open_engine(self) -> DisklessEngine:
        return None  # type: ignore[return-value]  # only brokers serve topics

    async def _start(self) -> None:
        undo, settings = self._undo, self.settings
        undo.callback(self._executor.close)
        undo.callback(self._validators.close)
        check_access(settings)
        securities = listener_securities(settings, self._image, self._rng)
        undo.callback(self._addresses.release)
        self._addresses.take(settings)
        logs = LogManager(
            [str(directory) for directory in directories(settings)],
            self._clock,
            self._executor,
            log_manager_settings(settings),
            self._rng,
            self._files,
        )
        storage = open_storage(settings, self._addresses.port, self._system)
        undo.callback(logs.unlock)
        logs.lock()
        part = await self._start_quorum(storage)
        self._lifecycle = Lifecycle(  # never registered
            settings, storage.cluster_id, self._rng, part.link, lambda: self._publisher.end_offset
        )
        self._services = self._build_services(storage, logs, part)
        await part.follow()
        await self._bind(securities)
        self._follow()
        await self._listeners.serve(of_controller=True)
        self._start_backup(storage)
        every = self._background.every
        undo.stop_by(self._background.stop)
        every(SWEEP_INTERVAL_MS, "close idle connections", self._listeners.sweep)
        every(SNAPSHOT_CHECK_INTERVAL_MS, "snapshot metadata", part.snapshot_if_due)
        every(TLS_RELOAD_INTERVAL_MS, "reload certificates", self.reload_certificates)

    def _start_backup(self, storage: NodeStorage) -> None:
        if not is_wanted(self.settings):
            return
        diskless = self.settings.diskless
        store = open_store(
            diskless.storage_url, self.settings.storage, clock=self._clock, rng=self._rng
        )
        self._undo.stop_by(store.close)
        logs, quorum = self._services.logs, self._part.quorum
        backup = open_backup(self.settings, self._system, self._image, logs, store, storage, quorum)
        start_backup(
            backup, self._image, self._clock, diskless.backup_interval_ms, self._background
        )

    def _follow(self) -> None:
        services = self._services
        followers: list[Follower] = [ConfigFollower(services.configs)]
        if services.authorizer is not None:
            followers.append(AclFollower(services.authorizer, services.fetch_sessions))
        followers.append(QuotaFollower(self._client_quotas, self._connections))
        services.configs.on_change(self._limit_connections)
        followers += self._part.presence(self._listeners, self._background.once)
        self._publisher.start(followers)
