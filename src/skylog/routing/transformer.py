"""How clients see a diskless partition: the replica in their zone, if there is one.

Any broker can serve any diskless partition, so the choice of the leader shown is a matter of cost.
The controller decides the placement; only while none of the replicas is alive is a broker chosen
here, by a hash on which all brokers agree. The leader epoch is never changed. Pure.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum

from skylog.client.partitioner import partition_of_key
from skylog.controller.image.topics import Partition
from skylog.controller.racks import rack_name
from skylog.kernel.ids import Uuid


class Route(Enum):
    """How a partition's leader was chosen for a client."""

    UNAWARE = "the client has no zone: the leader"
    LOCAL = "a replica in the client's zone"
    REMOTE = "no replica is alive in the client's zone: the leader"
    ORPHANED = "no replica is alive at all: any broker, by hash"


@dataclass(frozen=True, slots=True)
class Located:
    """A partition as one client sees it."""

    route: Route
    leader: int
    replicas: Sequence[int]
    isr: Sequence[int]
    offline: Sequence[int] = ()


def locate(
    topic_id: Uuid,
    index: int,
    partition: Partition,
    zone: str | None,
    racks: Mapping[int, str | None],
) -> Located | None:
    """``racks`` has the live brokers, in order of id; None if there are none."""
    alive = [replica for replica in partition.replicas if replica in racks]
    if not alive:
        near = [broker for broker, rack in racks.items() if rack_name(rack) == zone]
        candidates = near or list(racks)
        if not candidates:
            return None
        return _only(Route.ORPHANED, _pick(topic_id, index, candidates))
    local = sorted(replica for replica in alive if rack_name(racks[replica]) == zone)
    if local:
        return _only(Route.LOCAL, _pick(topic_id, index, local))
    return Located(
        Route.UNAWARE if zone is None else Route.REMOTE,
        partition.leader if partition.leader in racks else alive[0],
        partition.replicas,
        partition.isr,
        [replica for replica in partition.replicas if replica not in racks],
    )


def _only(route: Route, broker: int) -> Located:
    return Located(route, broker, (broker,), (broker,))


def _pick(topic_id: Uuid, index: int, candidates: Sequence[int]) -> int:
    """The same for all clients of a zone, on all brokers, so that caches are shared."""
    if len(candidates) == 1:
        return candidates[0]
    return candidates[partition_of_key(f"{topic_id}-{index}".encode(), len(candidates))]
