"""A partition's host, without a broker."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

from skylog.kernel.clock import ManualClock
from skylog.replication.leader import IsrChange, Membership
from skylog.replication.partition import Partition

NODE = 1
LAG_MS = 30_000


def state(
    leader: int = NODE,
    epoch: int = 0,
    replicas: Sequence[int] = (NODE,),
    isr: Sequence[int] | None = None,
    version: int | None = None,
    **more: Any,
) -> Any:
    """A partition's metadata; its version follows the leader epoch unless given."""
    return SimpleNamespace(
        leader=leader,
        leader_epoch=epoch,
        partition_epoch=epoch if version is None else version,
        replicas=tuple(replicas),
        isr=tuple(replicas if isr is None else isr),
        adding_replicas=more.get("adding", ()),
        removing_replicas=more.get("removing", ()),
    )


@dataclass
class Host:
    """Implements ``PartitionHost``; records requests to the controller."""

    node_id: int = NODE
    clock: ManualClock = field(default_factory=ManualClock)
    lag_ms_max: int = LAG_MS
    members: dict[int, Membership] = field(default_factory=dict)
    asked: list[IsrChange] = field(default_factory=list)

    def brokers(self, node_id: int) -> Membership | None:
        return self.members.get(node_id, Membership(10 + node_id, active=True))

    def broker_epoch(self) -> int:
        return 10 + self.node_id

    def alter_isr(self, partition: Partition, change: IsrChange) -> None:
        self.asked.append(change)


class Nobody:
    """Fetches nothing and asks for nothing."""

    def follow(self, partition: Partition) -> None:
        """Called by a fetcher."""

    def forget(self, partition: Partition) -> None:
        """Called by a fetcher."""

    def broker_epoch(self) -> int:
        return 1

    def submit(self, partition: Partition, change: IsrChange) -> None:
        """Called with the controller's response."""
