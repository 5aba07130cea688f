"""Copies and expires segments of the partitions that this broker leads."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from skylog.kernel.system import System
    from skylog.tiered.ports import CopySource, RemoteLogs, RemoteStorage
    from skylog.tiered.segments import TopicIdPartition

NOT_LEADING: Final = -1


@dataclass(slots=True)
class Hosted:
    """A partition with a replica here; ``leader_epoch`` is −1 while another broker leads."""

    partition: TopicIdPartition
    topic: str
    source: CopySource
    leader_epoch: int = NOT_LEADING


class RemoteLogManager:
    """All methods run on the event loop."""

    def __init__(
        self, node_id: int, logs: RemoteLogs, storage: RemoteStorage, system: System
    ) -> None:
        self._node_id = node_id
        self._logs = logs
        self._storage = storage
        self._system = system
        self._hosted: dict[TopicIdPartition, Hosted] = {}

    def start(self) -> None:
        """Begin to copy and to delete: this broker has read its own registration."""

    async def close(self) -> None: ...

    def lead(
        self, partition: TopicIdPartition, topic: str, leader_epoch: int, source: CopySource
    ) -> None:
        """This broker leads, perhaps in a new epoch."""
        self._hosted[partition] = Hosted(partition, topic, source, leader_epoch)

    def unlead(self, partition: TopicIdPartition, topic: str, source: CopySource) -> None:
        """This broker has a replica, and another one leads."""
        self._hosted[partition] = Hosted(partition, topic, source)

    def forget(self, partition: TopicIdPartition) -> None:
        """The replica is elsewhere now, or the topic is not remote any more."""
        self._hosted.pop(partition, None)

    def deleted(self, partition: TopicIdPartition, topic: str) -> None:
        """The topic of a partition that was led here was deleted: so are its remote segments."""
        self._hosted.pop(partition, None)
