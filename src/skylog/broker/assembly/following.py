"""The parts of a broker that follow its metadata, in the order in which they are told."""

from __future__ import annotations

from typing import TYPE_CHECKING

from skylog.broker.assembly.diskless_engine import DisklessFollower
from skylog.broker.assembly.replication import ThrottleFollower
from skylog.broker.metadata.followers import (
    AclFollower,
    ConfigFollower,
    PartitionFollower,
    QuotaFollower,
)

if TYPE_CHECKING:
    from skylog.broker.background.tasks import Background
    from skylog.broker.metadata.publisher import Follower
    from skylog.broker.services import Services
    from skylog.security.connection_limits import ConnectionLimits
    from skylog.security.quotas import ClientQuotas


def followers_of(
    services: Services,
    quotas: ClientQuotas,
    connections: ConnectionLimits,
    background: Background,
) -> list[Follower]:
    """Settings first: the others read them."""
    followers: list[Follower] = [ConfigFollower(services.configs), PartitionFollower(services)]
    if services.authorizer is not None:
        followers.append(AclFollower(services.authorizer, services.fetch_sessions))
    followers.append(QuotaFollower(quotas, connections))
    followers.append(ThrottleFollower(services.replication, services.settings))
    followers.append(
        DisklessFollower(services.diskless, services.auto_create, background.until_done)
    )
    if services.tiered is not None:
        followers.append(services.tiered.consolidating)
        followers.append(services.partitions)
    followers.append(services.router)
    return followers
