"""Administration of a cluster: ``Admin(cluster)`` and its parts, one per kind of resource."""

from __future__ import annotations

from skylog.client.admin.configs import ConfigAdmin
from skylog.client.admin.diskless import DisklessAdmin
from skylog.client.admin.groups import GroupAdmin
from skylog.client.admin.partitions import PartitionAdmin
from skylog.client.admin.security import SecurityAdmin
from skylog.client.admin.tiered import TieredAdmin
from skylog.client.admin.topics import TopicAdmin
from skylog.client.cluster import Cluster

__all__ = ["Admin"]


class Admin:
    """All administration. Results are by name: a value, or the KafkaError of its failure."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.topics = TopicAdmin(cluster)
        self.partitions = PartitionAdmin(cluster)
        self.configs = ConfigAdmin(cluster)
        self.diskless = DisklessAdmin(cluster)
        self.groups = GroupAdmin(cluster)
        self.security = SecurityAdmin(cluster)
        self.tiered = TieredAdmin(cluster)
