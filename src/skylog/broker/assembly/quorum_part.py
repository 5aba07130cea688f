"""A node's part in the cluster's metadata: its replica of the log, its controller where it is one,
and the way to the active controller."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
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
    from skylog.client.settings import Ports
    from skylog.kernel.settings import BrokerSettings
    from skylog.log.files import Files
    from skylog.quorum.storage import NodeStorage


@dataclass(frozen=True, slots=True)
class Foundation:
    """What a node has before it takes part in anything."""

    settings: BrokerSettings
    storage: NodeStorage
    port_of: Callable[[str], int]
    ports: Ports
    files: Files
    publisher: MetadataPublisher
    on_failure: Callable[[Exception], None]
    undo: Undo


class QuorumPart:
    """The running part; ``start`` makes it."""

    def __init__(
        self,
        quorum: QuorumNode,
        controller: Controller | None,
        link: ControllerLink,
        lines: Lines,
        base: Foundation,
    ) -> None:
        self.quorum = quorum
        self.controller = controller
        self.link = link
        self._lines = lines
        self._base = base

    @classmethod
    async def start(cls, base: Foundation) -> QuorumPart:
        """A quorum of this node alone leads when this returns; others are found later."""
        settings, ports = base.settings, base.ports
        quorum = QuorumNode(
            base.storage,
            quorum_config(settings, base.port_of),
            files=base.files,
            clock=ports.clock,
            executor=ports.executor,
            rng=ports.rng,
            on_failure=base.on_failure,
        )
        base.undo.stop_by(quorum.close)
        await quorum.start()
        controller = await _start_controller(base, quorum) if settings.node.is_controller else None
        timeout_ms = settings.node.request_timeout_ms
        lines = Lines(partial(controller_client, settings, request_timeout_ms=timeout_ms), ports)
        base.undo.stop_by(lines.close)
        local = None if controller is None else LocalController(controller, quorum)
        link = ControllerLink(local, quorum, lines, base.publisher.image, settings.node)
        return cls(quorum, controller, link, lines, base)

    async def abandon(self) -> None:
        """Stop without a word to anybody."""
        await self.quorum.abandon()
        await self._lines.close()

    async def follow(self) -> None:
        """Read what is committed, and from now on what comes."""
        self._base.undo.callback(await self.quorum.subscribe(self._base.publisher.committed))

    def presence(self, listeners: Listeners, start: Callable[[str, Work], None]) -> list[Follower]:
        """What makes a controller known to the cluster; nothing on a node that is none."""
        node = self._base.settings.node
        if not node.is_controller:
            return []
        incarnation, told = random_uuid(self._base.ports.rng), listeners.of_controllers()
        return [ControllerPresence(node.node_id, incarnation, told, self.link, start)]

    def is_whole_cluster(self) -> bool:
        """Whether this node is the only voter, and the only broker that has ever registered."""
        own = {self._base.settings.node.node_id}
        voters = {key.id for key in self.quorum.voters.keys}
        return voters == own and self._base.publisher.image.brokers.by_id.keys() == own

    async def snapshot_if_due(self) -> None:
        if self.controller is not None:
            await self.controller.snapshot_if_due()
            return
        quorum, publisher = self.quorum, self._base.publisher
        now_ms = self._base.ports.clock.now_ms()
        if quorum.snapshot_due(now_ms) and not publisher.image.in_transaction:
            encode = MetadataCodec().encode
            records = [encode(record) for record in publisher.image.snapshot()]
            await quorum.write_snapshot(publisher.end_offset, records)

    def hopeless(self) -> str | None:
        """Why nobody of this cluster will ever be found; None while there is hope."""
        strangers = self.quorum.strangers
        if self.quorum.leader_and_epoch.leader_id >= 0 or not strangers:
            return None
        named = ", ".join(sorted(map(str, strangers)))
        return (
            f"INCONSISTENT_CLUSTER_ID: the controllers at {named} are of another cluster than "
            f"{self._base.storage.cluster_id}, which this node's directories belong to"
        )


async def _start_controller(base: Foundation, quorum: QuorumNode) -> Controller:
    settings = base.settings
    controller = Controller(
        controller_settings(settings, base.storage, VoterIds(lambda: quorum.voters)),
        ControllerConfigs(lambda: settings),
        quorum,
        clock=base.ports.clock,
        rng=base.ports.rng,
        on_failure=base.on_failure,
    )
    quorum.on_leadership(controller.lead)
    if quorum.is_leader:
        await controller.start()
    base.undo.callback(controller.stop)
    return controller
