"""skylog in tests: a broker or a cluster in this process.

It starts in well under a second, on free ports and in its own directory::

    with Broker() as broker:
        producer = Producer({"bootstrap.servers": broker.bootstrap})

A cluster has brokers and controllers that can be stopped, killed and started again::

    with Cluster(brokers=3, racks=("a", "b", "c")) as cluster:
        cluster.brokers[0].kill()
"""

from skylog.testing.broker import Broker
from skylog.testing.cluster import Cluster

__all__ = ["Broker", "Cluster"]
