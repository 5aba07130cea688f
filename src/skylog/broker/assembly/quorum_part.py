"""A node's part in the cluster's metadata: its replica of the log, its controller if it is one, and
the link to the active controller."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from skylog.broker.assembly.translate import controller_settings, quorum_config
from skylog.broker.metadata.controller_channel import LocalController
from skylog.broker.metadata.controller_configs import ControllerConfigs
from skylog.broker.metadata.controller_link import ControllerLink
from skylog.broker.metadata.controller_presence import ControllerPresence
from skylog.broker.net.access import controller_client
from skylog.client.lines import Lines
from skylog.controller.shell import Controller, MetadataCodec
from skylog.kernel.rng import random_uuid
from skylog.quorum.node import QuorumNode
from skylog.quorum.voters import VoterIds

if TYPE_CHECKING:
    from skylog.broker.assembly.undo import Undo
    from skylog.broker.background.tasks import Work
    from skylog.broker.metadata.publisher import Follower, MetadataPublisher
    from skylog.broker.net.listeners import Listeners
    from skylog.kernel.settings import BrokerSettings
    from skylog.kernel.system import System
    from skylog.log.files import Files
    from skylog.quorum.storage import NodeStorage


class QuorumPart:
    """The first part of a node to be created; it is complete once ``start`` returns."""

    quorum: QuorumNode
    controller: Controller | None = None
    link: ControllerLink
    _lines: Lines

    def __init__(
        self,
        settings: BrokerSettings,
        storage: NodeStorage,
        system: System,
        publisher: MetadataPublisher,
        undo: Undo,
    ) -> None:
        self._settings = settings
        self._storage = storage
        self._system = system
        self._publisher = publisher
        self._undo = undo

    async def start(
        self,
        files: Files,
        port_of: Callable[[str], int],
        on_failure: Callable[[Exception], None],
    ) -> None:
        """If this node is the whole quorum it leads when this returns; other leaders are found
        later."""
        settings, system = self._settings, self._system
        quorum = self.quorum = QuorumNode(
            self._storage,
            quorum_config(settings, port_of),
            files=files,
            clock=system.clock,
            executor=system.executor,
            rng=system.rng,
            on_failure=on_failure,
        )
        self._undo.stop_by(quorum.close)
        await quorum.start()
        if settings.node.is_controller:
            self.controller = await self._start_controller(on_failure)
        timeout_ms = settings.node.request_timeout_ms
        lines = Lines(partial(controller_client, settings, request_timeout_ms=timeout_ms), system)
        self._lines = lines
        self._undo.stop_by(lines.close)
        local = None if self.controller is None else LocalController(self.controller, quorum)
        self.link = ControllerLink(local, quorum, lines, self._publisher.image, settings.node)

    async def _start_controller(self, on_failure: Callable[[Exception], None]) -> Controller:
        settings, quorum = self._settings, self.quorum
        controller = Controller(
            controller_settings(settings, self._storage, VoterIds(lambda: quorum.voters)),
            ControllerConfigs(lambda: settings),
            quorum,
            clock=self._system.clock,
            rng=self._system.rng,
            on_failure=on_failure,
        )
        quorum.on_leadership(controller.lead)
        if quorum.is_leader:
            await controller.start()
        self._undo.callback(controller.stop)
        return controller

    async def abandon(self) -> None:
        """Stop without notifying others."""
        await self.quorum.abandon()
        await self._lines.close()

    async def follow(self) -> None:
        """Read everything that is committed, and from now on every change."""
        self._undo.callback(await self.quorum.subscribe(self._publisher.committed))

    def presence(self, listeners: Listeners, start: Callable[[str, Work], None]) -> list[Follower]:
        """Registers a controller with the cluster; nothing on other nodes."""
        node = self._settings.node
        if not node.is_controller:
            return []
        incarnation, told = random_uuid(self._system.rng), listeners.of_controllers()
        return [ControllerPresence(node.node_id, incarnation, told, self.link, start)]

    def is_whole_cluster(self) -> bool:
        """Whether this node is the only voter, and the only broker that has ever registered."""
        own = {self._settings.node.node_id}
        voters = {key.id for key in self.quorum.voters.keys}
        return voters == own and self._publisher.image.brokers.by_id.keys() == own

    async def snapshot_if_due(self) -> None:
        if self.controller is not None:
            await self.controller.snapshot_if_due()
            return
        quorum, publisher = self.quorum, self._publisher
        now_ms = self._system.clock.now_ms()
        if quorum.snapshot_due(now_ms) and not publisher.image.in_transaction:
            encode = MetadataCodec().encode
            records = [encode(record) for record in publisher.image.snapshot()]
            await quorum.write_snapshot(publisher.end_offset, records)

    def hopeless(self) -> str | None:
        """Why no controller of this cluster can ever be found; None while one may be."""
        strangers = self.quorum.strangers
        if self.quorum.leader_and_epoch.leader_id >= 0 or not strangers:
            return None
        named = ", ".join(sorted(map(str, strangers)))
        return (
            f"INCONSISTENT_CLUSTER_ID: the controllers at {named} belong to another cluster than "
            f"{self._storage.cluster_id}, which this node's directories belong to"
        )
