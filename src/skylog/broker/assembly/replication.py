"""Assembles the replication of classic partitions, and connects it to the metadata."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from skylog.controller.image.configs import CLUSTER_DEFAULT, ConfigResource, ConfigResourceType
from skylog.replication.fetcher_pool import Fetchers
from skylog.replication.late_transactions import LateTransactions
from skylog.replication.leader import Brokers, Membership
from skylog.replication.manager import ReplicaManager
from skylog.replication.ports import FetchPorts, FetchSettings
from skylog.replication.throttle import UNLIMITED, ReplicationQuota, throttled_partitions

if TYPE_CHECKING:
    from skylog.broker.observe.traffic import Traffic
    from skylog.controller.image import ClusterImage, Delta
    from skylog.kernel.clock import Clock
    from skylog.kernel.settings import BrokerSettings
    from skylog.log.manager import LogManager
    from skylog.replication.isr_updates import IsrUpdates
    from skylog.replication.ports import Peers

LEADER: Final = "leader"
FOLLOWER: Final = "follower"


@dataclass(frozen=True, slots=True)
class Replication:
    """The parts of replication."""

    replicas: ReplicaManager
    fetchers: Fetchers
    isr_updates: IsrUpdates
    # What leaders send to throttled followers, and what followers fetch.
    leader_quota: ReplicationQuota
    follower_quota: ReplicationQuota
    late_transactions: LateTransactions

    def reconfigure(self, settings: BrokerSettings) -> None:
        """Dynamic settings changed."""
        self.fetchers.resize(settings.replication.fetchers)

    async def close(self) -> None:
        await self.fetchers.close()
        await self.isr_updates.close()


def open_replication(
    settings: BrokerSettings,
    image: ClusterImage,
    logs: LogManager,
    clock: Clock,
    peers: Peers,
    isr_updates: IsrUpdates,
    traffic: Traffic,
) -> Replication:
    """All parts, idle; followers begin to fetch with ``fetchers.start``."""
    node_id, rules = settings.node.node_id, settings.replication
    windows = rules.quota_window_count, rules.quota_window_seconds * 1000
    leader_quota = ReplicationQuota(*windows, clock)
    follower_quota = ReplicationQuota(*windows, clock)
    fetchers = Fetchers(
        FetchSettings(
            node_id=node_id,
            partition_bytes_max=rules.fetch_bytes_max,
            response_bytes_max=rules.fetch_response_bytes_max,
            bytes_min=rules.fetch_bytes_min,
            wait_ms_max=rules.fetch_wait_ms_max,
            backoff_ms=rules.fetch_backoff_ms,
        ),
        FetchPorts(
            peers=peers,
            clock=clock,
            broker_epoch=isr_updates.broker_epoch,
            quota=follower_quota,
            fetched=traffic.replicated_in,
        ),
        rules.fetchers,
    )
    replicas = ReplicaManager(
        node_id, logs, clock, rules.lag_ms_max, brokers_by_metadata(image), isr_updates, fetchers
    )
    late = LateTransactions(replicas, clock, settings.transactions.timeout_ms_max)
    return Replication(replicas, fetchers, isr_updates, leader_quota, follower_quota, late)


def brokers_by_metadata(image: ClusterImage) -> Brokers:
    def find(broker_id: int) -> Membership | None:
        broker = image.broker(broker_id)
        return None if broker is None else Membership(broker.epoch, broker.active)

    return find


class ThrottleFollower:
    """Keeps the throttles of replication in line with metadata."""

    def __init__(self, replication: Replication, settings: BrokerSettings) -> None:
        self._quotas = {
            LEADER: replication.leader_quota,
            FOLLOWER: replication.follower_quota,
        }
        self._node_id = settings.node.node_id
        self._node = ConfigResource(ConfigResourceType.BROKER, str(self._node_id))

    def metadata_changed(self, image: ClusterImage, delta: Delta) -> None:
        if not delta.configs:
            return
        for side, quota in self._quotas.items():
            replicas, rate = f"{side}.replication.throttled.replicas", self._rate(image, side)
            topics = dict(quota.topics)
            for resource in delta.configs:
                if resource.type == ConfigResourceType.TOPIC:
                    text = image.configs.of(resource).get(replicas)
                    topics.pop(resource.name, None)
                    if text:
                        topics[resource.name] = throttled_partitions(text, self._node_id)
            quota.update(rate, topics)

    def _rate(self, image: ClusterImage, side: str) -> int:
        name = f"{side}.replication.throttled.rate"
        for resource in (self._node, CLUSTER_DEFAULT):
            text = image.configs.of(resource).get(name)
            if text is not None:
                return int(text)
        return UNLIMITED
