"""Fetches that are not a consumer's at the leader: followers', and consumers' near a replica."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from skylog.kernel.settings.replication import RACK_AWARE_SELECTOR

if TYPE_CHECKING:
    from skylog.broker.net.context import RequestContext
    from skylog.replication.leader import Follower
    from skylog.replication.partition import Partition
    from skylog.wire.messages.fetch_request import FetchPartition, FetchRequest

# From this version on a consumer says in which rack it is, and may read from any replica.
ANY_REPLICA_FROM: Final = 11
REPLICA_STATE_FROM: Final = 15
NO_EPOCH: Final = -1


def follower_epoch(request: FetchRequest, version: int) -> int:
    """The epoch under which a follower has registered; older ones do not tell."""
    return request.replica_state.replica_epoch if version >= REPLICA_STATE_FROM else NO_EPOCH


def expects_follower(partition: Partition, replica_id: int, wanted: FetchPartition) -> bool:
    """Whether a follower's next fetch is looked at though it says nothing of this partition.

    Not only for records: who is not in sync may be let in as soon as it has caught up, or as
    its broker counts again.
    """
    behind = partition.log.log_end_offset > wanted.fetch_offset
    return behind or replica_id not in partition.isr


def is_throttled(context: RequestContext, partition: Partition, replica_id: int) -> bool:
    """Whether a follower must wait for its records: never one that is in sync."""
    quota = context.services.replication.leader_quota
    return (
        replica_id not in partition.isr
        and quota.is_throttled(partition.topic, partition.index)
        and quota.exceeded
    )


def nearer_replica(
    context: RequestContext, partition: Partition, wanted: FetchPartition, rack: str
) -> int | None:
    """A follower in the consumer's rack that is in sync and has the offset (KIP-392).

    The leader decides. In its own rack it serves consumers itself.
    """
    services, leader = context.services, partition.leader
    if not rack or leader is None or services.settings.replication.selector != RACK_AWARE_SELECTOR:
        return None
    if services.settings.node.rack == rack:
        return None
    near = [
        each
        for each in leader.followers.values()
        if each.broker_id in leader.isr
        and each.start_offset <= wanted.fetch_offset <= each.end_offset
        and _is_in(context, each, rack)
    ]
    best = max(
        near, key=lambda one: (one.end_offset, one.caught_up_ms, one.broker_id), default=None
    )
    return None if best is None else best.broker_id


def _is_in(context: RequestContext, follower: Follower, rack: str) -> bool:
    nodes = context.services.image.endpoints((follower.broker_id,), context.listener)
    return bool(nodes) and nodes[0].rack == rack
